// From a topology to the machine that is priced, and what is chosen on it.
#include "selection/network_selector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>

#include "core/error.hpp"
#include "draw.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

constexpr NetworkSpeed speed{20e-6, 25e6};

Topology twoGroups() {
  return topologyFromToml(R"(
[[level]]
groups = { a = "a[1-4]", b = "b[1-4]" }
uplink = "25 MB/s"
[[level]]
latency = "50 us"
)",
                          "test");
}

std::vector<std::string> hostsOf(const Topology& topology) { return topology.hostNames(); }

TEST(NetworkSelector, UnknownHostsAreAFlatMachine) {
  const CostMachine machine = costMachineOf(twoGroups(), {"a1", "x", "b1"}, {1, 1, 1}, speed);
  EXPECT_EQ(machine.ranks, 3);
  ASSERT_EQ(machine.levels.size(), 1u);
  EXPECT_TRUE(groupsOf(machine).empty());
}

TEST(NetworkSelector, LevelsGroupsAndUplinksComeFromTheTopology) {
  const Topology topology = twoGroups();
  const CostMachine one = costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed);
  ASSERT_EQ(one.levels.size(), 2u);
  EXPECT_EQ(one.levels[0].begins, (std::vector<int>{0, 4}));
  EXPECT_DOUBLE_EQ(one.levels[0].uplinks.of(1), 25e6);
  EXPECT_DOUBLE_EQ(one.levels[0].alpha, speed.latency) << "what nobody said is as measured";
  EXPECT_DOUBLE_EQ(one.levels[1].alpha, 50e-6);
  EXPECT_EQ(groupsOf(one), (std::vector<std::vector<int>>{{4, 4}}));

  const CostMachine three = costMachineOf(topology, hostsOf(topology), {1, 2, 3, 1, 1, 2, 3, 1}, speed);
  EXPECT_EQ(three.ranks, 14);
  EXPECT_EQ(three.levels[0].begins, (std::vector<int>{0, 1, 3, 6, 7, 8, 10, 13})) << "hosts";
  EXPECT_EQ(three.levels[1].begins, (std::vector<int>{0, 7}));
}

Topology torus() {
  return topologyFromToml(R"(
hosts = "n[0-63]"
[node]
uplink = "100 MB/s"
[[level]]
rule = "position / 2"
latency = "2 us"
[[level]]
wiring = "torus"
dimensions = [2, 4, 4]
links = 2
link = "10 MB/s"
latency = "5 us"
)",
                          "test");
}

CostMachine onTorus(const std::vector<int>& hosts, int ranks = 1) {
  std::vector<std::string> names;
  for (const int host : hosts) names.push_back("n" + std::to_string(host));
  return costMachineOf(torus(), names, std::vector<int>(hosts.size(), ranks), speed);
}

std::vector<int> numbers(int first, int last, int step = 1) {
  std::vector<int> all;
  for (int i = first; i < last; i += step) all.push_back(i);
  return all;
}

TEST(NetworkSelector, TheMachineIsWhatItsHostsShare) {
  const CostMachine pair = onTorus({6, 7});
  ASSERT_EQ(pair.levels.size(), 1u);
  EXPECT_DOUBLE_EQ(pair.levels[0].alpha, 2e-6) << "they meet at their router";
  EXPECT_TRUE(pair.levels[0].dimensions.empty());
  EXPECT_DOUBLE_EQ(pair.ports.of(0), 100e6) << "what the card carries";
  const CostMachine whole = onTorus(numbers(0, 64));
  EXPECT_EQ(whole.levels[1].places.size(), 32u);
  EXPECT_DOUBLE_EQ(whole.levels[1].linkBytesPerSecond, 20e6);
  EXPECT_NE(describeMachine(whole).find("a torus of 2 x 4 x 4, 20 MB/s a link"), std::string::npos);
}

TEST(NetworkSelector, PlansAreToldTheSidesOfATorusWhereTheRanksFillABox) {
  using Sides = std::vector<int>;
  EXPECT_EQ(dimensionsOf(onTorus(numbers(0, 64))), (Sides{2, 4, 4, 2})) << "two hosts at a router";
  EXPECT_EQ(dimensionsOf(onTorus(numbers(0, 64, 2))), (Sides{2, 4, 4}));
  EXPECT_EQ(dimensionsOf(onTorus(numbers(0, 64), 3)), (Sides{2, 4, 4, 6}));
  EXPECT_EQ(dimensionsOf(onTorus(numbers(32, 64, 2))), (Sides{4, 4}));
  EXPECT_EQ(dimensionsOf(onTorus(numbers(0, 63))), Sides{}) << "a router with one host";
  EXPECT_EQ(dimensionsOf(onTorus(numbers(0, 20))), Sides{}) << "no box";
  EXPECT_EQ(dimensionsOf(onTorus({6, 7})), Sides{});
  NetworkSelector selector(onTorus(numbers(0, 64, 2)));
  EXPECT_EQ(selector.request(Collective::allReduce, 0).dimensions, (Sides{2, 4, 4}));
  for (const char* name : {"swing", "ring_2d"})
    EXPECT_EQ(selector.choose(Collective::allReduce, 0, 1 << 20, name).name, name);
}

TEST(NetworkSelector, LinksOfATorusAreSharedByThoseWhoCrossThem) {
  NetworkSelector selector(onTorus(numbers(0, 64)));
  const auto candidates = selector.explain(Collective::allReduce, 0, 1 << 24);
  const auto secondsOf = [&](std::string_view name) {
    return std::ranges::find_if(candidates, [&](const auto& c) { return c.algorithm->name == name; })->seconds;
  };
  EXPECT_GT(secondsOf("halving_doubling_far"), 1.25 * secondsOf("ring_2d"));
}

TEST(NetworkSelector, EveryCallHasAnAlgorithmThatServesAnyRoot) {
  const Topology topology = twoGroups();
  NetworkSelector selector(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed));
  for (int c = 0; c < collectiveCount; ++c)
    for (std::size_t bytes = 1; bytes < std::size_t{1} << 31; bytes *= 3)
      for (const int root : {0, 3, 7}) {
        const auto collective = static_cast<Collective>(c);
        const Algorithm& algorithm = selector.choose(collective, root, bytes, {});
        EXPECT_TRUE(algorithm.serves({collective, 8, root, selector.groups(), {}})) << algorithm.name;
      }
}

/// Also what no memory holds can be asked for, in programs that trap arithmetic without a result.
TEST(NetworkSelector, EverySizeHasAPriceWithoutWrongArithmetic) {
  const Topology topology = twoGroups();
  test::Draw draw(20261129);
  for (int round = 0; round < 12; ++round) {
    const int ranksOfHost = draw.between(1, 2);
    NetworkSelector selector(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, ranksOfHost), speed));
    const auto collective = static_cast<Collective>(draw.below(collectiveCount));
    std::feclearexcept(FE_ALL_EXCEPT);
    double before = 0;
    for (int bits = 0; bits <= 64; bits += 16) {
      const std::size_t bytes = bits == 64 ? SIZE_MAX : std::size_t{1} << bits;
      const double seconds = selector.explain(collective, 0, bytes).front().seconds;
      EXPECT_TRUE(std::isfinite(seconds)) << nameOf(collective) << " of " << bytes << " bytes";
      EXPECT_GE(seconds, before) << nameOf(collective) << " of " << bytes << " bytes";
      before = seconds;
    }
    EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), 0) << nameOf(collective);
  }
}

TEST(NetworkSelector, WhatIsExplainedFirstIsWhatIsChosen) {
  const Topology topology = twoGroups();
  NetworkSelector selector(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed));
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{1} << 17, std::size_t{1} << 23}) {
    const auto candidates = selector.explain(Collective::allReduce, 0, bytes);
    EXPECT_EQ(candidates.size(), algorithms().size());
    EXPECT_EQ(candidates.front().algorithm, &selector.choose(Collective::allReduce, 0, bytes, {}));
  }
}

/// A broadcast from behind the narrow uplink crosses it outward, one from elsewhere inward.
TEST(NetworkSelector, RootsOfFewRanksAreToldApartAndThoseOfManyByTheirGroups) {
  const Topology topology = twoGroups();
  NetworkSelector few(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed));
  EXPECT_EQ(few.pricedRoot(Collective::broadcast, 5), 5);
  EXPECT_EQ(few.pricedRoot(Collective::allReduce, 5), 0);
  NetworkSelector many(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 32), speed));
  EXPECT_EQ(many.pricedRoot(Collective::broadcast, 37), 32);
  EXPECT_EQ(many.pricedRoot(Collective::reduce, 255), 224);
  EXPECT_EQ(&many.explain(Collective::reduce, 230, 4096), &many.explain(Collective::reduce, 224, 4096));
}

TEST(NetworkSelector, ForcedIsForcedOrAnErrorThatListsThePossible) {
  NetworkSelector selector(costMachineOf(Topology(), {"x", "y", "z"}, {1, 1, 1}, speed));
  EXPECT_EQ(selector.choose(Collective::allReduce, 0, 8, "ring").name, "ring");
  try {
    selector.choose(Collective::allReduce, 0, 8, "chain");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("ring"), std::string::npos) << error.what();
  }
}

/// Groups of hosts with links of 120 MB/s that share uplinks of 34 MB/s.
NetworkSelector behindUplinks(int groups, int hosts) {
  CostMachine machine;
  machine.ranks = groups * hosts;
  machine.ports = 120e6;
  machine.gamma = 1e-10;
  machine.overhead = 1e-5;
  CostLevel inner{{}, 3e-5, 1 / 120e6, 34e6}, outer{{0}, 4e-5, 1 / 34e6, 0};
  for (int g = 0; g < groups; ++g) inner.begins.push_back(g * hosts);
  machine.levels = {inner, outer};
  return NetworkSelector(std::move(machine));
}

/// Half the message where the first and the last ones are much of a call, but never less than suits the links.
TEST(NetworkSelector, CutsShortCallsIntoShorterMessages) {
  constexpr std::size_t kiB = 1024;
  const NetworkSelector three = behindUplinks(3, 3), four = behindUplinks(2, 4);
  EXPECT_EQ(three.messageBytes(Collective::allReduce, 1024 * kiB), 16 * kiB);
  EXPECT_EQ(three.messageBytes(Collective::allReduce, 16384 * kiB), 32 * kiB) << "long";
  EXPECT_EQ(three.messageBytes(Collective::allReduce, 4 * kiB), 32 * kiB) << "one message anyway";
  for (const std::size_t bytes : {64 * kiB, 1024 * kiB, 8192 * kiB})
    EXPECT_EQ(four.messageBytes(Collective::allReduce, bytes), 16 * kiB) << bytes;
}

}  // namespace
}  // namespace tacc
