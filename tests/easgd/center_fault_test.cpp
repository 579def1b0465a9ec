// What holds when a worker of a center, or the process that keeps it, dies or stops: the others go on, or are told who
// it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "center_team.hpp"
#include "easgd/center.hpp"
#include "easgd/center_memory.hpp"

namespace tacc {
namespace {

using test::connectBy;
using test::exchange;
using test::failureOf;
using test::Keeper;
using test::patience;
using test::Route;
using test::Signal;
using test::startWorker;
using testing::AllOf;
using testing::HasSubstr;

class CenterFault : public testing::TestWithParam<Route> {};
std::string routeName(const testing::TestParamInfo<Route>& info) { return nameOf(info.param); }
INSTANTIATE_TEST_SUITE_P(Routes, CenterFault, testing::Values(Route::mapped, Route::unixSocket, Route::tcp), routeName);

constexpr std::size_t count = 5 * CenterMemory::shardElements + 17;

/// No two workers ever have the same number at one place.
std::vector<float> valuesOf(int worker) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(100 * worker + static_cast<int>(i % 100));
  return values;
}

void expectNumbersOfWorkers(const std::vector<float>& numbers) {
  for (std::size_t i = 0; i < count; ++i) {
    const int number = static_cast<int>(numbers[i]);
    ASSERT_TRUE(static_cast<float>(number) == numbers[i] && number % 100 == static_cast<int>(i % 100) && number >= 0)
        << numbers[i] << " at " << i;
  }
}

/// A process that exchanges with alpha = 1 without end, so that each number goes from hand to hand.
test::ChildProcess startTireless(Route route, const taccUniqueId& id, int worker, const Signal& begun) {
  return startWorker([&, route, worker] {
    std::vector<float> weights = valuesOf(worker);
    const auto own = connectBy(route, id, count);
    begun.give();
    for (;;) {
      exchange(*own, weights, 1.0f);
      expectNumbersOfWorkers(weights);
      if (testing::Test::HasFailure()) return false;
    }
  });
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

TEST_P(CenterFault, WorkersThatAreKilledAtDrawnMomentsCostTheOthersNothing) {
  const char* const wanted = std::getenv("CENTER_ROUNDS");
  const int rounds = wanted == nullptr ? 120 : std::atoi(wanted);
  std::mt19937 random(4711);
  const Keeper keeper(count, {.timeout = patience}, {}, valuesOf(0).data());
  std::vector<float> weights = valuesOf(1);
  const auto survivor = connectBy(GetParam(), keeper.id(), count);
  std::vector<float> farWeights = valuesOf(2);
  const auto far = connectBy(Route::tcp, keeper.id(), count);
  for (int round = 0; round < rounds; ++round) {
    const Signal begun;
    test::ChildProcess victim = startTireless(GetParam(), keeper.id(), 3 + round, begun);
    begun.await();
    const double end = seconds() + 1e-6 * static_cast<double>(random() % 3000);
    while (seconds() < end) exchange(*survivor, weights, 1.0f);
    victim.kill();
    exchange(*survivor, weights, 1.0f);
    exchange(*far, farWeights, 1.0f);
    expectNumbersOfWorkers(weights);
    expectNumbersOfWorkers(farWeights);
    EXPECT_EQ(victim.wait(), -SIGKILL);
    if (HasFailure()) break;
  }
  std::vector<float> now(count);
  far->read(now.data());
  expectNumbersOfWorkers(now);
  EXPECT_TRUE(test::eventually([&] { return far->counts().workers == 2; }));
  RecordProperty("inherited", static_cast<int>(far->counts().inherited));
}

TEST_P(CenterFault, AStoppedWorkerDelaysOthersUntilTheTimeOutAtMostAndIsNamed) {
  // Where it holds no lock when it is stopped, it delays nobody: it is stopped until it does.
  constexpr int rounds = 2000;
  const Keeper keeper(count, {.timeout = 0.1}, {}, valuesOf(0).data());
  const Signal begun;
  test::ChildProcess stopped = startTireless(Route::mapped, keeper.id(), 1, begun);
  begun.await();
  std::vector<float> weights = valuesOf(2);
  const auto own = connectBy(GetParam(), keeper.id(), count, 0.1);
  std::mt19937 random(42);
  std::string message;
  for (int round = 0; round < rounds && message.empty(); ++round) {
    ::usleep(static_cast<useconds_t>(random() % 500));
    stopped.kill(SIGSTOP);
    int status = 0;
    ::waitpid(stopped.pid(), &status, WUNTRACED);
    try {
      exchange(*own, weights, 1.0f);
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccTimeout) << error.what();
      const std::string text = error.what();  // on a slow machine of somebody else, too
      if (text.find(fmt::format("process {},", stopped.pid())) != std::string::npos) message = text;
    }
    expectNumbersOfWorkers(weights);
    stopped.kill(SIGCONT);
  }
  EXPECT_THAT(message, AllOf(HasSubstr(fmt::format("process {}, stopped (SIGSTOP)", stopped.pid())),
                             HasSubstr("of the center locked for 0.1 s")));
  // Now with time enough, also for a machine that is busy.
  stopped.kill();
  const auto another = connectBy(GetParam(), keeper.id(), count);
  exchange(*another, weights, 1.0f);
  EXPECT_TRUE(test::eventually([&] {
    try {
      exchange(*own, weights, 1.0f);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccTimeout) << error.what();
      return false;
    }
  }));
  expectNumbersOfWorkers(weights);
}

TEST_P(CenterFault, AWorkerThatStopsInTheMidstOfATransferHindersNobody) {
  const Keeper keeper(count, {.isLocked = false, .timeout = patience}, {}, valuesOf(0).data());
  std::vector<test::ChildProcess> stopped;
  const Signal begun;
  for (int worker = 1; worker <= 3; ++worker) stopped.push_back(startTireless(GetParam(), keeper.id(), worker, begun));
  for (int worker = 1; worker <= 3; ++worker) begun.await();
  std::mt19937 random(7);
  for (const test::ChildProcess& process : stopped) {
    ::usleep(static_cast<useconds_t>(random() % 2000));
    process.kill(SIGSTOP);
    int status = 0;
    ::waitpid(process.pid(), &status, WUNTRACED);
  }
  std::vector<float> weights = valuesOf(4);
  const auto own = connectBy(GetParam(), keeper.id(), count);
  for (int i = 0; i < 20; ++i) exchange(*own, weights, 1.0f);
  EXPECT_EQ(own->counts().workers, 4);
  // They go on as if nothing had been.
  const std::uint64_t before = own->counts().updates;
  for (const test::ChildProcess& process : stopped) process.kill(SIGCONT);
  EXPECT_TRUE(test::eventually([&] { return own->counts().updates > before + 10; }));
  for (const test::ChildProcess& process : stopped) process.kill();
  exchange(*own, weights, 1.0f);
  expectNumbersOfWorkers(weights);
}

/// `end`: what becomes of the keeper.
template <class End>
std::string howItEnds(Route route, const End& end) {
  const Keeper keeper(count, {.timeout = patience});
  std::vector<float> weights(count);
  const auto own = connectBy(route, keeper.id(), count);
  exchange(*own, weights, 0.5f);
  end(keeper);
  const double start = seconds();
  std::string message;
  try {
    // A worker that maps the center looks for its keeper ten times a second.
    while (seconds() < start + patience) exchange(*own, weights, 0.5f);
    ADD_FAILURE() << "it still works";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccRemoteError) << error.what();
    message = error.what();
  }
  EXPECT_LT(seconds() - start, 20);
  const std::string name = fmt::format("process {}", keeper.process().pid());
  EXPECT_THAT(message, HasSubstr(name));
  EXPECT_THAT(failureOf(taccRemoteError, [&] { own->read(weights.data()); }), HasSubstr(name));
  EXPECT_THAT(failureOf(taccRemoteError, [&] { (void)own->counts(); }), HasSubstr(name));
  // And who comes now is told at once.
  EXPECT_THAT(failureOf(taccRemoteError, [&] { (void)connectBy(route, keeper.id(), count); }),
              HasSubstr("has ended, or it destroyed the center"));
  return message;
}

TEST_P(CenterFault, TheDeathOfTheKeeperIsToldWithItsName) {
  EXPECT_THAT(howItEnds(GetParam(), [](const Keeper& keeper) { keeper.process().kill(); }), HasSubstr("has ended"));
}

TEST_P(CenterFault, AKeeperThatIsKilledAtDrawnMomentsIsNamedByAll) {
  constexpr int rounds = 12, workers = 2;
  std::mt19937 random(815);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const Keeper keeper(count, {.timeout = patience});
    const Signal begun;
    std::vector<test::ChildProcess> processes;
    for (int worker = 0; worker < workers; ++worker)
      processes.push_back(startWorker([&] {
        std::vector<float> weights(count);
        const auto own = connectBy(GetParam(), keeper.id(), count);
        begun.give();
        EXPECT_THAT(failureOf(taccRemoteError,
                              [&] {
                                for (const double end = seconds() + patience; seconds() < end;)
                                  exchange(*own, weights, 0.5f);
                              }),
                    HasSubstr(fmt::format("process {}", keeper.process().pid())));
        return true;
      }));
    for (int worker = 0; worker < workers; ++worker) begun.await();
    ::usleep(static_cast<useconds_t>(random() % 3000));
    keeper.process().kill();
    for (test::ChildProcess& process : processes) EXPECT_EQ(process.wait(), 0);
  }
}

TEST_P(CenterFault, ThatTheCenterWasDestroyedIsToldWithTheName) {
  EXPECT_THAT(howItEnds(GetParam(), [](const Keeper& keeper) { keeper.destroy(); }),
              AnyOf(HasSubstr("was destroyed by process"), HasSubstr("has ended")));
}

TEST(CenterFaultOfLocks, TheDeathOfTheKeeperEndsAWaitForOne) {
  const Keeper keeper(count, {.timeout = patience});
  std::vector<float> weights = valuesOf(2);
  const auto brief = connectBy(Route::mapped, keeper.id(), count, 0.1);
  brief->write(valuesOf(0).data());
  const Signal begun;
  test::ChildProcess stopped = startTireless(Route::mapped, keeper.id(), 1, begun);
  begun.await();
  // Until it is stopped with a lock in its hands.
  bool isHeld = false;
  std::mt19937 random(43);
  for (int round = 0; round < 2000 && !isHeld; ++round) {
    ::usleep(static_cast<useconds_t>(random() % 500));
    stopped.kill(SIGSTOP);
    int status = 0;
    ::waitpid(stopped.pid(), &status, WUNTRACED);
    try {
      exchange(*brief, weights, 1.0f);
    } catch (const Error&) {
      isHeld = true;
    }
    if (!isHeld) stopped.kill(SIGCONT);
  }
  ASSERT_TRUE(isHeld);
  const auto own = connectBy(Route::mapped, keeper.id(), count);
  std::thread killer([&] {
    ::usleep(300'000);
    keeper.process().kill();
  });
  const double start = seconds();
  EXPECT_THAT(failureOf(taccRemoteError, [&] { exchange(*own, weights, 1.0f); }),
              HasSubstr(fmt::format("process {}", keeper.process().pid())));
  EXPECT_LT(seconds() - start, patience / 2);
  killer.join();
}

TEST_P(CenterFault, AStoppedKeeperIsNamedByWorkersThatNeedItAndTheyGoOnAfterwards) {
  const Keeper keeper(count, {.timeout = patience});
  std::vector<float> weights(count, 64.0f);
  const auto own = connectBy(GetParam(), keeper.id(), count, 0.2);
  keeper.stop();
  EXPECT_THAT(failureOf(taccTimeout, [&] { (void)connectBy(GetParam(), keeper.id(), count, 0.2); }),
              HasSubstr("does not answer"));
  if (GetParam() == Route::mapped) {
    exchange(*own, weights, 0.5f);
    EXPECT_THAT(weights, testing::Each(32.0f));
    return;
  }
  const std::string message = failureOf(taccTimeout, [&] { exchange(*own, weights, 0.5f); });
  EXPECT_THAT(message, AllOf(HasSubstr(fmt::format("process {}", keeper.process().pid())),
                             HasSubstr("stopped (SIGSTOP)"), HasSubstr("has not answered for 0.2 s")));
  EXPECT_THAT(weights, testing::Each(64.0f));
  keeper.process().kill(SIGCONT);
  // What it answers now to the exchange that was given up belongs to nothing any more.
  std::vector<float> now(count);
  EXPECT_TRUE(test::eventually([&] {
    try {
      own->read(now.data());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccTimeout) << error.what();
      return false;
    }
  }));
  for (const float value : now) ASSERT_TRUE(value == 0.0f || value == 32.0f) << value;
  const std::vector<float> before = weights;
  exchange(*own, weights, 0.5f);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(weights[i], 0.5f * (before[i] + now[i])) << i;
}

TEST_P(CenterFault, ASinkThatThrowsLeavesTheWorkerUsable) {
  const KeptCenter kept = keepCenter(count, nullptr, {.timeout = patience});
  const auto own = connectBy(GetParam(), kept.id, count);
  std::vector<float> weights(count, 8.0f);
  EXPECT_THROW(own->exchange(weights.data(), 0.5f,
                             [](std::size_t, std::size_t, const float*) { throw std::runtime_error("no more"); }),
               std::runtime_error);
  std::vector<float> now(count);
  own->write(weights.data());
  own->read(now.data());
  EXPECT_EQ(now, weights);
}

}  // namespace
}  // namespace tacc
