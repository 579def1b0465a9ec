// Prices of calls inside a host against SimGrid, on recorded hosts.
#include "inside.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "selection/node_selector.hpp"
#include "selection/selection.hpp"
#include "topology/golden.hpp"
#include "topology/sources/hwloc_node.hpp"

namespace tacc::sim::test {
namespace {

using tacc::test::golden;

std::map<std::string, NodeDescription> recordedHosts() {
  return {{"two sockets", *golden("two_sockets.hwloc.xml").node(0)},
          {"KNL", *golden("knl_snc4.hwloc.xml").node(0)},
          {"128 cores", nodeFromSynthetic("pack:2 numa:4 l3:2 core:8 pu:1", "128 cores")}};
}

NodePlaces placesIn(const NodeDescription& node, int ranks) {
  std::vector<cpu_set_t> sets;
  for (int rank = 0; rank < ranks; ++rank) {
    CPU_ZERO(&sets.emplace_back());
    CPU_SET(node.cores[static_cast<std::size_t>(rank) * node.cores.size() / static_cast<std::size_t>(ranks)][0],
            &sets.back());
  }
  return placesOf(node, sets);
}

struct Played {
  double priced, played;
};

Played play(NodeSelector& selector, Collective collective, std::string_view algorithm, std::size_t bytes) {
  const NodeQuestion question{collective, 0, bytes};
  for (const NodeCandidate& one : selector.explain(question)) {
    if (one.algorithm == nullptr || one.algorithm->name != algorithm || !one.isPossible) continue;
    const PlanRequest request = selector.request(collective, 0, one.layout);
    const NodeWork work(makePlan(*one.algorithm, request), false);
    const NodeCall call{static_cast<double>(bytes), stagingChunk({request, bytes, false, {}}), 1 << 20};
    return {one.cost.seconds, playApart(work, selector.machine(), call, algorithm) + priceEntry(selector.machine())};
  }
  ADD_FAILURE() << algorithm << " does not serve " << nameOf(collective);
  return {1, 1};
}

TEST(Inside, pricesAreNearWhatSimGridFinds) {
  constexpr int ranks = 16;
  for (const auto& [name, node] : recordedHosts()) {
    const NodePlaces places = placesIn(node, ranks);
    NodeSelector selector(NodeMachine(places, assumedFigures(places), 1 << 20), 1 << 20, false);
    for (const std::size_t bytes : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{1} << 23}) {
      for (const char* algorithm : {"twoshot", "hierarchical", "hierarchical_ring", "ring", "recursive_doubling"}) {
        const Played one = play(selector, Collective::allReduce, algorithm, bytes);
        EXPECT_NEAR(one.priced / one.played, 1, 0.5) << name << ' ' << algorithm << ' ' << bytes;
      }
      for (const char* algorithm : {"oneshot", "binomial", "hierarchical"}) {
        const Played one = play(selector, Collective::broadcast, algorithm, bytes);
        EXPECT_NEAR(one.priced / one.played, 1, 0.5) << name << " broadcast " << algorithm << ' ' << bytes;
      }
    }
  }
}

TEST(Inside, theChoiceIsFasterThanTheRuleWhereMemoryIsFar) {
  constexpr int ranks = 64;
  for (const auto& [name, node] : recordedHosts()) {
    const NodePlaces places = placesIn(node, ranks);
    NodeSelector selector(NodeMachine(places, assumedFigures(places), 1 << 20), 1 << 20, false);
    const std::size_t bytes = std::size_t{1} << 20;
    const NodeCandidate chosen = selector.choose({Collective::allReduce, 0, bytes});
    EXPECT_NE(chosen.layout, 0) << name;
    const double mine = play(selector, Collective::allReduce, chosen.algorithm->name, bytes).played;
    EXPECT_LT(mine, play(selector, Collective::allReduce, "twoshot", bytes).played) << name;
  }
}

}  // namespace
}  // namespace tacc::sim::test
