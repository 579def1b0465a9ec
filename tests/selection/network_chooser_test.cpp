// From a topology to the machine that is priced, and what is chosen on it.
#include "selection/network_chooser.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "selection/network_selection.hpp"
#include "topology/toml.hpp"

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

TEST(NetworkChooser, UnknownHostsAreAFlatMachine) {
  const CostMachine machine = costMachineOf(twoGroups(), {"a1", "x", "b1"}, {1, 1, 1}, speed);
  EXPECT_EQ(machine.ranks, 3);
  ASSERT_EQ(machine.levels.size(), 1u);
  EXPECT_TRUE(groupsOf(machine).empty());
}

TEST(NetworkChooser, LevelsGroupsAndUplinksComeFromTheTopology) {
  const Topology topology = twoGroups();
  const CostMachine one = costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed);
  ASSERT_EQ(one.levels.size(), 2u);
  EXPECT_EQ(one.levels[0].begins, (std::vector<int>{0, 4}));
  EXPECT_DOUBLE_EQ(one.levels[0].uplinkBytesPerSecond, 25e6);
  EXPECT_DOUBLE_EQ(one.levels[0].alpha, speed.latency) << "what nobody said is as measured";
  EXPECT_DOUBLE_EQ(one.levels[1].alpha, 50e-6);
  EXPECT_EQ(groupsOf(one), (std::vector<std::vector<int>>{{4, 4}}));

  const CostMachine three = costMachineOf(topology, hostsOf(topology), {1, 2, 3, 1, 1, 2, 3, 1}, speed);
  EXPECT_EQ(three.ranks, 14);
  EXPECT_EQ(three.levels[0].begins, (std::vector<int>{0, 1, 3, 6, 7, 8, 10, 13})) << "hosts";
  EXPECT_EQ(three.levels[1].begins, (std::vector<int>{0, 7}));
}

TEST(NetworkChooser, EveryCallHasAnAlgorithmThatServesAnyRoot) {
  const Topology topology = twoGroups();
  NetworkChooser chooser(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed), speed);
  for (int c = 0; c < collectiveCount; ++c)
    for (std::size_t bytes = 1; bytes < std::size_t{1} << 31; bytes *= 3)
      for (const int root : {0, 3, 7}) {
        const auto collective = static_cast<Collective>(c);
        const Algorithm& algorithm = chooser.choose(collective, root, bytes, {});
        EXPECT_TRUE(algorithm.serves({collective, 8, root, chooser.groups(), {}})) << algorithm.name;
      }
}

TEST(NetworkChooser, WhatIsExplainedFirstIsWhatIsChosen) {
  const Topology topology = twoGroups();
  NetworkChooser chooser(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed), speed);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{1} << 17, std::size_t{1} << 23}) {
    const auto candidates = chooser.explain(Collective::allReduce, bytes);
    EXPECT_EQ(candidates.size(), algorithms().size());
    EXPECT_EQ(candidates.front().algorithm, &chooser.choose(Collective::allReduce, 0, bytes, {}));
  }
}

TEST(NetworkChooser, TheSimpleRuleIsLeftOnlyForWhatIsClearlyFaster) {
  const Topology topology = twoGroups();
  NetworkChooser chooser(costMachineOf(topology, hostsOf(topology), std::vector<int>(8, 1), speed), speed);
  int left = 0;
  for (const Collective collective :
       {Collective::allReduce, Collective::broadcast, Collective::allGather, Collective::reduceScatter})
    for (int power = 6; power < 28; ++power) {
      const std::size_t bytes = std::size_t{1} << power;
      const auto candidates = chooser.explain(collective, bytes);
      const Algorithm& simple = selectNetworkAlgorithm({{collective, 8, 0, chooser.groups(), {}}, bytes, speed, {}});
      const auto its = std::ranges::find(candidates, &simple, &NetworkCandidate::algorithm);
      const NetworkCandidate& chosen = candidates.front();
      if (chosen.algorithm == &simple) continue;
      ++left;
      const bool isAllAtOnce = chosen.algorithm->name == "oneshot" || chosen.algorithm->name == "twoshot";
      EXPECT_LT(chosen.seconds * (isAllAtOnce ? 1.5 : 1.1), its->seconds) << chosen.algorithm->name << " " << bytes;
    }
  EXPECT_GT(left, 0);
}

TEST(NetworkChooser, ForcedIsForcedOrAnErrorThatListsThePossible) {
  NetworkChooser chooser(costMachineOf(Topology(), {"x", "y", "z"}, {1, 1, 1}, speed), speed);
  EXPECT_EQ(chooser.choose(Collective::allReduce, 0, 8, "ring").name, "ring");
  try {
    chooser.choose(Collective::allReduce, 0, 8, "chain");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("ring"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tacc
