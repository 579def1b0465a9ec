// What is measured of a link that lets the first bytes pass at once.
#include "topology/probe/steady_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tacc {
namespace {

double drawn(std::mt19937& random, double least, double most) {
  return std::exp(std::uniform_real_distribution(std::log(least), std::log(most))(random));
}

TEST(SteadyRate, IsThatOfTheLinkWhateverItsBucketLetsPass) {
  std::mt19937 random(1);
  for (int draw = 0; draw < 1000; ++draw) {
    const int pieces = static_cast<int>(drawn(random, 4, 64));
    const double link = drawn(random, 10, 1e6), burst = std::uniform_real_distribution(0.0, 1.9)(random);
    SteadyRate rate(static_cast<std::size_t>(pieces), 2);
    for (int piece = 1; piece <= pieces; ++piece)
      rate.saw(static_cast<std::size_t>(piece), std::max(0.0, piece - burst) / link);
    EXPECT_NEAR(rate.perSecond() / link, 1, 1e-9) << pieces << " pieces, " << burst << " at once";
  }
}

/// A network that carries lumps as long as a piece, or a little shorter: the last bytes follow at once.
TEST(SteadyRate, IsThatOfTheLinkWhereLumpsArrive) {
  std::mt19937 random(3);
  for (int draw = 0; draw < 1000; ++draw) {
    const int pieces = static_cast<int>(drawn(random, 5, 64));
    const double link = drawn(random, 10, 1e6), lump = std::uniform_real_distribution(0.99, 1.0)(random);
    SteadyRate rate(static_cast<std::size_t>(pieces), 2);
    for (int piece = 1; piece <= pieces; ++piece)
      rate.saw(static_cast<std::size_t>(piece), std::min<double>(std::ceil(piece / lump) * lump, pieces) / link);
    EXPECT_NEAR(rate.perSecond() / link, 1, 0.011) << pieces << " pieces, lumps of " << lump;
  }
}

/// Of each message two looks come late, as of one whose processor others use, too.
TEST(SteadyRate, DoesNotMindSomeLateLooks) {
  std::mt19937 random(4);
  for (int draw = 0; draw < 1000; ++draw) {
    const int pieces = static_cast<int>(drawn(random, 12, 64));
    const double link = drawn(random, 10, 1e6);
    std::vector<double> late(static_cast<std::size_t>(pieces) + 1);
    for (int i = 0; i < 2; ++i)
      late[std::uniform_int_distribution<std::size_t>(1, late.size() - 2)(random)] = drawn(random, 0.01, 0.99);
    SteadyRate rate(static_cast<std::size_t>(pieces), 2);
    for (int piece = 1; piece <= pieces; ++piece)
      rate.saw(static_cast<std::size_t>(piece),
               (std::max(0.0, piece - 1.1) + late[static_cast<std::size_t>(piece)]) / link);
    EXPECT_NEAR(rate.perSecond() / link, 1, 1e-9) << pieces << " pieces";
  }
}

/// One that is taken from its core looks late, and finds what came meanwhile.
TEST(SteadyRate, IsNotMoreThanOfTheWholeMessageWheneverItWasLookedAt) {
  std::mt19937 random(2);
  for (int draw = 0; draw < 1000; ++draw) {
    const int pieces = 1 + static_cast<int>(drawn(random, 1, 64));
    SteadyRate rate(static_cast<std::size_t>(pieces), 2);
    double seconds = 0;
    for (int here = 0; here < pieces;) {
      here = std::uniform_int_distribution(here, pieces)(random);
      seconds += drawn(random, 1e-6, 1);
      rate.saw(static_cast<std::size_t>(here), seconds);
    }
    EXPECT_LE(rate.perSecond(), pieces / seconds * (1 + 1e-12));
    EXPECT_GT(rate.perSecond(), 0);
  }
}

TEST(SteadyRate, OfWhatCameAtOnceIsThatOfTheWhole) {
  SteadyRate rate(8, 2);
  rate.saw(0, 1);
  rate.saw(8, 4);
  EXPECT_EQ(rate.perSecond(), 2);
}

}  // namespace
}  // namespace tacc
