// The choice that measured times correct among short calls, with invented times: rivals, trials and reviews. Calls that
// links limit are in call_tuner_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "choosing_ranks.hpp"
#include "selection/online/call_tuner.hpp"

namespace tacc::test {
namespace {

using Event = CallTuner::Event;
using Reason = CallTuner::Reason;

constexpr int options = 5;

/// Calls until the first trial, and of each trial.
constexpr int firstCalls = 192, trialCalls = 16;
constexpr int shortPeriod = 400;

CallTuner ofShort(int rivals = options, int period = shortPeriod) {
  return {CallTuner::Kind::shortCalls, allOptions(rivals), 1.0, period};
}

ChoosingRanks ranksOfShort(const CallTuner& choice, TimeOf timeOf, double noise, unsigned seed = 1) {
  return {3, choice, std::move(timeOf), noise, seed, 0.2};
}

TEST(CallTunerOfShortCalls, TriesTheRivalsAndTakesTheBest) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const int best = static_cast<int>(seed % options);
    ChoosingRanks ranks = ranksOfShort(
        ofShort(), [best](int option, std::uint64_t) { return option == best ? 1.0 : 1.3; }, 0.2, seed);
    ranks.calls(firstCalls);
    EXPECT_EQ(ranks.ranOf(0, firstCalls), firstCalls) << "a program of few calls tries nothing";
    ranks.callsUntilExplored(1000);
    EXPECT_EQ(ranks.settled(), best) << seed;
    EXPECT_EQ(ranks.choice().cause().reason, Reason::rivals);
    EXPECT_EQ(std::set(ranks.ran().begin(), ranks.ran().end()).size(), options) << "each was tried";
    ranks.calls(20);
    EXPECT_EQ(ranks.ranOf(best, 20), 20) << "and that is over";
  }
}

/// Calls of drawn times with the noise of schedulers: now and then one takes ten times as long. After the first
/// exploration what runs is nearly the best, and the whole run costs little more than it would with the best alone.
TEST(CallTunerOfShortCalls, RegretIsBoundedWhateverIsDrawn) {
  double lost = 0, saved = 0;
  int near = 0;
  constexpr int draws = 100;
  constexpr std::uint64_t calls = 20'000;
  for (unsigned seed = 0; seed < draws; ++seed) {
    std::mt19937 random(seed);
    const int rivals = 2 + static_cast<int>(seed % 15);
    std::vector<double> seconds;
    for (int i = 0; i < rivals; ++i) seconds.push_back(std::uniform_real_distribution<double>(1, 3)(random));
    const double best = *std::ranges::min_element(seconds);
    const auto time = [&](int option, std::uint64_t) {
      return seconds[static_cast<std::size_t>(option)] + (random() % 400 == 0 ? 10 : 0);
    };
    ChoosingRanks ranks = ranksOfShort(ofShort(rivals), time, 0.3, seed);
    ranks.callsUntilExplored(firstCalls + 3 * 16 * trialCalls);
    if (seconds[static_cast<std::size_t>(ranks.settled())] < 1.1 * best) ++near;
    ranks.calls(calls - ranks.ran().size());
    double total = 0;
    for (const int option : ranks.ran()) total += seconds[static_cast<std::size_t>(option)];
    EXPECT_LT(total / calls, 1.5 * best) << seed;
    lost += total / calls / best - 1;
    saved += 1 - total / calls / seconds.front();
  }
  EXPECT_GE(near, draws * 9 / 10);
  EXPECT_LT(lost / draws, 0.08);
  EXPECT_GT(saved / draws, 0.25) << "of what the model's choice takes";
}

/// Most calls try those that are close.
TEST(CallTunerOfShortCalls, FindsTheBestOfManyThatAreClose) {
  constexpr int many = 16;
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const int best = static_cast<int>(seed % many);
    // The others are 10 to 80 % behind.
    const auto time = [&](int option, std::uint64_t) {
      const int behind = (option - best + many) % many;
      return behind == 0 ? 1.0 : 1.05 + 0.05 * behind;
    };
    ChoosingRanks ranks = ranksOfShort(ofShort(many), time, 0.2, seed);
    ranks.callsUntilExplored(2000);
    EXPECT_LE((ranks.settled() - best + many) % many, 2) << seed;
    if (ranks.settled() == best) ++found;
    const int worst = (best + many - 1) % many;
    if (worst != 0) {
      EXPECT_EQ(std::ranges::count(ranks.ran(), worst), trialCalls) << "once";
    }
  }
  EXPECT_GE(found, 90);
}

TEST(CallTunerOfShortCalls, EndsWithAnyNumberOfRivals) {
  for (int count = 2; count <= 20; ++count)
    for (unsigned seed = 0; seed < 10; ++seed) {
      ChoosingRanks ranks = ranksOfShort(
          ofShort(count), [](int, std::uint64_t) { return 1.0; }, 0.3, seed);
      ranks.callsUntilExplored(firstCalls + 3 * 16 * trialCalls);
    }
  ChoosingRanks alone = ranksOfShort(
      ofShort(1), [](int, std::uint64_t) { return 1.0; }, 0.3);
  alone.calls(5000);
  EXPECT_EQ(alone.choice().explorations(), 0u);
}

/// Whatever ranks measure: ChoosingRanks compares what all of them run.
TEST(CallTunerOfShortCalls, AllRanksRunTheSame) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto time = [&](int, std::uint64_t) { return std::exp(std::normal_distribution<double>(0, 3)(random)); };
    ChoosingRanks ranks = ranksOfShort(ofShort(), time, 0.9, seed);
    ranks.calls(10'000);
    EXPECT_GT(ranks.agreements(), 10);
  }
}

TEST(CallTunerOfShortCalls, AgreesRarely) {
  ChoosingRanks ranks = ranksOfShort(
      ofShort(), [](int, std::uint64_t) { return 1.0; }, 0.3);
  ranks.calls(20'000);
  EXPECT_LT(static_cast<std::uint64_t>(ranks.agreements()), 20'000 / shortPeriod + 3 * ranks.choice().explorations());
  EXPECT_LT(ranks.choice().explorations(), 10u) << "noise is no reason";
}

TEST(CallTunerOfShortCalls, LeavesWhatBecameSlow) {
  const auto time = [](int option, std::uint64_t call) {
    if (call < 3000) return option == 2 ? 1.0 : 1.5;
    return option == 2 ? 4.0 : option == 3 ? 1.5 : 2.5;
  };
  ChoosingRanks ranks = ranksOfShort(ofShort(), time, 0.2);
  ranks.calls(3000);
  EXPECT_EQ(ranks.settled(), 2);
  ranks.calls(3000);
  EXPECT_EQ(ranks.settled(), 3);
  ranks.calls(5000);
  EXPECT_EQ(ranks.settled(), 3) << "for good";
}

/// The scheduler's phases last longer than an exploration, so the fastest while the first calls run is not always the
/// one that is the fastest on the whole.
TEST(CallTunerOfShortCalls, PhasesCostLittle) {
  double fixed = 0, chosen = 0, best = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::array<double, options>> phases(60);
    for (auto& phase : phases)
      for (double& level : phase) level = std::uniform_real_distribution<double>(0.8, 1.4)(random);
    const auto time = [&](int option, std::uint64_t call) {
      return phases[call / 4000 % phases.size()][static_cast<std::size_t>(option)] - (option == 2 ? 0.1 : 0);
    };
    ChoosingRanks ranks = ranksOfShort(ofShort(), time, 0.2, seed);
    ranks.callsUntilExplored(2000);
    const int first = ranks.settled();
    const std::size_t begin = ranks.ran().size();
    ranks.calls(60'000);
    for (std::size_t call = begin; call < ranks.ran().size(); ++call) {
      fixed += time(first, call);
      chosen += time(ranks.ran()[call], call);
      best += time(2, call);
    }
  }
  EXPECT_LT(chosen, 0.97 * fixed) << "to stay with what was the fastest at first costs more";
  EXPECT_LT(chosen, 1.03 * best) << "than the best one on the whole";
}

/// Some options are fast only in the first calls after another one's, which is what trials are.
TEST(CallTunerOfShortCalls, WhatIsFastOnlyInTrialsIsLeft) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    int last = -1, since = 0;
    const auto time = [&](int option, std::uint64_t) {
      since = option == last ? since + 1 : 0;
      last = option;
      if (option == 1) return since < 100 ? 0.93 : 1.5;
      return option == 2 ? 1.0 : 1.3;
    };
    ChoosingRanks ranks = ranksOfShort(ofShort(), time, 0.1, seed);
    ranks.calls(5000);
    EXPECT_EQ(ranks.settled(), 2) << seed;
    ranks.calls(50'000);
    EXPECT_GT(ranks.ranOf(2, 50'000), 45'000);
  }
}

/// However bad they are: what took 1.5 times as long is left alone.
TEST(CallTunerOfShortCalls, ReviewsTryNothingHopeless) {
  const auto time = [](int option, std::uint64_t) { return option < 2 ? 1.0 + 0.2 * option : 3.0; };
  ChoosingRanks ranks = ranksOfShort(ofShort(), time, 0.1);
  ranks.callsUntilExplored(2000);
  const std::size_t before = ranks.ran().size();
  ranks.calls(20'000);
  for (int option = 2; option < options; ++option)
    EXPECT_EQ(std::count(ranks.ran().begin() + static_cast<std::ptrdiff_t>(before), ranks.ran().end(), option), 0);
  EXPECT_GT(ranks.ranOf(1, 20'000), 0);
}

/// Trying the best ones again costs little, and ever less.
TEST(CallTunerOfShortCalls, ReviewsCostEverLess) {
  const auto time = [](int option, std::uint64_t) { return 1 + 0.15 * option; };
  ChoosingRanks ranks = ranksOfShort(ofShort(), time, 0.1);
  const auto costOf = [&](int calls) {
    const double before = ranks.spent();
    ranks.calls(static_cast<std::uint64_t>(calls));
    return (ranks.spent() - before) / calls - 1;
  };
  ranks.callsUntilExplored(2000);
  EXPECT_LT(costOf(3000), 0.1);
  EXPECT_LT(costOf(20'000), 0.02);
  EXPECT_LT(costOf(100'000), 0.01);
  EXPECT_EQ(ranks.settled(), 0);
}

/// The calls that do not count are slow.
TEST(CallTunerOfShortCalls, FirstCallsOfATrialDoNotCount) {
  CallTuner choice = ofShort();
  for (int call = 0; choice.explorations() == 0; ++call) {
    ASSERT_LT(call, firstCalls);
    if (choice.record(1.0)) choice.agree();
  }
  for (int call = 0; choice.window().size() < 16; ++call) {
    ASSERT_LT(call, 16 * trialCalls);
    EXPECT_EQ(choice.record(call % trialCalls < 4 ? 100.0 : 1.0 + choice.option()), call == 16 * trialCalls - 1);
  }
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_DOUBLE_EQ(choice.window()[i], 2.0 + static_cast<double>(i / 4 % 2 == 0 ? i % 4 : 3 - i % 4));
}

/// Ranks of an option wait for a row of calls in the first of them, and take the others out of their memory: whatever
/// the rows are, the option that takes less in the mean is found, and what a call of it takes.
TEST(CallTunerOfShortCalls, CallsThatOverlapAreTimedTogether) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 100; ++trial) {
    const int best = static_cast<int>(random() % options), row = 1 + static_cast<int>(random() % 16);
    CallTuner choice(CallTuner::Kind::overlapping, allOptions(options), 1.0, shortPeriod);
    for (int call = 0; call < 20'000; ++call) {
      const double each = choice.option() == best ? 1.0 : 1.4;
      if (choice.record(call % row == 0 ? each * row : 0)) choice.agree();
    }
    EXPECT_EQ(choice.settled().option, best) << "rows of " << row;
    EXPECT_NEAR(choice.settled().seconds, 1.0, 0.15) << "rows of " << row;
  }
}

}  // namespace
}  // namespace tacc::test
