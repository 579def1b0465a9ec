// How posts are written, against machines of known speed.
#include "engine/shm/post_policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace tacc::test {
namespace {

/// Makes `calls` calls that take `seconds(stream)` on the slowest rank; returns how many of the last half streamed.
int runCalls(PostPolicyTuner& tuner, int calls, const std::function<double(bool)>& seconds, std::size_t bytes = 4096,
             Collective collective = Collective::broadcast) {
  int streamed = 0;
  for (int i = 0; i < calls; ++i) {
    const PostPolicyTuner::Choice choice = tuner.choose(collective, bytes);
    if (choice.isTimed) PostPolicyTuner::record(choice, seconds(choice.stream));
    if (i >= calls / 2) streamed += choice.stream;
  }
  return streamed;
}

double nearCores(bool stream) { return stream ? 0.60e-6 : 0.33e-6; }
double farCores(bool stream) { return stream ? 0.65e-6 : 1.35e-6; }

TEST(PostPolicyTuner, settlesOnTheFaster) {
  for (const int ranks : {2, 16}) {
    PostPolicyTuner tuner(ranks);
    EXPECT_LE(runCalls(tuner, 2000, nearCores), 20) << ranks;
    PostPolicyTuner other(ranks);
    EXPECT_GE(runCalls(other, 2000, farCores), 980) << ranks;
  }
}

TEST(PostPolicyTuner, followsCoresThatMove) {
  PostPolicyTuner tuner(2);
  runCalls(tuner, 500, nearCores);
  EXPECT_GE(runCalls(tuner, 4000, farCores), 1900);
  EXPECT_LE(runCalls(tuner, 4000, nearCores), 100);
}

TEST(PostPolicyTuner, tellsSizesAndCollectivesApart) {
  PostPolicyTuner tuner(2);
  runCalls(tuner, 500, nearCores, 2048);
  runCalls(tuner, 500, farCores, 16384);
  EXPECT_LE(runCalls(tuner, 100, nearCores, 2048), 5);
  EXPECT_GE(runCalls(tuner, 100, farCores, 16384), 45);
  EXPECT_GE(runCalls(tuner, 1000, farCores, 2048, Collective::gather), 480);
}

/// Or a rank would look for the times of another call than the one that was timed there.
TEST(PostPolicyTuner, timesTheSameCallsWhateverTheyTook) {
  std::array<PostPolicyTuner, 2> ranks{PostPolicyTuner(2), PostPolicyTuner(2)};
  for (int i = 0; i < 1000; ++i) {
    const std::size_t bytes = i % 3 == 0 ? 1024 : 8192;
    const std::array choices{ranks[0].choose(Collective::scatter, bytes), ranks[1].choose(Collective::scatter, bytes)};
    ASSERT_EQ(choices[0].isTimed, choices[1].isTimed) << i;
    if (choices[0].isTimed && i % 5 != 0) PostPolicyTuner::record(choices[0], nearCores(choices[0].stream));
    if (choices[1].isTimed) PostPolicyTuner::record(choices[1], farCores(choices[1].stream));
  }
}

}  // namespace
}  // namespace tacc::test
