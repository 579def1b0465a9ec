// Which algorithms short calls try, and that their times are compared as they are. One rank is enough: agreeing leaves
// its values what they are.
#include "comm/dynamic_selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>

namespace tacc {
namespace {

using Clock = std::chrono::steady_clock;

/// Eight hosts at a switch where 64 bytes take longer than the latency: prices grow with every byte.
NetworkChooser slowSwitch(const NetworkSpeed& speed) {
  CostMachine machine;
  machine.ranks = 8;
  machine.levels = {{{0}, speed.latency, 1 / speed.bytesPerSecond, 0}};
  machine.ports = speed.bytesPerSecond;
  machine.overhead = speed.overhead;
  return NetworkChooser(machine);
}

struct Learnt {
  std::set<std::string_view> tried;
  double seconds = 0;  // that the chosen one is expected to take
};

/// Calls that all take `seconds`, whatever runs.
Learnt learn(Collective collective, std::size_t bytes, double seconds) {
  const NetworkSpeed speed{5e-6, 10e6, 1e-6};
  NetworkChooser chooser = slowSwitch(speed);
  DynamicSelection selection(chooser, 0);
  Learnt learnt;
  for (int call = 0; call < 2400; ++call) {
    selection.begin();
    learnt.tried.insert(selection.choose(chooser, collective, 0, bytes, 1).name);
    for (const auto begin = Clock::now(); Clock::now() - begin < std::chrono::duration<double>(seconds);) continue;
    if (selection.end() == DynamicSelection::Next::agreement) selection.agree();
  }
  const std::string text = selection.explain(chooser, collective, bytes, 1);
  const std::size_t at = text.find(" takes ");
  EXPECT_NE(at, std::string::npos) << text;
  if (at != std::string::npos) learnt.seconds = std::stod(text.substr(at + 7)) * 1e-3;
  return learnt;
}

TEST(DynamicSelection, CallsOfAFewBytesTakeWhatTheyTake) {
  constexpr double seconds = 30e-6;
  const Learnt learnt = learn(Collective::allReduce, 4, seconds);
  EXPECT_GE(learnt.seconds, seconds);
  EXPECT_LT(learnt.seconds, 1.5 * seconds) << "the best of many equal ones";
}

TEST(DynamicSelection, AlgorithmsWithFewMessagesAreTried) {
  for (const Collective collective : {Collective::allReduce, Collective::allGather, Collective::reduceScatter}) {
    const Learnt learnt = learn(collective, 4, 2e-6);
    EXPECT_TRUE(learnt.tried.contains("binomial")) << nameOf(collective);
    EXPECT_GE(learnt.tried.size(), 5u) << nameOf(collective);
  }
}

/// What is expected of the chosen one where in every agreement the least and the greatest of the ranks' times are
/// these.
double learnFrom(Collective collective, std::size_t bytes, double least, double most) {
  const NetworkSpeed speed{5e-6, 60e6, 1e-6};
  NetworkChooser chooser = slowSwitch(speed);
  DynamicSelection selection(chooser, 0);
  for (int call = 0; call < 6000; ++call) {
    selection.begin();
    (void)selection.choose(chooser, collective, 0, bytes, 1);
    if (selection.end() != DynamicSelection::Next::agreement) continue;
    EXPECT_EQ(selection.agreement(), collective == Collective::broadcast ? taccMax : taccMin);
    for (double& told : selection.told()) told = told < 0 ? -most : selection.agreement() == taccMax ? most : least;
    selection.agree();
  }
  const std::string text = selection.explain(chooser, collective, bytes, 1);
  return std::stod(text.substr(text.find(" takes ") + 7)) * 1e-3;
}

TEST(DynamicSelection, WhereLinksLimitTheMiddleOfTheRanksTimesCounts) {
  EXPECT_NEAR(learnFrom(Collective::allGather, 8192, 1.0e-3, 1.1e-3), 1.05e-3, 1e-6);
  // Others wait for a rank that computes for long before each call.
  EXPECT_NEAR(learnFrom(Collective::allGather, 8192, 1.0e-3, 9.0e-3), 1.2e-3, 1e-6);
  EXPECT_NEAR(learnFrom(Collective::broadcast, 8192, 1.0e-3, 1.1e-3), 1.1e-3, 1e-6);
  EXPECT_NEAR(learnFrom(Collective::allGather, 8, 1.0e-3, 1.1e-3), 1.0e-3, 1e-6) << "where processors limit, the least";
  EXPECT_NEAR(learnFrom(Collective::allGather, 1024, 1.0e-3, 1.1e-3), 1.0e-3, 1e-6) << "longer than links need";
}

}  // namespace
}  // namespace tacc
