// What invented times with noise lead to: nothing where candidates are alike, and all of a difference where there is
// one.
#include "tacc_tune/estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tacc::tune {
namespace {

constexpr std::size_t candidates = 12, rounds = 20;
constexpr unsigned trials = 400;

/// Noise as it is on a busy machine: a fifth either way, and now and then twice as long.
class Noise {
 public:
  explicit Noise(unsigned seed) : random_(seed) {}
  double operator()() { return std::exp(spread_(random_)) * (rare_(random_) ? 2 : 1); }
  Rounds of(double seconds, std::size_t count = rounds) {
    Rounds times;
    for (std::size_t i = 0; i < count; ++i) times.push_back(seconds * (*this)());
    return times;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> spread_{0, 0.2};
  std::bernoulli_distribution rare_{0.05};
};

struct Means {
  double share = 0, error = 0;
  double plain = 0;  // against the least typical time of all: what the luckiest makes of it
  double deviation = 0;
};

/// Of the first of many candidates, which takes `chosen`; one takes `fastest`, all others 1.
Means meansOf(double chosen, double fastest) {
  Means means;
  double squares = 0;
  for (unsigned seed = 0; seed < trials; ++seed) {
    Noise noise(seed);
    std::vector<Rounds> measured;
    for (std::size_t i = 0; i < candidates; ++i) measured.push_back(noise.of(i == 0 ? chosen : i == 5 ? fastest : 1));
    const Excess excess = excessOf(measured, 0);
    double least = typical(measured[0]);
    for (const Rounds& times : measured) least = std::min(least, typical(times));
    means.share += excess.share / trials;
    means.error += excess.error / trials;
    means.plain += (typical(measured[0]) / least - 1) / trials;
    squares += excess.share * excess.share / trials;
  }
  means.deviation = std::sqrt(std::max(0.0, squares - means.share * means.share));
  return means;
}

TEST(Estimate, NothingIsBetterWhereAllAreAlike) {
  const Means means = meansOf(1, 1);
  EXPECT_NEAR(means.share, 0, 0.012);
  EXPECT_GT(means.plain, 0.05) << "the luckiest of a dozen";
}

/// Every candidate by itself goes at one of two levels for some rounds in a row.
TEST(Estimate, WhatLastsForSomeRoundsIsNotOnBothSides) {
  double mean = 0;
  for (unsigned seed = 0; seed < trials; ++seed) {
    std::mt19937 random(seed);
    std::bernoulli_distribution slow(0.3);
    Noise noise(seed);
    std::vector<Rounds> measured;
    for (std::size_t i = 0; i < candidates; ++i) {
      Rounds times = noise.of(1, 2 * rounds);
      double level = 1;
      for (std::size_t r = 0; r < times.size(); ++r) {
        if (r % 4 == 0) level = slow(random) ? 1.6 : 1;
        times[r] *= level;
      }
      measured.push_back(times);
    }
    mean += excessOf(measured, 0).share / trials;
  }
  EXPECT_NEAR(mean, 0, 0.03);
}

TEST(Estimate, ADifferenceIsFoundInFull) {
  EXPECT_NEAR(meansOf(1, 1 / 1.2).share, 0.2, 0.02) << "one of a dozen is faster";
  EXPECT_NEAR(meansOf(1.5, 1).share, 0.5, 0.03) << "all others are";
  EXPECT_NEAR(meansOf(0.7, 1).share, 0, 0.005) << "none is";
}

TEST(Estimate, TheErrorIsThatOfTheShare) {
  const Means means = meansOf(1, 0.7);
  EXPECT_GT(means.error, 0.5 * means.deviation);
  EXPECT_LT(means.error, 2 * means.deviation);
}

TEST(Estimate, TypicalIsTheMeanOfTheMiddleHalf) {
  EXPECT_DOUBLE_EQ(typical({}), 0);
  EXPECT_DOUBLE_EQ(typical({3}), 3);
  EXPECT_DOUBLE_EQ(typical({1, 3}), 2);
  EXPECT_DOUBLE_EQ(typical({100, 3, 1}), 3);
  EXPECT_DOUBLE_EQ(typical({100, 1, 5, 3}), 4);
  EXPECT_DOUBLE_EQ(typical({8, 7, 6, 5, 4, 3, 2, 100}), 5.5);
  // Two levels, met in turns: neither is what a call takes.
  EXPECT_DOUBLE_EQ(typical({1, 1, 1, 1, 2, 2, 2, 2}), 1.5);
}

TEST(Estimate, ThoseThatWereGivenUpAreNoneOfTheFastest) {
  const std::vector<Rounds> measured = {{2, 2, 2, 2}, {1, 1}, {1.6, 1.6, 1.6, 1.6}};
  EXPECT_DOUBLE_EQ(excessOf(measured, 0).share, 0.25);
  EXPECT_DOUBLE_EQ(excessOf(std::vector<Rounds>{{3}, {2}}, 0).share, 0.5) << "one round compares as it can";
  EXPECT_DOUBLE_EQ(excessOf(std::vector<Rounds>{{}, {2}}, 0).share, 0) << "nothing is known";
}

TEST(Estimate, TheUsualOneStaysUnlessItIsSlower) {
  int stays = 0, leaves = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Noise noise(seed);
    std::vector<Rounds> alike;
    for (std::size_t i = 0; i < 2; ++i) alike.push_back(noise.of(1));
    stays += preferred(alike, 0) == 0 ? 1 : 0;
    const std::vector<Rounds> different = {noise.of(1.3), noise.of(1)};
    leaves += preferred(different, 0) == 1 ? 1 : 0;
  }
  EXPECT_GE(stays, 75) << "half of the time the other one is luckier";
  EXPECT_GE(leaves, 95);
}

TEST(Estimate, OfTwoThatAreAlikeTheSteadierIsTaken) {
  const std::vector<Rounds> measured = {{1, 0.5, 1.5, 0.6, 1.4, 0.9}, {1, 1.01, 0.99, 1, 1.02, 0.98}, {0.1}};
  EXPECT_EQ(preferred(measured, std::nullopt), 1u);
  EXPECT_EQ(preferred(measured, 2), 1u) << "the usual one was given up";
}

}  // namespace
}  // namespace tacc::tune
