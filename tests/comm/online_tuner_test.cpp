// Which calls try other algorithms, and which of these. One rank is enough: agreeing leaves its values what they are.
#include "comm/cluster/online_tuner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>

namespace tacc {
namespace {

using Clock = std::chrono::steady_clock;

/// Eight hosts at a switch where 64 bytes take longer than the latency: prices grow with every byte.
NetworkSelector slowSwitch(const NetworkSpeed& speed) {
  CostMachine machine;
  machine.ranks = 8;
  machine.levels = {{{0}, speed.latency, 1 / speed.bytesPerSecond, 0}};
  machine.ports = speed.bytesPerSecond;
  machine.overhead = speed.overhead;
  return NetworkSelector(machine);
}

struct Learnt {
  std::set<std::string_view> tried;
  double seconds = 0;  // that the chosen one is expected to take
  std::set<taccRedOp_t> agreements;
};

/// Calls that all take `seconds`, whatever runs: really, or by what the ranks agree on.
Learnt learn(Collective collective, std::size_t bytes, double seconds, bool isReal = false) {
  const NetworkSpeed speed{5e-6, 10e6, 1e-6};
  NetworkSelector selector = slowSwitch(speed);
  OnlineTuner selection(selector);
  Learnt learnt;
  for (int call = 0; call < 4000; ++call) {
    selection.begin();
    learnt.tried.insert(selection.choose(selector, collective, 0, bytes).name);
    for (const auto begin = Clock::now(); isReal && Clock::now() - begin < std::chrono::duration<double>(seconds);)
      continue;
    if (!selection.end()) continue;
    learnt.agreements.insert(selection.agreement());
    EXPECT_LE(selection.told().size(), CallTuner::mostTimes);
    if (!isReal) std::ranges::fill(selection.told(), seconds);
    selection.agree();
  }
  const std::string text = selection.explain(selector, collective, bytes);
  const std::size_t at = text.find(" takes ");
  if (at != std::string::npos) learnt.seconds = std::stod(text.substr(at + 7)) * 1e-3;
  return learnt;
}

TEST(OnlineTuner, CallsOfAFewBytesTakeWhatTheyTake) {
  constexpr double seconds = 30e-6;
  const Learnt learnt = learn(Collective::allReduce, 4, seconds, true);
  EXPECT_GE(learnt.seconds, seconds);
  EXPECT_LT(learnt.seconds, 1.5 * seconds) << "the best of many equal ones";
}

TEST(OnlineTuner, AlgorithmsWithFewMessagesAreTried) {
  for (const Collective collective : {Collective::allReduce, Collective::allGather, Collective::reduceScatter}) {
    const Learnt learnt = learn(collective, 4, 2e-6);
    EXPECT_TRUE(learnt.tried.contains("binomial")) << nameOf(collective);
    EXPECT_GE(learnt.tried.size(), 5u) << nameOf(collective);
  }
}

/// Where links limit the model knows best.
TEST(OnlineTuner, CallsThatLinksDecideTryNothing) {
  NetworkSelector selector = slowSwitch({5e-6, 10e6, 1e-6});
  const double seconds = selector.explain(Collective::allReduce, 0, 8192).front().seconds;
  const Learnt learnt = learn(Collective::allReduce, 8192, seconds);
  EXPECT_EQ(learnt.tried.size(), 1u);
  EXPECT_NEAR(learnt.seconds, seconds, 1e-3 * seconds);
}

/// Of broadcast and reduce some ranks are done long before others.
TEST(OnlineTuner, TheSlowestRankTellsWhereACallIsNotOverForAllAtOnce) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const Learnt learnt = learn(collective, 8, 2e-6);
    EXPECT_GE(learnt.tried.size(), 4u) << nameOf(collective);
    EXPECT_EQ(learnt.agreements, std::set<taccRedOp_t>{taccMax});
    EXPECT_EQ(learn(collective, 1 << 16, 2e-6).seconds, 0) << "long ones are not timed";
  }
  EXPECT_EQ(learn(Collective::allReduce, 8, 2e-6).agreements, std::set<taccRedOp_t>{taccMin});
}

}  // namespace
}  // namespace tacc
