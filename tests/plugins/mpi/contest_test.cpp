// Who serves calls, as contests of libtacc_mpi conclude it, on libraries that are only played: their calls take times
// that are given or drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "contest_rounds.hpp"
#include "contests.hpp"

namespace tacc::mpi {
namespace {

constexpr double us = 1e-6;

/// What is concluded where rounds take the times of `ofRound(n, calls)`.
Outcome concluded(const std::function<RoundTimes(int, RoundCalls)>& ofRound, const EarlierRounds& before = {},
                  int* rounds = nullptr) {
  Rounds contest(before);
  int round = 0;
  for (RoundCalls calls = contest.next(); calls.mpi > 0; calls = contest.next()) contest.add(ofRound(round++, calls));
  if (rounds != nullptr) *rounds = round;
  Outcome outcome;
  contest.conclude(outcome);
  return outcome;
}

TEST(Rounds, TheFasterOneServes) {
  EXPECT_TRUE(concluded([](int, RoundCalls) { return RoundTimes{0.7 * us, 0.5 * us}; }).isMpiFaster);
  EXPECT_FALSE(concluded([](int, RoundCalls) { return RoundTimes{0.5 * us, 0.7 * us}; }).isMpiFaster);
  // By less than two runs differ.
  EXPECT_FALSE(concluded([](int, RoundCalls) { return RoundTimes{0.52 * us, 0.5 * us}; }).isMpiFaster);
  // With what the library itself takes these are 60 to 80 ns.
  EXPECT_TRUE(concluded([](int, RoundCalls) { return RoundTimes{0.22 * us, 0.18 * us}; }).isMpiFaster);
  EXPECT_FALSE(concluded([](int, RoundCalls) { return RoundTimes{102 * us, 100 * us}; }).isMpiFaster);
}

TEST(Rounds, OneRoundOfABusyMachineDecidesNothing) {
  for (int busy = 5; busy < 12; ++busy) {
    EXPECT_TRUE(concluded([&](int round, RoundCalls) {
                  return RoundTimes{(round == busy ? 9 : 0.7) * us, 0.5 * us};
                }).isMpiFaster);
    EXPECT_FALSE(concluded([&](int round, RoundCalls) {
                   return RoundTimes{(round == busy ? 90 : 0.5) * us, 0.7 * us};
                 }).isMpiFaster);
  }
}

// MPICH's broadcast of 8 B among 4 ranks on 2 processors.
TEST(Rounds, AnMpiThatMostlyWaitsDoesNotServe) {
  const std::array<double, 7> slowInThree{0.5, 118, 0.5, 118, 0.5, 118, 0.5};
  const Outcome outcome = concluded([&](int round, RoundCalls) {
    return RoundTimes{0.7 * us, (round < 5 ? 0.5 : slowInThree[static_cast<std::size_t>(round - 5)]) * us};
  });
  EXPECT_FALSE(outcome.isMpiFaster);
  EXPECT_TRUE(outcome.isMpiSlowInMean);
  EXPECT_NEAR(outcome.mpi, (4 * 0.5 + 2 * 118) / 6 * us, 1e-9);  // but the worst round
  EXPECT_FALSE(concluded([&](int round, RoundCalls) {
                 return RoundTimes{0.7 * us, (round % 5 == 1 ? 0.5 : 118) * us};
               }).isMpiFaster);
}

// A call is quick as long as the root may be ahead, for some calls after the ranks have met.
TEST(Rounds, AnMpiThatIsQuickForSomeCallsDoesNotServe) {
  for (const double ahead : {8, 30, 64, 120}) {
    const auto mean = [&](int calls) {
      const double quick = std::max(0.0, std::min<double>(calls, ahead - calls / 2.0));
      return (quick * 0.5 + (calls - quick) * 118) / calls * us;
    };
    EXPECT_FALSE(concluded([&](int, RoundCalls calls) {
                   return RoundTimes{0.7 * us, mean(calls.mpi)};
                 }).isMpiFaster)
        << ahead;
  }
}

// Longer calls are few in the rounds of a first contest, and more in later ones.
TEST(Rounds, LongerRoundsFindWhatComesLate) {
  const auto late = [](int, RoundCalls calls) {
    constexpr int ahead = 30;
    const int before = (calls.mpi + 1) / 2, quick = std::clamp(ahead - before, 0, calls.mpi);
    return RoundTimes{25 * us, (quick * 20.0 + (calls.mpi - quick) * 800) / calls.mpi * us};
  };
  EXPECT_TRUE(concluded(late).isMpiFaster);
  Contests contests;
  Outcome outcome;
  outcome.function = Function::Bcast;
  outcome.bytes = 8;
  EXPECT_EQ(contests.before(Function::Bcast, 8).longer, 1);
  for (int i = 0; i < 2; ++i) contests.decide(outcome, i);
  EXPECT_FALSE(concluded(late, contests.before(Function::Bcast, 8)).isMpiFaster);
}

TEST(Rounds, WhatWasSlowIsRemembered) {
  const auto quick = [](int, RoundCalls) { return RoundTimes{0.7 * us, 0.5 * us}; };
  EXPECT_FALSE(concluded(quick, {.slowMpi = 59 * us}).isMpiFaster);
  EXPECT_TRUE(concluded(quick, {.slowMpi = 2 * us}).isMpiFaster);
}

TEST(Rounds, TaccThatOftenWaitsDoesNotServe) {
  EXPECT_TRUE(concluded([](int round, RoundCalls) {
                return RoundTimes{(round == 6 || round == 9 ? 118 : 0.5) * us, 0.7 * us};
              }).isMpiFaster);
}

TEST(Rounds, LongCallsAreFew) {
  int rounds = 0;
  EXPECT_FALSE(concluded([](int, RoundCalls) { return RoundTimes{100 * us, 150e-3}; }, {}, &rounds).isMpiFaster);
  EXPECT_EQ(rounds, 2);
  double all = 0;
  const auto count = [&](RoundTimes times) {
    return [&all, times](int, RoundCalls calls) {
      all += calls.mpi * times.mpi;
      return times;
    };
  };
  EXPECT_FALSE(concluded(count({30e-3, 50e-3})).isMpiFaster);
  EXPECT_LE(all, 12 * 50e-3 + 1e-9);
  all = 0;
  EXPECT_TRUE(concluded(count({50e-3, 2e-3})).isMpiFaster);
  EXPECT_LE(all, 8 * 2e-3 + 1e-9);
}

using Draws = std::mt19937_64;

double drawn(Draws& draws, double least, double most) {  // evenly in the logarithm
  return least * std::pow(most / least, std::uniform_real_distribution<>(0, 1)(draws));
}

// A stop of the machine falls into one round of one of them, and may be as long as a thousand rounds.
TEST(Rounds, OneStopOfTheMachineDecidesNothing) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Draws draws(seed);
    const double quick = drawn(draws, 0.3, 100) * us, slow = quick * drawn(draws, 1.3, 20) + 60e-9;
    const bool isMpiQuick = draws() % 2 == 0, stopsMpi = draws() % 2 == 0;
    const int stopped = static_cast<int>(draws() % 12);
    const double stop = drawn(draws, 2, 1000);
    const Outcome outcome = concluded([&](int round, RoundCalls) {
      RoundTimes times{(isMpiQuick ? slow : quick) * drawn(draws, 0.99, 1.01),
                       (isMpiQuick ? quick : slow) * drawn(draws, 0.99, 1.01)};
      if (round == stopped) (stopsMpi ? times.mpi : times.tacc) *= stop;
      return times;
    });
    ASSERT_EQ(outcome.isMpiFaster, isMpiQuick)
        << "seed " << seed << " round " << stopped << (stopsMpi ? " of MPI" : " of tacc") << " x " << stop;
  }
}

/// A library whose calls are quick and slow as its kind says.
class Played {
 public:
  Played(Draws& draws, double quick, bool isCalm)
      : draws_(draws), quick_(quick), kind_(isCalm ? draws() % 2 : draws() % 4) {
    slow_ = std::max(1.0, std::min(drawn(draws, 2, 300), 4e-3 / quick));  // who waits for a processor waits that long
    often_ = drawn(draws, 0.02, 0.9);
    stretch_ = drawn(draws, 1, 40);
    ahead_ = 1 + drawn(draws, 1, 300) * us / quick;  // what a library keeps for a rank that is late is limited
  }

  /// All ranks are at the same place.
  void meet() { sinceMeeting_ = 0; }
  double call() {
    ++sinceMeeting_;
    switch (kind_) {
      case 0:
        return quick_ * factor;
      case 1:  // one in 20 is 10 times as long
        return quick_ * factor * (chance() < 0.05 ? 10 : 1);
      case 2:  // stretches of slow calls
        if (--left_ < 0) {
          isSlow_ = chance() < often_;
          left_ = stretch_ * 2 * chance();
        }
        return quick_ * factor * (isSlow_ ? slow_ : 1);
      default:  // quick until a rank is as far ahead as it may be
        return quick_ * factor * (sinceMeeting_ < ahead_ ? 1 : slow_);
    }
  }
  std::string text() const {
    return "kind " + std::to_string(kind_) + " quick " + std::to_string(quick_ * 1e6) + " slow x " +
           std::to_string(slow_) + " often " + std::to_string(often_) + " stretch " + std::to_string(stretch_) +
           " ahead " + std::to_string(ahead_);
  }

  double factor = 1;

 private:
  double chance() { return std::uniform_real_distribution<>(0, 1)(draws_); }

  Draws& draws_;
  double quick_;
  std::uint64_t kind_;
  double slow_ = 1, often_ = 0, stretch_ = 1, ahead_ = 0, left_ = 0;
  int sinceMeeting_ = 0;
  bool isSlow_ = false;
};

/// A program that calls one collective, of sizes of one kind or of several.
class Program {
 public:
  Program(Draws& draws, Played& tacc, Played& mpi) : draws_(draws), libraries_{&tacc, &mpi} {}

  /// Seconds of a call in the mean of `calls`, without contests.
  double run(int calls, int sizes = 1) {
    const double start = clock_ - inContests_;
    for (int i = 0; i < calls; ++i) {
      const std::size_t bytes = std::size_t{8} << (draws_() % static_cast<std::uint64_t>(sizes));
      Contests::Turn turn = contests_.next(function, bytes, 100);
      if (turn == Contests::Turn::look) turn = settle(bytes);
      clock_ += libraries_[turn == Contests::Turn::mpi ? 1 : 0]->call();
    }
    return (clock_ - inContests_ - start) / calls;
  }
  /// Until contests have been held again, as far as they come soon.
  void settleDown(int sizes = 1) {
    while (contestsHeld_ < 3 * sizes && clock_ < 100) run(1000, sizes);
  }
  double inContests() const { return inContests_; }
  double inLooks() const { return inLooks_; }
  double clock() const { return clock_; }

 private:
  static constexpr Function function = Function::Bcast;

  Contests::Turn settle(std::size_t bytes) {
    if (contests_.isAgain(function, bytes) && std::max(contests_.wait(function, bytes, clock_), next_ - clock_) > 0)
      return keep(bytes);
    const double start = clock_;
    Outcome outcome = concluded(
        [&](int, RoundCalls calls) {
          return RoundTimes{round(*libraries_[0], calls.tacc), round(*libraries_[1], calls.mpi)};
        },
        contests_.before(function, bytes));
    outcome.function = function;
    outcome.bytes = bytes;
    outcome.cost = clock_ - start;
    inContests_ += outcome.cost;
    ++contestsHeld_;
    next_ = contests_.decide(outcome, clock_);
    return outcome.isMpiFaster ? Contests::Turn::mpi : Contests::Turn::tacc;
  }
  /// As after a look by ranks that have to meet for it.
  Contests::Turn keep(std::size_t bytes) {
    const double now = clock_, since = contests_.sinceLook(function, bytes, now);
    clock_ += secondsOfLook;
    inLooks_ += secondsOfLook;
    return contests_.keep(function, bytes, now, since);
  }
  double round(Played& library, int calls) {
    library.meet();
    for (int i = 0; i < (calls + 1) / 2; ++i) clock_ += library.call();
    double all = 0;
    for (int i = 0; i < calls; ++i) all += library.call();
    clock_ += all;
    return all / calls;
  }

  Draws& draws_;
  std::array<Played*, 2> libraries_;
  Contests contests_;
  static constexpr double secondsOfLook = 30e-6;
  double clock_ = 0, inContests_ = 0, inLooks_ = 0, next_ = 0;
  int contestsHeld_ = 0;
};

/// TACC_TEST_PROGRAMS: more of them, by hand.
std::uint64_t seeds() {
  const char* const more = std::getenv("TACC_TEST_PROGRAMS");
  return more == nullptr ? 40 : std::strtoull(more, nullptr, 10);
}

double meanOf(Played library, int calls) {
  library.meet();
  double all = 0;
  for (int i = 0; i < calls; ++i) all += library.call();
  return all / calls;
}

// Whatever the libraries do, the calls do not take much longer than with the better one alone: what has no slow stretch
// in a few rounds may have some among all calls.
TEST(Contests, DrawnLibrariesAreChosenWell) {
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    Draws draws(seed);
    const double quick = drawn(draws, 3, 2000) * us;
    Played tacc(draws, quick, seed % 2 == 0), mpi(draws, quick * drawn(draws, 0.2, 5), false);
    constexpr int calls = 10000;
    const double better = std::min(meanOf(tacc, calls), meanOf(mpi, calls));
    Program program(draws, tacc, mpi);
    program.settleDown();
    const double found = program.run(calls);
    ASSERT_LE(found, 8 * better + 60e-9) << "seed " << seed << "\ntacc " << tacc.text() << "\nMPI  " << mpi.text();
  }
}

// Ranks of one call may ask either way, so both have to count alike.
TEST(Contests, WhatIsServedAtOnceIsCountedAsOtherCalls) {
  std::bernoulli_distribution isOne(0.6);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Draws draws(seed);
    Contests asked, quick;
    int looks = 0, atOnce = 0;
    for (int call = 0; call < 20000; ++call) {
      const Function function = isOne(draws) ? Function::Gatherv : Function::Gather;
      const std::size_t bytes = isOne(draws) ? 8 : 512;
      const Contests::Turn turn = asked.next(function, bytes, 100);
      Contests::Turn found = isOne(draws) ? quick.nextAtOnce(function, bytes) : Contests::Turn::look;
      atOnce += found == Contests::Turn::look ? 0 : 1;
      if (found == Contests::Turn::look) found = quick.next(function, bytes, 100);
      ASSERT_EQ(found, turn) << "seed " << seed;
      if (turn != Contests::Turn::look) continue;
      ++looks;
      ASSERT_EQ(quick.usualBytes(function), asked.usualBytes(function)) << "seed " << seed;
      Outcome outcome;
      outcome.function = function;
      outcome.bytes = bytes;
      outcome.isMpiFaster = isOne(draws);
      for (Contests* contests : {&asked, &quick}) contests->decide(outcome, 0);
    }
    EXPECT_GT(looks, 30);
    EXPECT_GT(atOnce, 10000);
  }
}

TEST(Contests, WhereNothingIsMeasuredCallsAreServedAtOnceFromTheSecondOn) {
  for (const Function function : {Function::Bcast, Function::Scatterv}) {
    Contests contests;
    EXPECT_EQ(contests.nextAtOnce(function, 8), Contests::Turn::look);
    EXPECT_EQ(contests.next(function, 8, 0), Contests::Turn::tacc);
    for (int call = 0; call < 10000; ++call) ASSERT_EQ(contests.nextAtOnce(function, 8), Contests::Turn::tacc);
  }
}

// Without slow stretches the better one is found, but for what two runs differ by.
TEST(Contests, NoiseHidesNothing) {
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    Draws draws(seed);
    const double quick = drawn(draws, 3, 2000) * us;
    Played tacc(draws, quick, true), mpi(draws, quick * drawn(draws, 0.2, 5), true);
    const double better = std::min(meanOf(tacc, 20000), meanOf(mpi, 20000));
    Program program(draws, tacc, mpi);
    program.settleDown(3);
    ASSERT_LE(program.run(20000, 3), 1.6 * better + 60e-9)
        << "seed " << seed << "\ntacc " << tacc.text() << "\nMPI  " << mpi.text();
  }
}

TEST(Contests, WhoBecomesSlowerIsLeft) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Draws draws(seed);
    const double quick = drawn(draws, 0.3, 50) * us;
    Played tacc(draws, quick, true), mpi(draws, quick * drawn(draws, 0.3, 3), true);
    Program program(draws, tacc, mpi);
    program.run(5000);
    Played& served = program.run(1000) > 0 && meanOf(tacc, 2000) < meanOf(mpi, 2000) ? tacc : mpi;
    served.factor = 30;
    const double better = std::min(meanOf(tacc, 20000), meanOf(mpi, 20000));
    const double start = program.clock();
    for (int i = 0; i < 1000 && program.clock() < 3 * start + 4; ++i) program.run(2000);
    ASSERT_LE(program.run(20000), 1.6 * better + 60e-9)
        << "seed " << seed << "\ntacc " << tacc.text() << "\nMPI  " << mpi.text();
  }
}

TEST(Contests, CostLittle) {
  constexpr int calls = 300000;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draws draws(seed);
    const double quick = drawn(draws, 0.3, 2000) * us;
    Played tacc(draws, quick, true), mpi(draws, quick * drawn(draws, 0.3, 3), true);
    Program program(draws, tacc, mpi);
    program.run(200);
    const double first = program.inContests(), start = program.clock();
    program.run(calls);
    EXPECT_LE(program.inContests() - first, 0.03 * (program.clock() - start)) << "seed " << seed;
    // Or 10 ns a call, where calls are quick.
    EXPECT_LE(program.inLooks(), std::max(0.01 * (program.clock() - start), calls * 10e-9)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tacc::mpi
