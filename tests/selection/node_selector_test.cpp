// How calls inside a host are chosen: on hosts drawn at random, and on recorded ones.
#include "selection/node_selector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include "algorithms/relabel.hpp"
#include "algorithms/verifier.hpp"
#include "selection/selection.hpp"
#include "topology/golden.hpp"
#include "topology/model/node_places.hpp"
#include "topology/sources/hwloc_node.hpp"

namespace tacc::test {
namespace {

cpu_set_t only(std::uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

/// A rank on each of so many cores, spread evenly in the order of the walk.
std::vector<cpu_set_t> spread(const NodeDescription& node, int ranks) {
  std::vector<cpu_set_t> sets;
  for (int r = 0; r < ranks; ++r)
    sets.push_back(
        only(node.cores[static_cast<std::size_t>(r) * node.cores.size() / static_cast<std::size_t>(ranks)][0]));
  return sets;
}

NodeSelector selectorOf(const NodePlaces& places, bool isOversubscribed = false) {
  return NodeSelector(NodeMachine(places, assumedFigures(places), 1 << 20), 1 << 20, isOversubscribed);
}

std::vector<int> drawnOrder(std::mt19937& random, int ranks) {
  std::vector<int> order = placesUnknown(ranks).order;
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

NodeDescription drawnNode(std::mt19937& random) {
  const auto draw = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  return nodeFromSynthetic(fmt::format("pack:{} numa:{} l3:{} core:{} pu:1", draw(2), draw(4), draw(3), draw(4)),
                           "drawn");
}

TEST(NodePlaces, ranksOfAGroupAreNeighboursHoweverTheyWereDealt) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const NodeDescription node = drawnNode(random);
    const int ranks = 1 + static_cast<int>(random() % 24);
    std::vector<cpu_set_t> sets;
    std::vector<std::uint32_t> coreOf;
    for (int r = 0; r < ranks; ++r) {
      coreOf.push_back(static_cast<std::uint32_t>(random() % node.cores.size()));
      sets.push_back(only(node.cores[coreOf.back()][0]));
    }
    const NodePlaces places = placesOf(node, sets);
    std::vector<int> sorted = places.order;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, placesUnknown(ranks).order);
    std::vector<int> outer = {0};
    for (std::size_t l = places.levels.size(); l-- > 0; outer = places.levels[l].begins)
      EXPECT_TRUE(std::ranges::includes(places.levels[l].begins, outer)) << "groups are nested";
    // Two ranks are in one group of a kind exactly if their cores are.
    for (const PlaceLevel& level : places.levels) {
      int at = 0;
      while (node.levels[static_cast<std::size_t>(at)].kind != level.kind) ++at;
      const auto groupAt = [&](std::size_t place) {
        return std::ranges::upper_bound(level.begins, static_cast<int>(place)) - level.begins.begin();
      };
      for (std::size_t a = 0; a < sets.size(); ++a)
        for (std::size_t b = 0; b < sets.size(); ++b)
          EXPECT_EQ(groupAt(a) == groupAt(b),
                    node.nesting.groupOf(at + 1, coreOf[static_cast<std::size_t>(places.order[a])]) ==
                        node.nesting.groupOf(at + 1, coreOf[static_cast<std::size_t>(places.order[b])]));
    }
  }
}

TEST(NodePlaces, aRankThatMayMoveIsInNoGroupThatItMayLeave) {
  const NodeDescription node = nodeFromSynthetic("pack:2 numa:2 core:4 pu:1", "here");
  std::vector<cpu_set_t> sets = spread(node, 8);
  EXPECT_EQ(placesOf(node, sets).levels.size(), 2U);
  for (std::uint32_t cpu = 0; cpu < 8; ++cpu) CPU_SET(cpu, &sets[0]);  // anywhere in the first socket
  const NodePlaces places = placesOf(node, sets);
  ASSERT_EQ(places.levels.size(), 1U);
  EXPECT_EQ(places.levels[0].kind, LevelKind::socket);
  EXPECT_EQ(places.levels[0].begins, (std::vector<int>{0, 4}));
  CPU_SET(15, &sets[0]);
  EXPECT_TRUE(placesOf(node, sets).isFlat());
  EXPECT_EQ(placesOf(node, sets), placesUnknown(8));
}

TEST(Relabelled, everyPlanIsProvenInEveryOrder) {
  std::mt19937 random(2);
  int proven = 0;
  for (const Algorithm& algorithm : algorithms())
    for (int c = 0; c < collectiveCount; ++c)
      for (const int ranks : {2, 3, 6, 8, 9}) {
        PlanRequest request{static_cast<Collective>(c), ranks, 0};
        if (isRooted(request.collective)) request.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
        if (algorithm.looksAtLayout && ranks % 3 == 0) request.groups = equalGroups(ranks, {3});
        if (algorithm.looksAtLayout && ranks == 8) request.groups = equalGroups(ranks, {2, 2});
        if (!algorithm.serves(request) || isPrefix(request.collective)) continue;  // prefixes are in the ranks' order
        const std::vector<int> order = drawnOrder(random, ranks);
        const Plan plan = relabelled(makePlan(algorithm, request), order);
        EXPECT_EQ(plan.request.root, order[static_cast<std::size_t>(request.root)]);
        EXPECT_NO_THROW(verify(plan)) << algorithm.name << ' ' << nameOf(request.collective) << ' ' << ranks;
        EXPECT_NO_THROW(verify(plan, true)) << algorithm.name << ' ' << nameOf(request.collective) << " in place";
        ++proven;
      }
  EXPECT_GT(proven, 200);
}

/// Where nobody knows of a difference between ranks, calls run as ever.
TEST(NodeSelector, keepsTheRuleOnOneTier) {
  for (const int ranks : {2, 3, 4, 8, 16}) {
    NodeSelector selector = selectorOf(placesUnknown(ranks));
    for (int c = 0; c < collectiveCount; ++c)
      for (const std::size_t bytes : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{1} << 27}) {
        const auto collective = static_cast<Collective>(c);
        const NodeCandidate& chosen = selector.choose({collective, 0, bytes});
        ASSERT_NE(chosen.algorithm, nullptr);
        EXPECT_EQ(chosen.algorithm, &selectAlgorithm({{collective, ranks, 0}, bytes, false, {}}, {}));
        EXPECT_EQ(selector.choose({collective, 0, 1024, false, 1024}).algorithm, nullptr) << "eager";
      }
  }
}

/// A rank may ask for what others do not, to explain it: which size of a class was asked for first must not matter.
TEST(NodeSelector, choosesAlikeWhateverWasAskedBefore) {
  std::mt19937 random(11);
  const auto firstAsked = [](const NodePlaces& places, std::size_t bytes) {
    return selectorOf(places).goesEager({Collective::allReduce, 0, bytes, false, bytes});
  };
  int eager = 0, all = 0;
  for (int ranks = 3; ranks <= 48; ranks += 3) {
    const NodeDescription node = drawnNode(random);
    for (const NodePlaces& places : {placesUnknown(ranks), placesOf(node, spread(node, ranks))})
      for (std::size_t least = 1024; least < 32768; least += std::bit_floor(least) / 4) {
        const std::size_t most = least + std::bit_floor(least) / 4 - 1;
        const bool isEager = firstAsked(places, least);
        ASSERT_EQ(isEager, firstAsked(places, most)) << least << " to " << most << " bytes, " << ranks << " ranks";
        eager += isEager;
        ++all;
      }
  }
  EXPECT_GT(eager, 0);
  EXPECT_LT(eager, all);
}

/// Every rank reads all posts, or its part of them: the more ranks there are, the shorter are the posts for which parts
/// are faster. With two ranks, or more than cores, never; for what has no parts, such as an allgather, neither.
TEST(NodeSelector, readsPartsOfLongPostsWhereManyRanksHaveACoreEach) {
  const auto firstInParts = [](int ranks, bool isOversubscribed, Collective collective) {
    NodeSelector selector = selectorOf(placesUnknown(ranks), isOversubscribed);
    std::size_t first = 0;
    for (std::size_t bytes = 64; bytes <= 32768; bytes *= 2) {
      const NodeQuestion question{collective, 0, bytes, false, bytes};
      const bool isEager = selector.goesEager(question);
      EXPECT_EQ(isEager, selector.choose(question).algorithm == nullptr) << bytes << " bytes, " << ranks << " ranks";
      EXPECT_TRUE(first == 0 || !isEager) << "eager again at " << bytes << " bytes, " << ranks << " ranks";
      if (first == 0 && !isEager) first = bytes;
    }
    return first == 0 ? 65536 : first;
  };
  std::size_t before = 65536;
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64}) {
    const std::size_t first = firstInParts(ranks, false, Collective::allReduce);
    EXPECT_LE(first, before) << ranks << " ranks";
    before = first;
    if (ranks <= 4) {
      EXPECT_EQ(first, 65536u) << ranks << " ranks";
    }
    EXPECT_EQ(firstInParts(ranks, true, Collective::allReduce), 65536u) << ranks << " ranks";
    for (const Collective whole : {Collective::broadcast, Collective::allGather, Collective::allToAll})
      EXPECT_EQ(firstInParts(ranks, false, whole), 65536u) << nameOf(whole) << ", " << ranks << " ranks";
  }
  // As measured on 16 cores: from 4 and 8 KiB on.
  EXPECT_LE(firstInParts(16, false, Collective::allReduce), 4096u);
  EXPECT_LE(firstInParts(8, false, Collective::allReduce), 8192u);
  EXPECT_GT(firstInParts(16, false, Collective::reduce), 8192u);
}

TEST(NodeSelector, takesTheLeastPriceOrWhatIsWithinATenthOfIt) {
  std::mt19937 random(3);
  int left = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const NodeDescription node = drawnNode(random);
    const int ranks = 2 + static_cast<int>(random() % 31);
    NodeSelector selector = selectorOf(placesOf(node, spread(node, ranks)));
    const auto collective = static_cast<Collective>(random() % collectiveCount);
    if (isPrefix(collective)) continue;
    const int root = isRooted(collective) ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : 0;
    const std::size_t bytes = std::size_t{1} << (6 + random() % 20);
    const NodeQuestion question{collective, root, bytes, random() % 2 == 0, bytes <= 32768 ? bytes : 0};
    const std::vector<NodeCandidate>& candidates = selector.explain(question);
    double least = candidates.front().cost.seconds;
    for (const NodeCandidate& one : candidates) {
      if (!one.isPossible) continue;
      EXPECT_GT(one.cost.seconds, 0);
      least = std::min(least, one.cost.seconds);
      if (one.algorithm != nullptr) {
        EXPECT_TRUE(one.algorithm->serves(selector.request(collective, root, one.layout)));
      }
    }
    EXPECT_TRUE(candidates.front().isPossible);
    if (!selector.machine().isFlat()) {
      EXPECT_LE(candidates.front().cost.seconds * 0.9, least * (1 + 1e-9));
      left += candidates.front().layout != 0;
    }
    // The same values, the same choice.
    NodeSelector other = selectorOf(placesOf(node, spread(node, ranks)));
    EXPECT_EQ(other.choose(question).algorithm, candidates.front().algorithm);
    EXPECT_EQ(other.choose(question).layout, candidates.front().layout);
  }
  EXPECT_GT(left, 0);
}

/// Bytes that all ranks of the busiest group read from outside it.
double bytesAcross(const NodeSelector& selector, const NodeCandidate& candidate, int tier) {
  const NodeWork work(makePlan(*candidate.algorithm, selector.request(Collective::allReduce, 0, candidate.layout)),
                      false);
  std::map<int, double> in;
  for (int reader = 0; reader < selector.machine().ranks(); ++reader)
    for (const NodeTurn& turn : work.ranks[static_cast<std::size_t>(reader)])
      for (const NodeRead& read : turn.reads)
        if (selector.machine().groupOf(tier, read.owner) != selector.machine().groupOf(tier, reader))
          in[selector.machine().groupOf(tier, reader)] += read.blocks / work.blocks;
  double most = 0;
  for (const auto& [group, bytes] : in) most = std::max(most, bytes);
  return most;
}

/// Recorded hosts: long sums go through the groups, and cross their borders as often as they must.
TEST(NodeSelector, isHierarchicalWhereMemoryIsFar) {
  const std::map<std::string, NodeDescription> hosts = {
      {"two_sockets", *golden("two_sockets.hwloc.xml").node(0)},
      {"knl_snc4", *golden("knl_snc4.hwloc.xml").node(0)},
      {"128 cores", nodeFromSynthetic("pack:2 numa:4 l3:2 core:8 pu:1", "128 cores")},
  };
  for (const auto& [name, node] : hosts) {
    const int ranks = static_cast<int>(std::min<std::size_t>(node.cores.size(), 64));
    NodeSelector selector = selectorOf(placesOf(node, spread(node, ranks)));
    ASSERT_FALSE(selector.machine().isFlat()) << name;
    const NodeCandidate& chosen = selector.choose({Collective::allReduce, 0, std::size_t{1} << 24});
    ASSERT_NE(chosen.algorithm, nullptr) << name;
    EXPECT_NE(chosen.layout, 0) << name << '\n'
                                << describeCandidates(
                                       selector.explain({Collective::allReduce, 0, std::size_t{1} << 24}),
                                       selector.layouts());
    NodeCandidate rule;
    rule.algorithm = findAlgorithm("twoshot");
    const int outermost = static_cast<int>(selector.machine().tiers().size()) - 2;
    EXPECT_LT(bytesAcross(selector, chosen, outermost) * 2, bytesAcross(selector, rule, outermost)) << name;
  }
}

}  // namespace
}  // namespace tacc::test
