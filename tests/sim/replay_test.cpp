// Plans in SimGrid against formulas, the cost simulator and what must hold for all.
#include "replay.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "report.hpp"
#include "selection/cost/cost_model.hpp"
#include "topology/toml/toml.hpp"
#include "trial.hpp"

namespace tacc::sim {
namespace {

constexpr double most = 1e6;  // times the partners of a rank

Topology flat(int hosts) {
  return topologyFromToml(
      "hosts = \"n[1-" + std::to_string(hosts) +
          "]\"\n[node]\nuplink = \"2 GB/s\"\n[[level]]\nlatency = \"5 us\"\nbandwidth = \"1 GB/s\"\n",
      "test");
}

/// Two hosts inside which a stream carries 100 MB/s.
Topology slowMemory() {
  return topologyFromToml(
      "hosts = \"n[1-2]\"\n[node]\nbandwidth = \"100 MB/s\"\nlatency = \"1 us\"\n[[level]]\nlatency = \"5 us\"\n"
      "bandwidth = \"1 GB/s\"\n",
      "test");
}

Topology example(const std::string& name) {
  const std::string path = std::string(TACC_TEST_EXAMPLES) + "/" + name + ".toml";
  return topologyFromToml(readText(path), path);
}

/// In processes of their own, since SimGrid runs once in each.
std::vector<Outcome> outcomes(Machine& machine, Collective collective, double bytes,
                              const std::vector<const Algorithm*>& algorithms) {
  std::vector<Trial> trials;
  for (const Algorithm* algorithm : algorithms) trials.push_back({&machine, collective, bytes, algorithm});
  return performAll(trials, most, 2, [](std::size_t) {});
}

double seconds(Machine& machine, Collective collective, double bytes, std::string_view name) {
  return outcomes(machine, collective, bytes, {findAlgorithm(name)})[0].seconds;
}

TEST(Replay, OneMessageTakesLatencyAndBytes) {
  Machine machine(flat(2), 2, Place::block, {});
  const double overhead = machine.selector().machine().overhead;
  for (const double bytes : {1.0, 1e3, 1e5})
    EXPECT_NEAR(seconds(machine, Collective::broadcast, bytes, "oneshot"), 2 * overhead + 5e-6 + bytes * 1e-9, 2e-9);
}

TEST(Replay, ARingTakesWhatItsFormulaSays) {
  const double bytes = 1 << 16;  // one chunk
  for (const int p : {2, 5, 16}) {
    Machine machine(flat(p), p, Place::block, {});
    const CostMachine& cost = machine.selector().machine();
    const double block = bytes / p, hop = 5e-6 + block * 1e-9;
    const double reducing = hop + 2 * cost.overhead + cost.gamma * block, passing = hop + 2 * cost.overhead;
    EXPECT_NEAR(seconds(machine, Collective::allReduce, bytes, "ring"), (p - 1) * (reducing + passing),
                1e-3 * (p - 1) * (reducing + passing))
        << p;
  }
}

TEST(Replay, StreamsShareThePort) {
  // Four streams of 1 GB/s leave a card of 2 GB/s.
  Machine machine(flat(5), 5, Place::block, {});
  const double overhead = machine.selector().machine().overhead;
  EXPECT_NEAR(seconds(machine, Collective::broadcast, 2e5, "oneshot"), 5 * overhead + 5e-6 + 4 * 2e5 / 2e9, 1e-6);
}

TEST(Replay, RanksOfAHostMeetInItsMemory) {
  Machine machine(flat(2), 3, Place::block, {}, 2);
  const CostMachine& cost = machine.selector().machine();
  const CostLevel& memory = cost.levels.front();
  ASSERT_LT(memory.overhead, cost.overhead);
  const double bytes = 1e3;  // to a rank of this host, and to one of the other
  EXPECT_NEAR(seconds(machine, Collective::broadcast, bytes, "oneshot"),
              memory.overhead + 2 * cost.overhead + 5e-6 + bytes * 1e-9, 5e-9);
  const double much = 1e6;  // which takes longer through memory than over both cards
  Machine slow(slowMemory(), 3, Place::block, {}, 2);
  EXPECT_NEAR(seconds(slow, Collective::broadcast, much, "oneshot"), much * 1e-8, 0.02 * much * 1e-8);
}

TEST(Replay, RanksOfAHostShareItsCard) {
  // Four ranks of each host send four of the other as much; one card, of 2 GB/s, is between them.
  Machine machine(flat(2), 8, Place::block, {}, 4);
  const double bytes = 64e3, least = 4 * 4 * bytes / 2e9;
  const double its = seconds(machine, Collective::allToAll, 8 * bytes, "oneshot");
  EXPECT_GT(its, least);
  EXPECT_LT(its, 1.5 * least);
}

TEST(Replay, RanksOnOneHostAreNoNetwork) {
  EXPECT_THROW(Machine(flat(2), 4, Place::block, {}, 4), Error);
  EXPECT_EQ(Machine(flat(3), 64, Place::block, {}, 4).ranks(), 12) << "as many as there is room for";
  EXPECT_EQ(Machine(flat(3), 7, Place::block, {}, 3).ranks(), 7);
}

TEST(Replay, PlacementsCostWhatUplinksAreNarrow) {
  const Topology narrow = topologyFromToml(
      "hosts = \"n[1-32]\"\n[node]\nuplink = \"1 GB/s\"\n[[level]]\nrule = \"position / 8\"\nuplink = \"8:1\"\n",
      "test");
  Machine inOrder(narrow, 32, Place::block, {5e-6, 1e9}), dealt(narrow, 32, Place::cyclic, {5e-6, 1e9});
  const double good = seconds(inOrder, Collective::allReduce, 1e7, "ring");
  EXPECT_GT(seconds(dealt, Collective::allReduce, 1e7, "ring"), 5 * good);
}

TEST(Replay, AgreesWithTheCostSimulator) {
  const auto compare = [](const char* name, int ranksPerHost) {
    Machine machine(example(name), 24, Place::block, {}, ranksPerHost);
    const CostMap map(machine.selector().machine());
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::allGather}) {
      const PlanRequest request = machine.selector().request(collective, 0);
      std::vector<const Algorithm*> serve;
      for (const Algorithm& algorithm : algorithms())
        if (algorithm.serves(request)) serve.push_back(&algorithm);
      const double bytes = 3 << 20;
      const std::vector<Outcome> found = outcomes(machine, collective, bytes, serve);
      for (std::size_t i = 0; i < serve.size(); ++i) {
        const Plan plan = makePlan(*serve[i], request);
        const double own = simulate(plan, map, machine.cut(collective, bytes, plan.blocks));
        EXPECT_NEAR(found[i].seconds, own, 0.02 * own)
            << serve[i]->name << " " << nameOf(collective) << " on " << name << ", " << ranksPerHost << " ranks a host";
      }
    }
  };
  for (const char* name : {"gemini_torus", "cray_xc_dragonfly", "fat_tree_infiniband"})
    for (const int ranksPerHost : {1, 5}) compare(name, ranksPerHost);
}

TEST(Report, MarksTheChoiceAndItsRegret) {
  Machine machine(flat(8), 8, Place::block, {});
  Point point{&machine, Collective::allReduce, 1 << 20, {findAlgorithm("oneshot"), findAlgorithm("ring")}, {}};
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.serves(machine.selector().request(Collective::allReduce, 0))) point.algorithms.push_back(&algorithm);
  point.outcomes = outcomes(machine, point.collective, point.bytes, point.algorithms);
  judge(point);
  ASSERT_TRUE(point.isComparable());
  EXPECT_GE(point.regret(), 0);
  const double all = point.outcomes[1].bytesAt[1];
  EXPECT_DOUBLE_EQ(all, 2.0 * 7 * (1 << 20)) << "a ring sends 2 (p - 1) times the vector";
  EXPECT_NE(table(point).find("-> "), std::string::npos);
  EXPECT_NE(summary({point}).find("choice, 1 calls"), std::string::npos);
}

TEST(Report, WhatIsTooMuchIsNotPlayed) {
  Machine machine(flat(8), 8, Place::block, {});
  const Outcome outcome =
      performAll({{&machine, Collective::allReduce, 1e6, findAlgorithm("ring")}}, 10, 1, [](std::size_t) {})[0];
  EXPECT_FALSE(outcome.isReplayed);
  EXPECT_GT(outcome.predicted, 0);
  EXPECT_EQ(outcome.messages, 2 * 7 * 8);
}

}  // namespace
}  // namespace tacc::sim
