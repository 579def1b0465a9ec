// The choice that measured times correct, with invented times: it finds what is fastest, stays there, and every rank
// does what every other does. What links do is in dynamic_links_test.cpp.
#include "selection/online/call_tuner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "choosing_ranks.hpp"

namespace tacc::test {
namespace {

using Event = CallTuner::Event;
using Reason = CallTuner::Reason;

constexpr int options = 5;

CallTuner ofLinks(int period = 0, double expected = 1, int count = options) {
  return {CallTuner::Kind::ofLinks, allOptions(count), expected, period};
}

ChoosingRanks ranksOfLinks(const CallTuner& choice, TimeOf timeOf, double noise, unsigned seed = 1) {
  return {3, choice, std::move(timeOf), noise, seed};
}

TEST(CallTunerOfLinks, StaysWhereTheModelIsRight) {
  for (const int period : {0, 17, 100})
    for (unsigned seed = 0; seed < 20; ++seed) {
      // Some are faster; as long as nothing changes, that is the model's affair.
      const auto time = [](int option, std::uint64_t) { return 1.0 - 0.1 * option; };
      ChoosingRanks ranks = ranksOfLinks(ofLinks(period), time, 0.1, seed);
      ranks.calls(5000);
      EXPECT_EQ(ranks.choice().explorations(), 0u);
    }
}

TEST(CallTunerOfLinks, TakesTheBestWhereTheModelIsWrong) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto time = [](int option, std::uint64_t) { return option == 3 ? 1.2 : 2.0; };
    ChoosingRanks ranks = ranksOfLinks(ofLinks(), time, 0.1, seed);
    ranks.callsUntilExplored(50);
    EXPECT_EQ(ranks.settled(), 3);
    const CallTuner::Cause& cause = ranks.choice().cause();
    EXPECT_EQ(cause.reason, Reason::slower);
    EXPECT_EQ(cause.before, 0);
    EXPECT_NEAR(cause.measured, 2.0, 0.2);
    EXPECT_EQ(cause.expected, 1.0);
  }
}

/// Whenever the step comes: within 50 calls another option is settled, for good.
TEST(CallTunerOfLinks, ReplacesWithin50CallsOfAStep) {
  for (std::uint64_t step = 20; step < 120; ++step) {
    const auto time = [step](int option, std::uint64_t call) {
      if (call < step) return option == 0 ? 1.0 : 1.05 + 0.1 * option;
      return option == 0 ? 2.3 : option == 2 ? 1.35 : 2.0;
    };
    ChoosingRanks ranks = ranksOfLinks(ofLinks(0, 0.9), time, 0.1, static_cast<unsigned>(step));
    ranks.calls(step + 50);
    EXPECT_EQ(ranks.settled(), 2) << "step at " << step;
    ranks.calls(1000);
    EXPECT_EQ(ranks.settled(), 2);
    EXPECT_EQ(ranks.switches(), 1);
  }
}

/// The steps of a slow drift are each smaller than noise.
TEST(CallTunerOfLinks, WhatChangesLittleByLittleIsNoticedToo) {
  const auto time = [](int option, std::uint64_t call) {
    return option == 0 ? 1 + static_cast<double>(call) / 2000 : 1.1;
  };
  ChoosingRanks ranks = ranksOfLinks(ofLinks(), time, 0.05);
  ranks.calls(1000);
  EXPECT_NE(ranks.settled(), 0);
}

TEST(CallTunerOfLinks, ReturnsWhenTheLinkIsFastAgain) {
  for (const bool isFelt : {true, false})
    for (std::uint64_t end = 200; end < 260; ++end) {
      const auto time = [&](int option, std::uint64_t call) {
        const bool isSlow = call >= 100 && call < end;
        if (option == 0) return isSlow ? 4.0 : 1.0;
        return option == 1 ? (isSlow || !isFelt ? 2.0 : 1.3) : 5.0;
      };
      ChoosingRanks ranks = ranksOfLinks(ofLinks(), time, 0.05, static_cast<unsigned>(end));
      ranks.calls(end);
      EXPECT_EQ(ranks.settled(), 1);
      // What does not feel it hears of it when the model's choice is tried again.
      ranks.calls(isFelt ? 50 : 2 * (end - 100));
      EXPECT_EQ(ranks.settled(), 0) << end << isFelt;
    }
}

TEST(CallTunerOfLinks, NeverOscillatesAmongEquals) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    // Something else makes all of them slow for a while, so that there are explorations.
    const auto time = [](int, std::uint64_t call) { return call >= 500 && call < 600 ? 3.0 : 1.0; };
    ChoosingRanks ranks = ranksOfLinks(ofLinks(), time, 0.1, seed);
    ranks.calls(10000);
    EXPECT_GE(ranks.choice().explorations(), 2u);
    EXPECT_LE(ranks.switches(), 2) << seed;
  }
}

/// However bad the other options are.
TEST(CallTunerOfLinks, ReviewsCostLittle) {
  const auto time = [](int option, std::uint64_t call) {
    if (call >= 200) return option == 4 ? 1.0 : 3.0;
    return option == 0 ? 1.0 : 2.0;
  };
  ChoosingRanks ranks = ranksOfLinks(ofLinks(), time, 0.1);
  ranks.calls(1000);
  const double before = ranks.spent();
  ranks.calls(50'000);
  EXPECT_GT(ranks.choice().explorations(), 20u);
  EXPECT_LT(ranks.spent() - before, 1.03 * 50'000);
}

/// Even where times change without end: rests double.
TEST(CallTunerOfLinks, ExploringIsBoundedWhereTimesNeverSettle) {
  std::mt19937 random(3);
  std::vector<double> level;
  for (int i = 0; i < 1000; ++i) level.push_back(std::uniform_real_distribution<double>(0.5, 5)(random));
  ChoosingRanks ranks = ranksOfLinks(
      ofLinks(), [&](int, std::uint64_t call) { return level[call / 20 % 1000]; }, 0.1);
  ranks.calls(20'000);
  EXPECT_LE(ranks.choice().explorations(), 60u);
}

TEST(CallTunerOfLinks, AnExplorationHasABoundedNumberOfCalls) {
  CallTuner choice = ofLinks(0, 1, 50);
  std::set<int> ran;
  int calls = 0;
  for (Event event = Event::none; event != Event::kept && event != Event::switched; ++calls) {
    ASSERT_LT(calls, 14 + 32);
    ran.insert(choice.option());
    if (choice.record(2.0)) event = choice.agree();
  }
  EXPECT_EQ(ran.size(), 17u);
}

/// Three calls in each of many places, too: whatever part of a window they are.
TEST(CallTunerOfLinks, ASingleDisturbanceIsForgotten) {
  for (std::uint64_t at = 30; at < 60; ++at) {
    const auto time = [at](int, std::uint64_t call) { return call >= at && call < at + 3 ? 50.0 : 1.0; };
    ChoosingRanks ranks = ranksOfLinks(ofLinks(), time, 0.1);
    ranks.calls(200);
    EXPECT_EQ(ranks.choice().explorations(), 0u) << at;
  }
}

/// Links let the first bytes pass at once, so the first calls of all are shorter than those that follow.
TEST(CallTunerOfLinks, ABurstIsNotWhatIsExpected) {
  const auto time = [](int, std::uint64_t call) { return call < 4 ? 0.3 : 1.0; };
  ChoosingRanks ranks = ranksOfLinks(ofLinks(0, 0.9), time, 0.1);
  ranks.calls(200);
  EXPECT_EQ(ranks.choice().explorations(), 0u);
  EXPECT_NEAR(ranks.choice().settled().seconds, 1.0, 0.1);
}

TEST(CallTunerOfLinks, LongPeriodsTellOfTheirLastCalls) {
  CallTuner choice = ofLinks(40);
  for (int period = 0; period < 3; ++period) {
    for (int call = 1; call <= 40; ++call) EXPECT_EQ(choice.record(call > 32 ? 1.1 : 9.0), call == 40) << call;
    EXPECT_EQ(choice.agree(), Event::none);
  }
  EXPECT_DOUBLE_EQ(choice.settled().seconds, 1.1);
}

TEST(CallTunerOfLinks, WithoutOtherOptionsTheOldOneStays) {
  CallTuner choice(CallTuner::Kind::ofLinks, {7}, 1.0, 0);
  for (int call = 0; call < 100; ++call) {
    EXPECT_EQ(choice.option(), 7);
    if (choice.record(3.0)) choice.agree();
  }
  EXPECT_DOUBLE_EQ(choice.settled().seconds, 3.0);
}

}  // namespace
}  // namespace tacc::test
