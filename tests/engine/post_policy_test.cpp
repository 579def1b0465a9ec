// How posts are written, against machines of known speed.
#include "engine/shm/post_policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/shm/timed_rows.hpp"

namespace tacc::test {
namespace {

/// Makes `calls` calls that take `seconds(stream)` each on the slowest rank; returns how many of the last half
/// streamed.
int runCalls(PostPolicyTuner& tuner, int calls, const std::function<double(bool)>& seconds, std::size_t bytes = 4096,
             Collective collective = Collective::broadcast) {
  int streamed = 0;
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    const PostPolicyTuner::Choice choice = tuner.choose(collective, bytes);
    if (choice.isFirst) sum = 0;
    sum += seconds(choice.stream);
    if (choice.isLast) PostPolicyTuner::record(choice, sum);
    if (i >= calls / 2) streamed += choice.stream;
  }
  return streamed;
}

double nearCores(bool stream) { return stream ? 0.60e-6 : 0.33e-6; }
double farCores(bool stream) { return stream ? 0.65e-6 : 1.35e-6; }

TEST(PostPolicyTuner, settlesOnTheFaster) {
  for (const int ranks : {2, 64}) {
    PostPolicyTuner tuner(ranks);
    EXPECT_LE(runCalls(tuner, 40'000, nearCores), 400) << ranks;
    PostPolicyTuner other(ranks);
    EXPECT_GE(runCalls(other, 40'000, farCores), 19'500) << ranks;
  }
}

TEST(PostPolicyTuner, followsCoresThatMove) {
  PostPolicyTuner tuner(2);
  runCalls(tuner, 2000, nearCores);
  EXPECT_GE(runCalls(tuner, 40'000, farCores), 19'000);
  EXPECT_LE(runCalls(tuner, 40'000, nearCores), 1000);
}

TEST(PostPolicyTuner, tellsSizesAndCollectivesApart) {
  PostPolicyTuner tuner(2);
  runCalls(tuner, 2000, nearCores, 2048);
  runCalls(tuner, 2000, farCores, 16384);
  EXPECT_LE(runCalls(tuner, 320, nearCores, 2048), 32);
  EXPECT_GE(runCalls(tuner, 320, farCores, 16384), 128);
  EXPECT_GE(runCalls(tuner, 4000, farCores, 2048, Collective::gather), 1900);
}

/// What else is called in between would count as theirs.
TEST(PostPolicyTuner, timesNoRowThatOtherCallsInterrupt) {
  PostPolicyTuner tuner(2);
  for (int i = 0; i < 5000; ++i) {
    const PostPolicyTuner::Choice choice = tuner.choose(Collective::gather, i % 20 == 0 ? 1024 : 8192);
    ASSERT_FALSE(choice.isLast) << i;
  }
}

/// Who gives is ahead of who takes, whose times it learns late: at up to as many calls as there are lines.
TEST(TimedRows, areJudgedWhereOthersTellLate) {
  for (const int late : {0, 1, 8, 40, 64, 100}) {
    PostPolicyTuner tuner(2);
    TimedRows rows;
    std::vector<std::pair<std::uint32_t, double>> times;  // of the taker: of each row, and the last call of it
    double sum = 0;
    int streamed = 0, judged = 0;
    for (int i = 0; i < 8000; ++i) {
      const PostPolicyTuner::Choice choice = tuner.choose(Collective::broadcast, 4096);
      if (choice.isFirst) {
        sum = 0;
        rows.judge([&](std::uint32_t row, std::uint32_t lastCall) -> std::optional<float> {
          EXPECT_EQ(times.at(row).first, lastCall);
          if (static_cast<int>(lastCall) + late > i) return std::nullopt;
          ++judged;
          return static_cast<float>(times[row].second);
        });
      }
      sum += nearCores(choice.stream);
      if (choice.isLast) {
        times.emplace_back(i, sum);
        rows.add(choice, static_cast<std::uint32_t>(i));
      }
      if (i >= 4000) streamed += choice.stream;
    }
    EXPECT_GE(judged, static_cast<int>(times.size()) - 5) << late;
    EXPECT_LE(streamed, 200) << late;
  }
}

/// Those that are told too late are left out, and others told in time are judged again.
TEST(TimedRows, forgetWhatNobodyTells) {
  PostPolicyTuner tuner(2);
  TimedRows rows;
  const PostPolicyTuner::Choice choice = tuner.choose(Collective::broadcast, 4096);
  std::vector<std::uint32_t> asked;
  for (std::uint32_t row = 0; row < 10; ++row) rows.add(choice, 32 * row);
  const auto judge = [&](std::uint32_t told) {
    asked.clear();
    rows.judge([&](std::uint32_t row, std::uint32_t lastCall) -> std::optional<float> {
      EXPECT_EQ(lastCall, 32 * row);
      asked.push_back(row);
      return row < told ? std::optional<float>(1.0F) : std::nullopt;
    });
  };
  judge(0);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{6}));
  judge(8);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{6, 7, 8}));
  judge(10);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{8, 9}));
  EXPECT_EQ(rows.next(), 10U);
}

/// Or a rank would look for the times of other calls than those that were timed there.
TEST(PostPolicyTuner, timesTheSameCallsWhateverTheyTook) {
  std::array<PostPolicyTuner, 2> ranks{PostPolicyTuner(2), PostPolicyTuner(2)};
  int timed = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t bytes = i / 100 % 3 == 0 ? 1024 : 8192;
    const std::array choices{ranks[0].choose(Collective::scatter, bytes), ranks[1].choose(Collective::scatter, bytes)};
    ASSERT_EQ(choices[0].isFirst, choices[1].isFirst) << i;
    ASSERT_EQ(choices[0].isLast, choices[1].isLast) << i;
    if (!choices[0].isLast) continue;
    ++timed;
    if (timed % 5 != 0) PostPolicyTuner::record(choices[0], nearCores(choices[0].stream));
    PostPolicyTuner::record(choices[1], farCores(choices[1].stream));
  }
  EXPECT_GE(timed, 150);
}

}  // namespace
}  // namespace tacc::test
