#include "support/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <numeric>
#include <utility>

namespace tacc::tools {
namespace {

using Turns = std::vector<std::vector<std::size_t>>;
constexpr int mostRepetitions = 24;

/// How often the second of a pair ran right after the first.
std::map<std::pair<std::size_t, std::size_t>, int> followersOf(const Turns& turns) {
  std::vector<std::size_t> all;
  for (const auto& order : turns) all.insert(all.end(), order.begin(), order.end());
  std::map<std::pair<std::size_t, std::size_t>, int> followers;
  for (std::size_t i = 1; i < all.size(); ++i) ++followers[{all[i - 1], all[i]}];
  return followers;
}

TEST(Turns, everybodyRunsOnceInEachRepetition) {
  for (std::size_t contestants = 1; contestants <= 8; ++contestants) {
    std::vector<std::size_t> everybody(contestants);
    std::iota(everybody.begin(), everybody.end(), std::size_t{0});
    const Turns turns = turnsOf(contestants, 9);
    ASSERT_EQ(turns.size(), 9U);
    for (auto order : turns) {
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, everybody);
    }
  }
}

TEST(Turns, eachFollowsEachOfTheOthersEquallyOften) {
  for (std::size_t contestants = 2; contestants <= 5; ++contestants)
    for (int repetitions = 1; repetitions <= mostRepetitions; ++repetitions) {
      const Turns turns = turnsOf(contestants, repetitions);
      auto followers = followersOf(turns);
      int least = repetitions, most = 0;
      for (std::size_t first = 0; first < contestants; ++first) {
        EXPECT_EQ((followers[{first, first}]), 0) << contestants << " contestants, " << repetitions << " repetitions";
        for (std::size_t second = 0; second < contestants; ++second) {
          if (first == second) continue;
          least = std::min(least, followers[{first, second}]);
          most = std::max(most, followers[{first, second}]);
        }
      }
      EXPECT_LE(most - least, 1) << contestants << " contestants, " << repetitions << " repetitions";
    }
}

TEST(Turns, ofManyNoneAlwaysFollowsTheSame) {
  for (std::size_t contestants = 6; contestants <= 16; ++contestants) {
    constexpr int repetitions = 50;
    for (const auto& [pair, times] : followersOf(turnsOf(contestants, repetitions))) {
      EXPECT_NE(pair.first, pair.second) << contestants;
      EXPECT_LE(times, repetitions / 4) << contestants;
    }
  }
}

TEST(Turns, ofMoreThanTwoNoneAlwaysBegins) {
  for (std::size_t contestants = 3; contestants <= 6; ++contestants) {
    std::vector<int> beginnings(contestants);
    for (const auto& order : turnsOf(contestants, mostRepetitions)) ++beginnings[order.front()];
    EXPECT_GE(*std::min_element(beginnings.begin(), beginnings.end()), 2) << contestants;
  }
}

TEST(Turns, areTheSameInEveryRun) { EXPECT_EQ(turnsOf(4, 5), turnsOf(4, 5)); }

TEST(Turns, ofOneAreHis) { EXPECT_EQ(turnsOf(1, 3), (Turns{{0}, {0}, {0}})); }

/// Contestants whose runs take what `seconds` says, and the order in which they ran.
struct Race {
  explicit Race(const std::vector<double>& seconds) {
    for (std::size_t i = 0; i < seconds.size(); ++i)
      contestants.push_back({.run = [this, i] { ran.push_back(i); },
                             .ownSeconds =
                                 [this, i, took = seconds[i]] {
                                   return took * (ran.size() == 3 * i + 2 ? 0.5 : 1);  // one of the first runs is lucky
                                 }});
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;
  std::vector<Timed> contestants;
  std::vector<std::size_t> ran;
};

TEST(TimeInTurn, goesTwiceAndBackAtLeast) {
  Race race({1, 2, 3});
  timeInTurn(race.contestants, 0, false);
  EXPECT_EQ(race.ran, (std::vector<std::size_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(race.contestants[0].seconds, 0.5);
  EXPECT_EQ(race.contestants[2].seconds, 1.5);
}

TEST(TimeInTurn, leavesOutWhoIsHopeless) {
  Race race({1, 2.1, 1.9, 100});  // the lucky run of the first took a half
  timeInTurn(race.contestants, 0, false);
  EXPECT_EQ(std::ranges::count(race.ran, std::size_t{0}), 6);
  EXPECT_EQ(std::ranges::count(race.ran, std::size_t{2}), 6);
  EXPECT_EQ(std::ranges::count(race.ran, std::size_t{3}), 3);
  EXPECT_EQ(race.contestants[3].seconds, 50);
}

TEST(TimeInTurn, believesNoRareProcessorTimes) {
  int runs = 0;
  std::vector<Timed> contestants;
  contestants.push_back({[&runs] { ++runs; }, 1e30, [&runs] { return runs % 20 == 2 ? 0 : 1 + runs % 7; }});
  timeInTurn(contestants, 0.1, true);
  ASSERT_GT(runs, 100);
  EXPECT_GE(contestants[0].seconds, 1);
  EXPECT_LE(contestants[0].seconds, 2);
}

double readClock(bool processorTime) {
  timespec time{};
  clock_gettime(processorTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(TimeInTurn, takesOffWhatReadingTheClockTakes) {
  for (const bool processorTime : {false, true}) {
    std::vector<double> ofClock;
    std::vector<Timed> contestants = {{[&] {
      const double begin = readClock(processorTime);
      ofClock.push_back(readClock(processorTime) - begin);
    }}};
    contestants.push_back({[] {}});
    timeInTurn(contestants, 0.02, processorTime);
    std::ranges::sort(ofClock);
    EXPECT_LT(contestants[1].seconds, ofClock[ofClock.size() / 8] / 2);
  }
}

TEST(TimeInTurn, takesNothingElseOff) {
  constexpr double work = 5e-5;
  for (const bool processorTime : {false, true}) {
    std::vector<Timed> contestants = {{[processorTime] {
      for (const double begin = readClock(processorTime); readClock(processorTime) < begin + work;) continue;
    }}};
    timeInTurn(contestants, 0.05, processorTime);
    EXPECT_GE(contestants[0].seconds, work);
    EXPECT_LT(contestants[0].seconds, 2 * work);
  }
}

}  // namespace
}  // namespace tacc::tools
