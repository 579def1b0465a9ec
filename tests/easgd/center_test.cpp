// Centers and their workers, as processes of this host, by every route by which numbers come to a worker.
#include "easgd/center.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "center_team.hpp"
#include "easgd/center_memory.hpp"
#include "easgd/center_protocol.hpp"

namespace tacc {
namespace {

using test::connectBy;
using test::exchange;
using test::Keeper;
using test::patience;
using test::Route;
using test::Signal;
using test::startWorker;

struct Case {
  Route route;
  bool isLocked;
  int workers;
};

class CenterTest : public testing::TestWithParam<Case> {};

std::string caseName(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_{}", nameOf(info.param.route), info.param.isLocked ? "locked" : "hogwild",
                     info.param.workers);
}

constexpr std::size_t count = 3 * CenterMemory::shardElements + 1234;
static_assert(CenterMemory::shardElements % pieceElements == 0);

float valueAt(std::size_t i, int worker) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(worker) * 131) % 512);
}

std::vector<float> valuesOf(int worker) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = valueAt(i, worker);
  return values;
}

/// Halves of halves of small integers are exact for so many turns, so the result is that of the order of turns alone.
TEST_P(CenterTest, ExchangesInTurnGiveExactlyWhatTheEquationsSay) {
  const auto [route, isLocked, workers] = GetParam();
  constexpr int turns = 2;
  const std::vector<float> initial = valuesOf(99);
  const Keeper keeper(count, {.isLocked = isLocked, .timeout = patience}, {}, initial.data());
  std::vector<double> center(initial.begin(), initial.end());
  std::vector<Signal> go(static_cast<std::size_t>(workers)), done(static_cast<std::size_t>(workers));
  std::vector<test::ChildProcess> processes;
  for (int w = 0; w < workers; ++w)
    processes.push_back(startWorker([&, w] {
      std::vector<float> weights = valuesOf(w), expected(count);
      const auto own = connectBy(route, keeper.id(), count);
      for (int turn = 0; turn < turns; ++turn) {
        go[static_cast<std::size_t>(w)].await();
        own->read(expected.data());
        for (std::size_t i = 0; i < count; ++i) expected[i] = 0.5f * weights[i] + 0.5f * expected[i];
        exchange(*own, weights, 0.5f);
        EXPECT_EQ(weights, expected);
        EXPECT_EQ(own->lastUpdate(), static_cast<std::uint64_t>(turn * workers + w + 1));
        done[static_cast<std::size_t>(w)].give();
      }
      const CenterCounts counts = own->counts();
      EXPECT_EQ(counts.ownUpdates, static_cast<std::uint64_t>(turns));
      EXPECT_EQ(counts.bytes, turns * 3 * count * sizeof(float));
      return true;
    }));
  std::vector<std::vector<double>> weights;
  for (int w = 0; w < workers; ++w) {
    const std::vector<float> values = valuesOf(w);
    weights.emplace_back(values.begin(), values.end());
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (int w = 0; w < workers; ++w) {
      go[static_cast<std::size_t>(w)].give();
      done[static_cast<std::size_t>(w)].await();
      for (std::size_t i = 0; i < count; ++i) {
        double& own = weights[static_cast<std::size_t>(w)][i];
        const double difference = 0.5 * (own - center[i]);
        own -= difference;
        center[i] += difference;
      }
    }
  }
  for (test::ChildProcess& process : processes) EXPECT_EQ(process.wait(), 0);
  std::vector<float> now(count);
  const auto reader = connectBy(Route::mapped, keeper.id(), count);
  reader->read(now.data());
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(now[i], static_cast<float>(center[i])) << i;
  EXPECT_EQ(reader->counts().updates, static_cast<std::uint64_t>(turns * workers));
  EXPECT_TRUE(test::eventually([&] { return reader->counts().workers == 1; }));
}

/// With alpha = 1 a worker and the center change places, so whatever the order, all numbers are still there.
TEST_P(CenterTest, AllAtOnceLoseNothingUnderLocks) {
  const auto [route, isLocked, workers] = GetParam();
  constexpr int times = 20;
  const Keeper keeper(count, {.isLocked = isLocked, .timeout = patience}, {}, valuesOf(workers).data());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::vector<test::ChildProcess> processes;
  for (int w = 0; w < workers; ++w)
    processes.push_back(startWorker([&, w] {
      std::vector<float> weights = valuesOf(w);
      const auto own = connectBy(route, keeper.id(), count);
      for (int i = 0; i < times; ++i) exchange(*own, weights, 1.0f);
      double sum = 0;
      for (const float weight : weights) sum += weight;
      return ::write(ends[1], &sum, sizeof sum) == sizeof sum;
    }));
  for (test::ChildProcess& process : processes) EXPECT_EQ(process.wait(), 0);
  double sum = 0, expected = 0;
  for (int w = 0; w < workers; ++w) {
    double one = 0;
    ASSERT_EQ(::read(ends[0], &one, sizeof one), static_cast<ssize_t>(sizeof one));
    sum += one;
  }
  std::vector<float> now(count);
  const auto reader = connectBy(Route::mapped, keeper.id(), count);
  reader->read(now.data());
  for (const float value : now) sum += value;
  for (int w = 0; w <= workers; ++w)
    for (const float value : valuesOf(w)) expected += value;
  if (isLocked || workers == 1) {
    EXPECT_EQ(sum, expected);
  }
  // Without locks an update may be lost, but every number is one that somebody had.
  for (const float value : now) ASSERT_TRUE(value >= 0 && value < 512 && value == static_cast<int>(value)) << value;
  EXPECT_EQ(reader->counts().updates, static_cast<std::uint64_t>(workers * times));
  ::close(ends[0]);
  ::close(ends[1]);
}

/// Workers that map a center of one shard leave its lock for moments only; one that the keeper serves gets it too.
TEST(CenterFairness, GreedyWorkersDoNotKeepOthersOut) {
  constexpr std::size_t shard = CenterMemory::shardElements;
  constexpr int times = 50;
  const Keeper keeper(shard, {.timeout = patience});
  const Signal begun;
  std::vector<test::ChildProcess> greedy;
  for (int w = 0; w < 3; ++w)
    greedy.push_back(startWorker([&] {
      std::vector<float> weights(shard, 1.0f);
      const auto own = connectBy(Route::mapped, keeper.id(), shard);
      begun.give();
      for (;;) exchange(*own, weights, 0.5f);
      return true;
    }));
  for (int w = 0; w < 3; ++w) begun.await();
  for (const Route route : {Route::tcp, Route::mapped}) {
    std::vector<float> weights(shard, 1.0f);
    const auto own = connectBy(route, keeper.id(), shard);
    for (int i = 0; i < times; ++i) exchange(*own, weights, 0.5f);
    EXPECT_EQ(own->counts().ownUpdates, static_cast<std::uint64_t>(times));
  }
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const Route route : {Route::mapped, Route::unixSocket, Route::tcp})
    for (const bool isLocked : {true, false})
      for (const int workers : {1, 2, 3, 6}) cases.push_back({route, isLocked, workers});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Routes, CenterTest, testing::ValuesIn(allCases()), caseName);

}  // namespace
}  // namespace tacc
