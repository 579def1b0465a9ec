// The choice that measured times correct, with invented times: it finds what is fastest, stays there, and every rank
// does what every other does.
#include "selection/dynamic_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <set>

namespace tacc {
namespace {

using Event = DynamicChoice::Event;
using Reason = DynamicChoice::Reason;
using TimeOf = std::function<double(int option, std::uint64_t call)>;

constexpr int options = 5;

std::vector<int> others(int current, double) {
  std::vector<int> all;
  for (int option = 0; option < options; ++option)
    if (option != current) all.push_back(option);
  return all;
}

/// Ranks whose own times have noise of their own, and of which one in turn comes late and makes the others wait.
class Ranks {
 public:
  Ranks(int ranks, int period, double expected, TimeOf timeOf, double noise, unsigned seed = 1)
      : Ranks(ranks, DynamicChoice(0, expected, DynamicChoice::paceOfLongCalls(period)), std::move(timeOf), noise,
              seed) {}
  /// `late`: how much longer the others' times are at most than that of the rank that comes last.
  Ranks(int ranks, const DynamicChoice& choice, TimeOf timeOf, double noise, unsigned seed = 1, double late = 3)
      : choices_(static_cast<std::size_t>(ranks), choice),
        timeOf_(std::move(timeOf)),
        noise_(noise),
        late_(late),
        random_(seed) {}

  /// One call on all ranks; returns the option that it ran.
  int call() {
    const int option = choices_.front().option();
    std::uniform_real_distribution<double> disturbed(1 - noise_, 1 + noise_), late(0, late_);
    const double time = timeOf_(option, calls_) * disturbed(random_);
    const std::size_t last = calls_++ % choices_.size();
    bool isDue = false;
    for (std::size_t rank = 0; rank < choices_.size(); ++rank) {
      EXPECT_EQ(choices_[rank].option(), option) << "call " << calls_;
      isDue = choices_[rank].record(rank == last ? time : time * (1 + late(random_)));
    }
    if (isDue) agree();
    ran_.push_back(option);
    return option;
  }
  void calls(int count) {
    for (int i = 0; i < count; ++i) call();
  }
  /// Until the first exploration is over, or so many.
  void callsUntilSettled(int most) {
    for (int i = 0; i < most && count(Event::kept) + count(Event::switched) == 0; ++i) call();
    EXPECT_EQ(count(Event::kept) + count(Event::switched), 1) << most << " calls were too few";
  }

  const DynamicChoice& choice() const { return choices_.front(); }
  const std::vector<int>& ran() const { return ran_; }
  const std::vector<Event>& events() const { return events_; }
  std::ptrdiff_t count(Event event) const { return std::ranges::count(events_, event); }

 private:
  void agree() {
    for (std::size_t i = 0; i < choices_.front().window().size(); ++i) {
      double least = choices_.front().window()[i];
      for (DynamicChoice& choice : choices_) least = std::min(least, choice.window()[i]);
      for (DynamicChoice& choice : choices_) choice.window()[i] = least;
    }
    std::set<Event> all;
    for (DynamicChoice& choice : choices_) all.insert(choice.agree(others));
    EXPECT_EQ(all.size(), 1u);
    events_.push_back(*all.begin());
  }

  std::vector<DynamicChoice> choices_;
  TimeOf timeOf_;
  double noise_;
  double late_;
  std::mt19937 random_;
  std::uint64_t calls_ = 0;
  std::vector<int> ran_;
  std::vector<Event> events_;
};

class EveryPeriod : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(DynamicChoice, EveryPeriod, testing::Values(4, 7, 16));

TEST_P(EveryPeriod, StaysWhereTheModelIsRight) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Ranks ranks(
        3, GetParam(), 1.0, [](int option, std::uint64_t) { return option == 0 ? 1.0 : 1.1; }, 0.1, seed);
    ranks.calls(250);
    EXPECT_EQ(ranks.choice().explorations(), 0u);
    EXPECT_EQ(std::ranges::count(ranks.ran(), 0), 250);
  }
}

TEST_P(EveryPeriod, TakesTheBestWhereTheModelIsWrong) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Ranks ranks(
        4, GetParam(), 1.0, [](int option, std::uint64_t) { return option == 3 ? 1.2 : 2.0; }, 0.1, seed);
    ranks.calls(50);
    EXPECT_EQ(ranks.choice().settled(), 3);
    EXPECT_EQ(ranks.choice().reason(), Reason::model);
    EXPECT_EQ(ranks.choice().before(), 0);
    EXPECT_GT(ranks.choice().measured(), 1.5 * ranks.choice().expectedBefore());
  }
}

/// Whenever the step comes: within 50 calls another option runs, for good.
TEST_P(EveryPeriod, SwitchesWithinFiftyCallsOfAStep) {
  for (std::uint64_t step = 20; step < 60; ++step) {
    const auto time = [step](int option, std::uint64_t call) {
      if (call < step) return option == 0 ? 1.0 : 1.05 + 0.1 * option;
      return option == 0 ? 2.3 : option == 2 ? 1.35 : 2.0;
    };
    Ranks ranks(3, GetParam(), 0.9, time, 0.1, static_cast<unsigned>(step));
    ranks.calls(static_cast<int>(step) + 50);
    EXPECT_EQ(ranks.choice().settled(), 2) << "step at " << step;
    EXPECT_EQ(ranks.choice().option(), 2);
    EXPECT_EQ(ranks.choice().reason(), Reason::slower);
    ranks.calls(150);
    EXPECT_EQ(ranks.count(Event::switched), 1);
  }
}

TEST(DynamicChoice, ReturnsWhenTheLinkIsFastAgainAndTheOptionFeelsIt) {
  const auto time = [](int option, std::uint64_t call) {
    const bool isSlow = call >= 100 && call < 300;
    if (option == 0) return isSlow ? 4.0 : 1.0;
    return option == 1 ? (isSlow ? 2.0 : 1.3) : 5.0;
  };
  Ranks ranks(2, 4, 1.0, time, 0.05);
  ranks.calls(200);
  EXPECT_EQ(ranks.choice().settled(), 1);
  ranks.calls(150);
  EXPECT_EQ(ranks.choice().settled(), 0);
  EXPECT_EQ(ranks.choice().reason(), Reason::faster);
}

TEST(DynamicChoice, ReturnsAsARoutineWhenTheOptionDoesNotFeelIt) {
  const auto time = [](int option, std::uint64_t call) {
    const bool isSlow = call >= 100 && call < 300;
    if (option == 0) return isSlow ? 4.0 : 1.0;
    return option == 1 ? 2.0 : 5.0;
  };
  Ranks ranks(2, 4, 1.0, time, 0.05);
  ranks.calls(200);
  EXPECT_EQ(ranks.choice().settled(), 1);
  ranks.calls(5000);
  EXPECT_EQ(ranks.choice().settled(), 0);
  EXPECT_EQ(ranks.choice().reason(), Reason::routine);
}

TEST(DynamicChoice, NeverOscillatesUnderNoise) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Ranks ranks(
        3, 4, 1.0, [](int, std::uint64_t) { return 1.0; }, 0.1, seed);
    ranks.calls(10000);
    EXPECT_EQ(ranks.count(Event::switched), 0) << "all options are alike, seed " << seed;
  }
}

/// Trying costs one call in a hundred where nothing happens, however bad the options are.
TEST(DynamicChoice, RoutineIsRare) {
  const auto time = [](int option, std::uint64_t) { return 1.0 + 2 * option; };
  Ranks ranks(2, 16, 1.0, time, 0.1);
  const int count = 50000;
  ranks.calls(count);
  double total = 0;
  for (const int option : ranks.ran()) total += time(option, 0);
  EXPECT_GT(ranks.choice().explorations(), 5u);
  EXPECT_LT(total, 1.02 * count);
}

/// Even where times change without end: rests double.
TEST(DynamicChoice, ExploringIsBoundedWhereTimesNeverSettle) {
  std::mt19937 random(3);
  std::vector<double> level;
  for (int i = 0; i < 1000; ++i) level.push_back(std::uniform_real_distribution<double>(0.5, 5)(random));
  Ranks ranks(
      2, 4, 1.0, [&](int, std::uint64_t call) { return level[call / 20 % 1000]; }, 0.1);
  ranks.calls(20000);
  EXPECT_LE(ranks.choice().explorations(), 60u);
}

TEST(DynamicChoice, AnExplorationHasABoundedNumberOfCalls) {
  DynamicChoice choice(0, 1.0, DynamicChoice::paceOfLongCalls(4));
  const auto many = [](int, double) {
    std::vector<int> all;
    for (int option = 1; option < 100; ++option) all.push_back(option % 50);
    return all;
  };
  std::vector<int> ran;
  Event event = Event::none;
  for (int call = 0; call < 40 && event != Event::kept && event != Event::switched; ++call) {
    ran.push_back(choice.option());
    if (choice.record(2.0)) event = choice.agree(many);
  }
  EXPECT_EQ(event, Event::kept);
  EXPECT_LE(ran.size(), 4 + DynamicChoice::mostOptions + 2 * 4);
  EXPECT_EQ(choice.trials().size(), DynamicChoice::mostOptions) << "each option once";
}

TEST(DynamicChoice, ASingleDisturbanceIsForgotten) {
  const auto time = [](int, std::uint64_t call) { return call >= 40 && call < 43 ? 50.0 : 1.0; };
  Ranks ranks(2, 4, 1.0, time, 0.1);
  ranks.calls(200);
  EXPECT_EQ(ranks.choice().explorations(), 0u);
}

/// Links let the first bytes pass at once, so the first calls of all are shorter than those that follow.
TEST(DynamicChoice, ABurstIsNotWhatIsExpected) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto time = [](int, std::uint64_t call) { return call < 4 ? 0.5 : 1.0; };
    Ranks ranks(3, DynamicChoice(0, 0.9, DynamicChoice::paceOfLongCalls(4, 1)), time, 0.1, seed);
    ranks.calls(200);
    EXPECT_EQ(ranks.choice().explorations(), 0u) << seed;
    EXPECT_NEAR(ranks.choice().expected(), 1.0, 0.1);
  }
}

TEST(DynamicChoice, LongPeriodsTellOfTheirLastCalls) {
  DynamicChoice choice(0, 1.0, DynamicChoice::paceOfLongCalls(40));
  for (int period = 0; period < 3; ++period) {
    for (int call = 1; call <= 40; ++call) {
      const bool tells = call > 40 - static_cast<int>(DynamicChoice::mostTimes);
      EXPECT_EQ(choice.record(tells ? 1.1 : 9.0), call == 40) << call;
    }
    EXPECT_EQ(choice.window().size(), DynamicChoice::mostTimes);
    EXPECT_EQ(choice.agree(others), Event::none);
  }
  EXPECT_DOUBLE_EQ(choice.expected(), 1.1);
}

TEST(DynamicChoice, WithoutOtherOptionsTheOldOneStays) {
  DynamicChoice choice(7, 1.0, DynamicChoice::paceOfLongCalls(4));
  for (int call = 0; call < 100; ++call) {
    EXPECT_EQ(choice.option(), 7);
    if (choice.record(3.0)) choice.agree([](int, double) { return std::vector<int>(); });
  }
  EXPECT_EQ(choice.settled(), 7);
  EXPECT_DOUBLE_EQ(choice.expected(), 3.0);
}

DynamicChoice shortCalls(int period = 100) {
  return {0, 1.0, DynamicChoice::paceOfShortCalls(period, 6), {0, 1, 2, 3, 4}};
}

TEST(DynamicChoiceOfShortCalls, TriesTheRivalsAtOnceAndTakesTheBest) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const int best = static_cast<int>(seed % options);
    const auto time = [best](int option, std::uint64_t) { return option == best ? 1.0 : 1.3; };
    Ranks ranks(4, shortCalls(), time, 0.2, seed, 0.2);
    ranks.callsUntilSettled(600);
    EXPECT_EQ(ranks.choice().settled(), best) << seed;
    EXPECT_EQ(ranks.choice().reason(), Reason::rivals);
    ranks.calls(20);
    EXPECT_EQ(std::set(ranks.ran().begin(), ranks.ran().end()).size(), options) << "each was tried";
    EXPECT_EQ(std::ranges::count(ranks.ran().end() - 20, ranks.ran().end(), best), 20) << "and that is over";
  }
}

/// Most calls try those that are close, and one slow time leaves nothing out that is among the better half.
TEST(DynamicChoiceOfShortCalls, FindsTheBestOfManyThatAreClose) {
  constexpr int many = 16;
  std::vector<int> rivals;
  for (int option = 0; option < many; ++option) rivals.push_back(option);
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const int best = static_cast<int>(seed % many);
    std::vector<int> tried(many, 0);
    const auto time = [&](int option, std::uint64_t) {
      const int since = tried[static_cast<std::size_t>(option)]++;
      // The others are 10 to 80 % behind.
      const int behind = (option - best + many) % many;
      return (since < 4 ? 5.0 : 1.0) * (behind == 0 ? 1.0 : 1.05 + 0.05 * behind);
    };
    Ranks ranks(2, {0, 1.0, DynamicChoice::paceOfShortCalls(100, 12), rivals}, time, 0.2, seed, 0.2);
    ranks.callsUntilSettled(1000);
    EXPECT_LE((ranks.choice().settled() - best + many) % many, 2) << seed;
    if (ranks.choice().settled() == best) ++found;
    const int worst = (best + many - 1) % many;
    // The model's choice gets a second chance.
    EXPECT_EQ(tried[static_cast<std::size_t>(worst)], worst == 0 ? 42 : 14) << "once";
  }
  EXPECT_GE(found, 90);
}

/// Options that are alike are tried the longest; every time is kept, whatever is left of them after each window.
TEST(DynamicChoiceOfShortCalls, EndsWithAnyNumberOfRivals) {
  for (int count = 1; count <= 16; ++count)
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::vector<int> rivals;
      for (int option = 0; option < count; ++option) rivals.push_back(option);
      Ranks ranks(
          2, {0, 1.0, DynamicChoice::paceOfShortCalls(5000, 12), rivals}, [](int, std::uint64_t) { return 1.0; }, 0.3,
          seed, 0.2);
      ranks.callsUntilSettled(1000);
      for (const DynamicChoice::Trial& trial : ranks.choice().trials())
        EXPECT_LT(trial.count, DynamicChoice::Trial::most) << count;
    }
}

/// Whatever ranks measure, and whichever of the values counts: Ranks::call() compares what all of them run.
TEST(DynamicChoiceOfShortCalls, AllRanksRunTheSame) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto time = [&](int, std::uint64_t) { return std::exp(std::normal_distribution<double>(0, 3)(random)); };
    Ranks ranks(5, shortCalls(40), time, 0.9, seed);
    ranks.calls(5000);
    EXPECT_GT(ranks.events().size(), 10u);
  }
}

TEST(DynamicChoiceOfShortCalls, AgreesRarely) {
  Ranks ranks(
      2, shortCalls(200), [](int, std::uint64_t) { return 1.0; }, 0.3);
  ranks.calls(20000);
  EXPECT_LT(ranks.events().size(), 20000 / 200 + 11 * ranks.choice().explorations() + 2);
  EXPECT_LT(ranks.choice().explorations(), 10u) << "noise is no reason";
}

TEST(DynamicChoiceOfShortCalls, LeavesWhatBecameSlow) {
  const auto time = [](int option, std::uint64_t call) {
    if (call < 1000) return option == 2 ? 1.0 : 1.5;
    return option == 2 ? 4.0 : option == 3 ? 1.5 : 2.5;
  };
  Ranks ranks(3, shortCalls(), time, 0.2);
  ranks.calls(1000);
  EXPECT_EQ(ranks.choice().settled(), 2);
  ranks.calls(1000);
  EXPECT_EQ(ranks.choice().settled(), 3);
  ranks.calls(2000);
  EXPECT_EQ(ranks.choice().settled(), 3) << "for good";
}

/// The scheduler's phases last longer than an exploration, so the fastest while the first calls run is not always the
/// one that is the fastest on the whole.
TEST(DynamicChoiceOfShortCalls, PhasesCostLittle) {
  double fixed = 0, chosen = 0, best = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::array<double, options>> phases(60);
    for (auto& phase : phases)
      for (double& level : phase) level = std::uniform_real_distribution<double>(0.8, 1.4)(random);
    const auto time = [&](int option, std::uint64_t call) {
      return phases[call / 4000 % phases.size()][static_cast<std::size_t>(option)] - (option == 2 ? 0.1 : 0);
    };
    Ranks ranks(2, shortCalls(), time, 0.2, seed, 0.2);
    ranks.callsUntilSettled(600);
    const int first = ranks.choice().settled();
    const std::size_t begin = ranks.ran().size();
    ranks.calls(60000);
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
TEST(DynamicChoiceOfShortCalls, WhatIsFastOnlyInTrialsIsLeft) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    int last = -1, since = 0;
    const auto time = [&](int option, std::uint64_t) {
      since = option == last ? since + 1 : 0;
      last = option;
      if (option == 1) return since < 100 ? 0.95 : 1.5;
      return option == 2 ? 1.0 : 1.3;
    };
    Ranks ranks(3, shortCalls(), time, 0.1, seed, 0.2);
    ranks.callsUntilSettled(600);
    ranks.calls(3000);
    EXPECT_EQ(ranks.choice().settled(), 2) << seed;
    const std::size_t before = ranks.ran().size();
    ranks.calls(20000);
    EXPECT_GT(std::count(ranks.ran().begin() + static_cast<std::ptrdiff_t>(before), ranks.ran().end(), 2), 18000);
  }
}

/// Trying the best ones again costs little, and ever less.
TEST(DynamicChoiceOfShortCalls, RoutineCostsOneCallInAHundredAtLast) {
  const auto time = [](int option, std::uint64_t) { return 1 + 0.15 * option; };
  Ranks ranks(2, shortCalls(), time, 0.1, 1, 0.2);
  const auto costOf = [&](int calls) {
    const std::size_t before = ranks.ran().size();
    ranks.calls(calls);
    double total = 0;
    for (std::size_t i = before; i < ranks.ran().size(); ++i) total += time(ranks.ran()[i], 0);
    return total / calls - 1;
  };
  ranks.callsUntilSettled(600);
  EXPECT_LT(costOf(2000), 0.06);
  EXPECT_LT(costOf(20000), 0.025);
  EXPECT_LT(costOf(100000), 0.012);
  EXPECT_EQ(ranks.choice().settled(), 0);
}

/// The calls that do not count are slow; a time begins once, whatever its calls take.
TEST(DynamicChoiceOfShortCalls, FirstCallsOfATrialDoNotCount) {
  DynamicChoice choice = shortCalls();
  std::size_t begun = 0;
  bool isDue = false;
  int before = -1;
  for (int call = 0, since = 0; !isDue; ++call) {
    since = choice.option() == before ? since + 1 : 0;
    before = choice.option();
    begun += choice.beginsTime() ? 1 : 0;
    isDue = choice.record(since < 2 ? 100.0 : 1.0 + choice.option());
  }
  EXPECT_EQ(begun, choice.window().size());
  for (std::size_t i = 0; i < choice.window().size(); ++i)
    EXPECT_DOUBLE_EQ(choice.window()[i], 1.0 + static_cast<double>(i));
}

/// Ranks wait for one another before calls that fill a pipeline, and those do not count either.
TEST(DynamicChoiceOfShortCalls, CallsThatFillAPipelineDoNotCount) {
  DynamicChoice choice(0, 1.0, DynamicChoice::paceOfShortCalls(100, 6, 8), {0, 1, 2});
  bool isDue = false;
  int before = -1, sinceBarrier = 100;
  for (int call = 0; !isDue; ++call) {
    ASSERT_LT(call, 1000);
    if (choice.beginsTime()) sinceBarrier = 0;
    const bool isFirst = choice.option() != before;
    before = choice.option();
    isDue = choice.record(isFirst ? 50.0 : sinceBarrier < 8 ? 20.0 : 1.0);
    ++sinceBarrier;
  }
  for (const double time : choice.window()) EXPECT_DOUBLE_EQ(time, 1.0);
}

/// What the model chose comes first of all, over new connections.
/// Where links limit, of options whose times trials can hardly tell apart the cheapest is taken, and stays.
TEST(DynamicChoiceOfShortCalls, TheCheapestOfThoseThatAreAlikeIsTaken) {
  constexpr int chosen = 3, cheapest = 2;
  const std::vector<int> byPrice{1, cheapest, 4, chosen, 0};
  const TimeOf times = [](int option, std::uint64_t) { return option == 1 ? 1.2e-3 : option == 0 ? 0.99e-3 : 1e-3; };
  for (const unsigned seed : {1U, 2U, 3U}) {
    const auto run = [&](int filling) {
      const DynamicChoice choice(chosen, 1e-3, DynamicChoice::paceOfShortCalls(64, 12, filling), byPrice);
      Ranks ranks(4, choice, times, 0.01, seed, 0);
      ranks.calls(20'000);
      return ranks.choice().settled();
    };
    EXPECT_EQ(run(8), cheapest);
    EXPECT_EQ(run(0), 0) << "where processors limit, the fastest is";
  }
}

TEST(DynamicChoiceOfShortCalls, OneTimeDoesNotEndTheModelsChoice) {
  const auto time = [](int option, std::uint64_t call) { return option == 0 ? (call < 20 ? 10.0 : 1.0) : 1.5; };
  Ranks ranks(3, shortCalls(), time, 0.05, 1, 0.2);
  ranks.callsUntilSettled(600);
  EXPECT_EQ(ranks.choice().settled(), 0);
}

}  // namespace
}  // namespace tacc
