// Choices that must come out as they do, the reasons with them, and the time that choosing takes.
#include "selection/network_prices.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "core/error.hpp"

namespace tacc {
namespace {

/// `streams`: how many of a group of `size` ranks can send out at full speed.
CostMap machine(int p, int size, double streams) {
  const double beta = 1e-10;
  return CostMap({p, {{groupsOfSize(p, size), 2e-6, beta, streams / beta}, {{0}, 2e-5, beta, 0}}, 0, 5e-11, 5e-7});
}

NetworkQuestion question(Collective collective, int p, int size, double bytes) {
  return {{collective, p, 0, equalGroups(p, {size}), {}}, bytes};
}

const NetworkCandidate& find(const std::vector<NetworkCandidate>& candidates, std::string_view name) {
  return *std::ranges::find_if(candidates, [&](const NetworkCandidate& c) { return c.algorithm->name == name; });
}

TEST(NetworkChoice, ListsEveryAlgorithmWithAReason) {
  for (int c = 0; c < collectiveCount; ++c) {
    const auto all = priceNetworkAlgorithms(question(static_cast<Collective>(c), 32, 8, 1e6), machine(32, 8, 2));
    EXPECT_EQ(all.size(), algorithms().size());
    ASSERT_TRUE(all.front().isPossible);
    EXPECT_TRUE(all.front().reason.starts_with("the fastest"));
    double before = 0;
    bool possible = true;
    for (const NetworkCandidate& candidate : all) {
      EXPECT_FALSE(candidate.reason.empty());
      EXPECT_LE(candidate.isPossible, possible) << "the impossible ones come last";
      possible = candidate.isPossible;
      EXPECT_EQ(candidate.isPossible,
                candidate.algorithm->serves(question(static_cast<Collective>(c), 32, 8, 1).request));
      if (!possible) continue;
      EXPECT_GE(candidate.seconds, before);
      EXPECT_LE(candidate.busiest, 1.0001 * candidate.seconds);
      before = candidate.seconds;
    }
  }
}

TEST(NetworkChoice, TakesFewStepsForLittleAndFewBytesForMuch) {
  const CostMap map = machine(64, 8, 8);
  const auto small = priceNetworkAlgorithms(question(Collective::allReduce, 64, 8, 8), map);
  const auto large = priceNetworkAlgorithms(question(Collective::allReduce, 64, 8, 1e9), map);
  EXPECT_GT(find(small, "ring").seconds, 3 * small.front().seconds);
  EXPECT_GT(find(large, "recursive_doubling").seconds, 2 * large.front().seconds);
  EXPECT_LT(large.front().seconds, 1.1 * 2 * 1e9 * 63 / 64 * 1e-10) << large.front().algorithm->name;
}

TEST(NetworkChoice, NarrowUplinksCallForTheHierarchy) {
  // One rank's worth of uplink for six: the lanes carry least over it.
  const auto all = priceNetworkAlgorithms(question(Collective::allReduce, 60, 6, 1e7), machine(60, 6, 1));
  const std::string_view best = all.front().algorithm->name;
  EXPECT_TRUE(best.starts_with("hierarchical") || best == "ring" || best == "ring_2d") << best;
  EXPECT_GT(find(all, "halving_doubling_far").seconds, 2 * all.front().seconds);
}

TEST(NetworkChoice, CutsWhereChunksCanFollowOneAnother) {
  const auto all = priceNetworkAlgorithms(question(Collective::broadcast, 64, 8, 1e8), machine(64, 8, 8));
  const NetworkCandidate& binomial = find(all, "binomial");
  EXPECT_LT(binomial.chunkBytes, 1e8);
  EXPECT_GE(binomial.chunkBytes, 16 * 1024);
  NetworkQuestion uncut = question(Collective::broadcast, 64, 8, 1e8);
  uncut.leastChunk = 1e8;
  EXPECT_GT(find(priceNetworkAlgorithms(uncut, machine(64, 8, 8)), "binomial").seconds, binomial.seconds);
}

TEST(NetworkChoice, RefusesAnotherNumberOfRanks) {
  EXPECT_THROW(priceNetworkAlgorithms(question(Collective::allReduce, 32, 8, 8), machine(64, 8, 8)), Error);
}

/// Hosts of 4 ranks, in supernodes.
CostMap supernodes(int p, int size) {
  const double beta = 1 / 6e9;
  return CostMap({p,
                  {{groupsOfSize(p, 4), 1e-6, beta, 1 / beta},
                   {groupsOfSize(p, size), 1e-5, beta, size / 16 / beta},
                   {{0}, 2e-5, beta, 0}},
                  0,
                  1e-10,
                  1e-6});
}

/// Least seconds of the CPU of some attempts: other programs run beside this one.
double secondsToChoose(const NetworkQuestion& asked, const CostMap& map) {
  double fastest = 1e9;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::clock_t begin = std::clock();
    EXPECT_TRUE(priceNetworkAlgorithms(asked, map).front().isPossible);
    fastest = std::min(fastest, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return fastest;
}

/// No work is done for each pair of ranks: 16 times as many take 256 times as long then. Held against fewer ranks on
/// the same machine, as no number of seconds holds on all of them.
TEST(NetworkChoice, TakesTensOfThousandsOfRanksWithoutWorkForEachPair) {
  for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::allGather}) {
    const auto secondsOf = [&](int p) {
      return secondsToChoose({{collective, p, 0, equalGroups(p, {4, 256}), {}}, 1e8}, supernodes(p, 1024));
    };
    const double few = secondsOf(2560), many = secondsOf(40960);
    fmt::print("{}: {:.2f} ms for 2560 ranks, {:.2f} ms for 40960\n", nameOf(collective), 1e3 * few, 1e3 * many);
    EXPECT_LT(many, 16 * 6 * few + 1e-3) << nameOf(collective);
  }
}

/// One rank is played for all that are alike, also where there are too many to play each.
TEST(NetworkChoice, PlaysTheBestOfManyRanks) {
  for (const int p : {512, 1024, 2048, 4096, 16384, 40960}) {
    const CostMap map = supernodes(p, 128);
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::allGather}) {
      const bool isStack = partitionOf(collective) == Partition::stack;
      for (const double bytes : {1e4, 1e7}) {
        NetworkQuestion asked{{collective, p, 0, equalGroups(p, {4, 32}), {}}, isStack ? bytes / p : bytes};
        asked.messageBytes = 64 * 1024;  // as calls are cut
        asked.isPlayed = true;
        const auto all = priceNetworkAlgorithms(asked, map);
        fmt::print("{} ranks, {} of {} bytes: {} of {} played\n", p, nameOf(collective), bytes,
                   std::ranges::count_if(all, &NetworkCandidate::isPlayed), all.front().algorithm->name);
        const bool isQuickToPlay = bytes < 1e5 ? p <= 4096 : p <= 1024;
        EXPECT_TRUE(all.front().isPlayed || !isQuickToPlay) << nameOf(collective) << " " << p;
        EXPECT_TRUE(!all.front().isPlayed || p <= 16384) << "too much work: " << nameOf(collective) << " " << p;
      }
    }
  }
}

}  // namespace
}  // namespace tacc
