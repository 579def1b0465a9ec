#include "topology/model/topology.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "golden.hpp"
#include "topology/model/compare.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/torus.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// 12 hosts in leaves of 2, 4, 6 in two pods, shuffled as a source may find them.
TopologyDraft smallDraft(unsigned seed) {
  TopologyDraft draft;
  draft.name = "small";
  draft.node.uplink = 10e9;
  draft.root.alpha = 3e-6;
  LevelDraft leaf, pod;
  leaf.level.name = "leaf";
  leaf.level.uplink = 20e9;
  leaf.uplinks["c"] = 40e9;
  pod.level.kind = LevelKind::group;
  pod.level.name = "pod";
  std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (const int i : order) {
    draft.hosts.push_back("n" + std::to_string(i));
    leaf.groupOf.push_back(i < 2 ? "a" : i < 6 ? "b" : "c");
    pod.groupOf.push_back(i < 6 ? "p" : "q");
  }
  draft.levels = {leaf, pod};
  return draft;
}

TEST(Nesting, RefusesToCutGroups) {
  Nesting nesting(6);
  EXPECT_TRUE(nesting.add({0, 2, 4}));
  EXPECT_FALSE(nesting.add({0, 3}));
  EXPECT_FALSE(nesting.add({2}));
  EXPECT_FALSE(nesting.add({0, 4, 4}));
  EXPECT_FALSE(nesting.add({0, 6}));
  EXPECT_EQ(nesting.levels(), 2);
  EXPECT_TRUE(nesting.add({0, 4}));
  EXPECT_EQ(nesting.meet(0, 1), 1);
  EXPECT_EQ(nesting.meet(1, 2), 2);
  EXPECT_EQ(nesting.meet(3, 4), 3);
}

TEST(Topology, DoesNotDependOnTheOrderOfDiscovery) {
  const Topology first = build(smallDraft(1));
  for (unsigned seed = 2; seed < 30; ++seed) {
    const Topology other = build(smallDraft(seed));
    EXPECT_EQ(first, other);
    EXPECT_EQ(first.digest(), other.digest());
  }
}

TEST(Topology, TellsWhereHostsMeet) {
  const Topology topology = build(smallDraft(1));
  ASSERT_EQ(topology.levels(), 4);
  for (std::uint32_t a = 0; a < 12; ++a) {
    EXPECT_EQ(topology.find(topology.host(a)), a);
    for (std::uint32_t b = 0; b < 12; ++b) {
      int expected = 0;
      while (topology.groupOf(expected, a) != topology.groupOf(expected, b)) ++expected;
      EXPECT_EQ(topology.meet(a, b), expected);
    }
  }
  EXPECT_EQ(topology.find("n12"), std::nullopt);
  EXPECT_EQ(topology.meet(*topology.find("n0"), *topology.find("n1")), 1);
  EXPECT_EQ(topology.meet(*topology.find("n1"), *topology.find("n2")), 2);
  EXPECT_EQ(topology.meet(*topology.find("n5"), *topology.find("n6")), 3);
  EXPECT_EQ(topology.uplink(1, topology.groupOf(1, *topology.find("n6"))), 40e9);
  EXPECT_EQ(topology.uplink(1, 0), 20e9);
  EXPECT_EQ(topology.uplink(2, 0), std::nullopt);
  EXPECT_EQ(topology.uplink(3, 0), std::nullopt);
}

TEST(Topology, GroupsAreRunsThatCoverAllHosts) {
  const Topology topology = build(smallDraft(5));
  for (int level = 0; level < topology.levels(); ++level) {
    std::uint32_t next = 0;
    for (std::uint32_t g = 0; g < topology.groups(level); ++g) {
      EXPECT_EQ(topology.hostsOf(level, g).first, next);
      next = topology.hostsOf(level, g).last;
    }
    EXPECT_EQ(next, topology.hosts());
  }
}

TEST(Topology, DigestIsTheSameOnEveryMachine) {
  EXPECT_EQ(digestText(build(smallDraft(1))), "7d4ef6ed00b325c5");
  EXPECT_EQ(digestText(golden("fat_tree.ibnetdiscover")), "6a118768855e46d9");
}

TEST(Topology, DigestSeesEveryChange) {
  const auto changed = [](auto change) {
    TopologyDraft draft = smallDraft(1);
    change(draft);
    return build(std::move(draft)).digest();
  };
  std::vector<std::uint64_t> digests = {
      changed([](TopologyDraft&) {}),
      changed([](TopologyDraft& d) { d.name = "other"; }),
      changed([](TopologyDraft& d) { d.hosts[3] += "x"; }),
      changed([](TopologyDraft& d) { d.node.uplink = 11e9; }),
      changed([](TopologyDraft& d) { d.node.alpha = 10e9; }),
      changed([](TopologyDraft& d) { d.root.alpha.reset(); }),
      changed([](TopologyDraft& d) { d.root.wiring = Wiring::allToAll; }),
      changed([](TopologyDraft& d) { d.levels[0].level.kind = LevelKind::group; }),
      changed([](TopologyDraft& d) { d.levels[0].level.name = "x"; }),
      changed([](TopologyDraft& d) { d.levels[0].uplinks.clear(); }),
      changed([](TopologyDraft& d) { d.levels[0].hasNames = false; }),
      changed([](TopologyDraft& d) { d.levels[0].level.links = 2; }),
      changed([](TopologyDraft& d) { d.levels[0].level.rails = 2; }),
      changed([](TopologyDraft& d) { d.levels[0].level.rails = 3; }),
      changed([](TopologyDraft& d) { d.node.rails = 2; }),
      changed([](TopologyDraft& d) { d.levels.pop_back(); }),
      changed([](TopologyDraft& d) {
        d.levels[0].groupOf = d.hosts;
        d.levels[0].uplinks.clear();
      }),
      changed([](TopologyDraft& d) {
        d.nodes.resize(1);
        d.nodeOf.assign(12, 0u);
      }),
  };
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

TEST(Topology, RefusesWhatIsNoTree) {
  TopologyDraft twice = smallDraft(1);
  twice.hosts[4] = twice.hosts[5];
  EXPECT_THAT(messageOf([&] { build(twice); }), HasSubstr(twice.hosts[4] + " stands twice"));
  TopologyDraft crossing = smallDraft(1);
  std::swap(crossing.levels[0], crossing.levels[1]);
  EXPECT_THAT(messageOf([&] { build(crossing); }), HasSubstr("lies in two of the level \"leaf\""));
  TopologyDraft negative = smallDraft(1);
  negative.levels[0].level.uplink = -1;
  EXPECT_THAT(messageOf([&] { build(negative); }), HasSubstr("the uplink is -1, but must be above 0"));
  TopologyDraft zero = smallDraft(1);
  zero.levels[0].uplinks["c"] = 0;
  TopologyDraft noRail = smallDraft(1);
  noRail.levels[0].level.rails = 0;
  EXPECT_THAT(messageOf([&] { build(noRail); }), HasSubstr("it has 0 rails, but must have 1 to 1024"));
  EXPECT_THROW(build(zero), Error);
  TopologyDraft torus = smallDraft(1);
  torus.root.wiring = Wiring::torus;
  torus.root.dimensions = {3, 2};
  EXPECT_THAT(messageOf([&] { build(torus); }), HasSubstr("6 places, but 2 groups"));
  torus.root.dimensions.clear();
  EXPECT_THAT(messageOf([&] { build(torus); }), HasSubstr("a torus needs dimensions"));
}

TEST(Topology, APartKeepsWhatItsHostsShare) {
  const Topology whole = build(smallDraft(1));
  const Topology part = whole.only(std::vector<std::string>{"n7", "n0", "n1", "n11"});
  EXPECT_THAT(part.hostNames(), ElementsAre("n0", "n1", "n7", "n11"));
  EXPECT_EQ(part.levels(), whole.levels());
  EXPECT_EQ(part.uplink(1, part.groupOf(1, 2)), 40e9);
  for (std::uint32_t a = 0; a < part.hosts(); ++a) {
    for (std::uint32_t b = 0; b < part.hosts(); ++b) {
      EXPECT_EQ(part.meet(a, b), whole.meet(*whole.find(part.host(a)), *whole.find(part.host(b))));
    }
  }
  EXPECT_THAT(messageOf([&] {
                (void)whole.only(std::vector<std::string>{"n1", "x7"});
              }),
              HasSubstr("does not have the host x7"));
  EXPECT_THAT(messageOf([&] { (void)whole.only(std::vector<std::string>{"n1", "n1"}); }), HasSubstr("n1 stands twice"));
}

TEST(Topology, APartOfATorusIsOneWhereItFillsABox) {
  const Topology whole = topologyFromToml(
      "hosts = \"n[0-63]\"\n[[level]]\nrule = \"position / 2\"\n"
      "[[level]]\nwiring = \"torus\"\ndimensions = [2, 4, 4]\nlinks = 1\nlink = \"1 GB/s\"\n",
      "t");
  const auto dimensions = [&](const std::vector<int>& hosts) {
    std::vector<std::string> names;
    for (const int host : hosts) names.push_back("n" + std::to_string(host));
    return whole.only(names).level(2).dimensions;
  };
  std::vector<int> all(64), plane(32);
  std::iota(all.rbegin(), all.rend(), 0);
  std::iota(plane.begin(), plane.end(), 32);
  EXPECT_THAT(dimensions(all), ElementsAre(2, 4, 4)) << "all of it, in any order";
  EXPECT_THAT(dimensions(plane), ElementsAre(1, 4, 4));
  EXPECT_THAT(dimensions({1, 2, 8, 10}), ElementsAre(1, 2, 2)) << "routers 0, 1, 4 and 5";
  EXPECT_THAT(dimensions({0, 2, 8, 12}), ElementsAre());
  std::vector<std::string> names;
  for (std::size_t host = 64; host-- > 0;) names.push_back("n" + std::to_string(host));
  EXPECT_EQ(whole.only(names), whole) << "the order of the coordinates stays";
}

TEST(Topology, APartOfAnAllToAllIsOne) {
  const Topology whole = topologyFromToml(
      "hosts = \"n[0-7]\"\n[[level]]\nrule = \"number / 2\"\n"
      "[[level]]\nwiring = \"all-to-all\"\nlinks = 3\nlink = \"1 GB/s\"\n",
      "t");
  const Level part = whole.only(std::vector<std::string>{"n0", "n7", "n2"}).level(2);
  EXPECT_EQ(part.wiring, Wiring::allToAll);
  EXPECT_EQ(part.links, 3u);
}

TEST(Torus, WaysAreShortAndHangTogether) {
  const std::vector<std::uint32_t> sides = {3, 4, 5};
  const auto coordinate = [&](std::uint32_t place, int d) {
    return d == 0 ? place / 20 : d == 1 ? place / 5 % 4 : place % 5;
  };
  for (std::uint32_t from = 0; from < 60; ++from) {
    for (std::uint32_t to = 0; to < 60; ++to) {
      std::uint32_t at[] = {coordinate(from, 0), coordinate(from, 1), coordinate(from, 2)};
      std::uint32_t hops = 0, distance = 0;
      alongTorus(sides, from, to, [&](const TorusHop& hop) {
        EXPECT_EQ(hop.place, at[0] * 20 + at[1] * 5 + at[2]) << "each link begins where the last one ended";
        const auto d = static_cast<std::size_t>(hop.dimension);
        at[d] = (at[d] + (hop.isUp ? 1 : sides[d] - 1)) % sides[d];
        ++hops;
      });
      EXPECT_EQ(at[0] * 20 + at[1] * 5 + at[2], to);
      for (int d = 0; d < 3; ++d) {
        const std::uint32_t side = sides[static_cast<std::size_t>(d)];
        const std::uint32_t ahead = (coordinate(to, d) + side - coordinate(from, d)) % side;
        distance += std::min(ahead, side - ahead);
      }
      EXPECT_EQ(hops, distance);
    }
  }
}

TEST(Topology, WalkKeepsHostsTogetherAndRanksInOrder) {
  const std::vector<std::uint32_t> hostOf = {5, 0, 5, 2, 0, 2};
  EXPECT_THAT(Topology::walk(hostOf), ElementsAre(1, 4, 3, 5, 0, 2));
}

TEST(Topology, BisectionOfTreesTorusesAndDragonflies) {
  const auto read = [](const std::string& level) {
    return topologyFromToml("hosts = \"n[0-63]\"\n[node]\nuplink = \"1 GB/s\"\n" + level, "t");
  };
  const Topology tree = read("[[level]]\nrule = \"number / 16\"\nuplink = \"4:1\"\n");
  EXPECT_DOUBLE_EQ(tree.bisection(2).value(), 8e9);  // 4 leaves with 4 GB/s each
  EXPECT_DOUBLE_EQ(tree.bisection(1).value(), 8e9);  // within one leaf
  const Topology torus = read("[[level]]\nwiring = \"torus\"\ndimensions = [4, 4, 4]\nlinks = 2\nlink = \"1 GB/s\"\n");
  EXPECT_DOUBLE_EQ(torus.bisection(1).value(), 64e9);  // 16 lines, each cut twice, 2 links
  const Topology dragonfly =
      read("[[level]]\nrule = \"number / 16\"\n[[level]]\nwiring = \"all-to-all\"\nlinks = 3\nlink = \"1 GB/s\"\n");
  EXPECT_DOUBLE_EQ(dragonfly.bisection(2).value(), 12e9);  // 2 * 2 pairs of groups, 3 links
  EXPECT_EQ(read("[[level]]\nrule = \"number / 16\"\n").bisection(2), std::nullopt);
}

TEST(Topology, AnEmptyOneIsAValueToo) {
  const Topology empty;
  EXPECT_EQ(empty.hosts(), 0u);
  EXPECT_EQ(empty.levels(), 2);
  EXPECT_EQ(empty, build({}));
  EXPECT_FALSE(treeText(empty).empty());
}

TEST(Topology, TheLargestMachineIsReadInAFractionOfASecond) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const std::string text =
      "hosts = \"vn[000000-040959]\"\n[node]\nuplink = \"6 GB/s\"\nsynthetic = \"pack:1 numa:4 core:65 pu:1\"\n"
      "[[level]]\nname = \"supernode\"\nrule = \"number / 256\"\nuplink = \"4:1\"\n";
  const auto start = std::chrono::steady_clock::now();
  const Topology topology = topologyFromToml(text, "taihulight");
  const std::uint64_t digest = topology.digest();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1e3));
  EXPECT_EQ(topology.hosts(), 40960u);
  EXPECT_EQ(topology.groups(1), 160u);
  EXPECT_NE(digest, 0u);
  EXPECT_LT(seconds, 20);  // a sanitizer on a busy machine; without, some 50 ms
  EXPECT_EQ(topologyFromToml(topologyToToml(topology), "again"), topology);
}

TEST(Compare, EqualTopologiesHaveNoDifferences) {
  EXPECT_THAT(differences(build(smallDraft(1)), build(smallDraft(2)), "a", "b"), IsEmpty());
}

TEST(Compare, NamesEveryDifference) {
  const Topology a = build(smallDraft(1));
  TopologyDraft draft = smallDraft(1);
  draft.node.uplink = 5e9;
  draft.levels[0].uplinks["c"] = 50e9;
  draft.root.rails = 2;
  const auto moved = std::find(draft.hosts.begin(), draft.hosts.end(), "n0") - draft.hosts.begin();
  draft.levels[0].groupOf[static_cast<std::size_t>(moved)] = "b";
  draft
      .hosts[static_cast<std::size_t>(std::find(draft.hosts.begin(), draft.hosts.end(), "n11") - draft.hosts.begin())] =
      "n12";
  const std::vector<std::string> found = differences(a, build(std::move(draft)), "A", "B");
  std::string all;
  for (const std::string& sentence : found) all += sentence + "\n";
  EXPECT_THAT(all, HasSubstr("only A has 1 hosts: n11"));
  EXPECT_THAT(all, HasSubstr("only B has 1 hosts: n12"));
  EXPECT_THAT(all, HasSubstr("the uplink of level 0 (node): 10 GB/s in A, 5 GB/s in B"));
  EXPECT_THAT(all, HasSubstr("the rails of level 3 (root): 1 in A, 2 in B"));
  EXPECT_THAT(all, HasSubstr("the uplink of \"c\": 40 GB/s in A, 50 GB/s in B"));
  EXPECT_THAT(all, HasSubstr("grouped differently at level 1 (leaf)"));
}

TEST(TreeText, LeavesOutTheMiddleAndCountsIt) {
  const Topology topology = topologyFromToml("hosts = \"n[0-99]\"\n[[level]]\nrule = \"number / 2\"\n", "t");
  const std::string text = treeText(topology, 4);
  EXPECT_THAT(text, HasSubstr("47 more, with hosts n4 to n97"));
  EXPECT_THAT(text, HasSubstr("└── leaf 49: 2 hosts n[98-99]"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 16);
}

}  // namespace
}  // namespace tacc::test
