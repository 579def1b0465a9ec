// InfiniBand networks as sites have them.
#include <gmock/gmock.h>

#include "fabric_text.hpp"
#include "golden.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/sources/ibnet.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Topology read(const FabricText& fabric) { return readFabric(fabric.text()); }
Topology read(const std::string& text) { return readFabric(text); }
std::string errorOf(const std::string& text) {
  return messageOf([&] { topologySource("ibnet").read(text, "net"); });
}

std::string dgx(int host, int card) { return fmt::format("dgx{:03} mlx5_{}", host, card); }

TEST(Fabric, SharpAggregationNodesAreNoHosts) {
  FabricText fabric = FabricText::fatTree(20, 16, 16, 1, "4xHDR");
  const Topology without = read(fabric);
  for (std::size_t at = 0, devices = fabric.devices(); at < devices; ++at)
    if (at < 16 || at % 17 == 16) fabric.addAggregationNode(at);  // on spines and leaves
  const Topology topology = read(fabric);
  EXPECT_EQ(topology, without);
  EXPECT_EQ(topology.hosts(), 320u);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 20u);
  EXPECT_EQ(topology.level(1).uplink, 16 * 25e9);
}

/// Two scalable units of 31 hosts with 8 cards each, 32 spines: 48 switches.
TEST(Fabric, ARailOptimisedSuperPod) {
  FabricText fabric = FabricText::railOptimised(2, 31, 8, 32, dgx);
  for (std::size_t at = 0; at < 32; ++at) fabric.addAggregationNode(at);
  const Topology topology = read(fabric);
  EXPECT_EQ(topology.hosts(), 62u);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 2u);
  EXPECT_EQ(topology.level(0).rails, 8u);
  EXPECT_EQ(topology.level(1).rails, 8u);
  EXPECT_EQ(topology.level(2).rails, 1u) << "the spines join all rails";
  EXPECT_EQ(topology.level(0).uplink, 8 * 50e9) << "all cards of a host";
  EXPECT_EQ(topology.level(1).uplink, 8 * 32 * 50e9) << "all leaves of a unit";
  EXPECT_EQ(topology.level(1).bandwidth, 50e9) << "one stream uses one card";
  EXPECT_EQ(topology.groupName(1, 0),
            "su1-leaf1+su1-leaf2+su1-leaf3+su1-leaf4+su1-leaf5+su1-leaf6+su1-leaf7+su1-leaf8");
  EXPECT_EQ(meet(topology, "dgx001", "dgx031"), 1);
  EXPECT_EQ(meet(topology, "dgx031", "dgx032"), 2);
  EXPECT_THAT(treeText(topology), HasSubstr("8 rails"));
  EXPECT_THAT(topologyToToml(topology), HasSubstr("rails = 8\n"));
}

TEST(Fabric, PlanesThatAreNotConnectedAreRailsUpToTheTop) {
  FabricText fabric;
  for (const char plane : {'a', 'b'}) {
    std::vector<std::size_t> spines;
    for (int s = 0; s < 4; ++s) spines.push_back(fabric.addSwitch(fmt::format("{}-spine{}", plane, s)));
    for (int l = 0; l < 6; ++l) {
      const std::size_t leaf = fabric.addSwitch(fmt::format("{}-leaf{}", plane, l));
      for (const std::size_t spine : spines) fabric.cable(leaf, spine, "4xEDR");
      for (int h = 0; h < 12; ++h)
        fabric.cable(leaf, fabric.addCard(fmt::format("n{:02} HCA-{}", l * 12 + h, plane - 'a' + 1)), "4xEDR");
    }
  }
  const Topology topology = read(fabric);
  EXPECT_EQ(topology.hosts(), 72u);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 6u);
  EXPECT_EQ(topology.groupName(1, 0), "a-leaf0+b-leaf0");
  EXPECT_EQ(topology.level(1).rails, 2u);
  EXPECT_EQ(topology.level(2).rails, 2u);
  EXPECT_EQ(topology.level(0).uplink, 25e9);
  EXPECT_EQ(topology.level(1).uplink, 2 * 4 * 12.5e9);
  EXPECT_EQ(topology.level(2).bandwidth, 12.5e9);
}

/// Spines of each rail's own, cores above all of them: what units send to each other never needs a core.
TEST(Fabric, RailsThatOnlyCoresJoin) {
  FabricText fabric;
  const std::size_t core = fabric.addSwitch("core");
  std::vector<std::size_t> spines, leaves;
  for (int r = 0; r < 4; ++r) {
    spines.push_back(fabric.addSwitch(fmt::format("rail{}-spine", r)));
    fabric.cable(spines.back(), core, "4xNDR");
    for (int unit = 0; unit < 3; ++unit) {
      leaves.push_back(fabric.addSwitch(fmt::format("su{}-leaf{}", unit, r)));
      fabric.cable(leaves.back(), spines.back(), "4xNDR");
      for (int h = 0; h < 16; ++h) fabric.cable(leaves.back(), fabric.addCard(dgx(unit * 16 + h, r)), "4xNDR");
    }
  }
  const Topology topology = read(fabric);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 3u);
  EXPECT_EQ(topology.level(1).rails, 4u);
  EXPECT_EQ(topology.level(2).rails, 4u);
}

TEST(Fabric, AMissingCardMakesNoGroup) {
  FabricText whole, broken;
  for (FabricText* fabric : {&whole, &broken}) {
    const std::size_t spine = fabric->addSwitch("spine");
    for (int unit = 0; unit < 2; ++unit) {
      std::vector<std::size_t> leaves;
      for (int r = 0; r < 4; ++r) {
        leaves.push_back(fabric->addSwitch(fmt::format("u{}l{}", unit, r)));
        fabric->cable(leaves.back(), spine, "4xHDR");
      }
      for (int h = 0; h < 10; ++h)
        for (std::size_t r = 0; r < 4; ++r)
          if (fabric == &whole || h != 3 || r != 2)
            fabric->cable(leaves[r], fabric->addCard(fmt::format("n{:02} mlx5_{}", unit * 10 + h, r)), "4xHDR");
    }
  }
  const Topology a = read(whole), b = read(broken);
  ASSERT_EQ(b.levels(), a.levels());
  EXPECT_EQ(b.groups(1), 2u);
  EXPECT_EQ(meet(b, "n03", "n04"), 1);
  EXPECT_EQ(b.level(1).rails, 4u);
  EXPECT_EQ(b.uplink(0, b.find("n03").value()), 75e9);
  EXPECT_EQ(b.level(0).uplink, 100e9);
  EXPECT_EQ(b.level(1).uplink, a.level(1).uplink);
}

/// A file server with cards in two leaves does not make them one.
TEST(Fabric, FewHostsWithMoreCardsJoinNothing) {
  FabricText fabric = FabricText::fatTree(4, 16, 2, 4, "4xHDR");
  const Topology before = read(fabric);
  const std::size_t leaf1 = 2, leaf2 = 2 + 17;
  fabric.cable(leaf1, fabric.addCard("store mlx5_0"), "4xHDR");
  fabric.cable(leaf2, fabric.addCard("store mlx5_1"), "4xHDR");
  const Topology topology = read(fabric);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 4u);
  EXPECT_EQ(topology.level(1).rails, 1u);
  EXPECT_EQ(topology.level(0).rails, 1u);
  EXPECT_EQ(topology.uplink(0, topology.find("store").value()), 50e9);
  for (std::uint32_t g = 0; g < 4; ++g) EXPECT_EQ(topology.uplink(1, g), before.uplink(1, g));
}

/// Card 0 by racks of 4 hosts, card 1 by the place in the rack: only a host itself is together with itself in both.
TEST(Fabric, WhereRailsGroupHostsDifferentlyAGroupIsWhatNonePart) {
  FabricText fabric;
  std::vector<std::size_t> row, column;
  const std::size_t top = fabric.addSwitch("top");
  for (int i = 0; i < 3; ++i) row.push_back(fabric.addSwitch(fmt::format("row{}", i)));
  for (int i = 0; i < 2; ++i) column.push_back(fabric.addSwitch(fmt::format("column{}", i)));
  for (const std::size_t leaf : row) fabric.cable(leaf, top, "4xHDR");
  for (const std::size_t leaf : column) fabric.cable(leaf, top, "4xHDR");
  for (std::size_t h = 0; h < 12; ++h) {
    fabric.cable(row[h / 4], fabric.addCard(fmt::format("n{:02} mlx5_0", h)), "4xHDR");
    fabric.cable(column[h % 2], fabric.addCard(fmt::format("n{:02} mlx5_1", h)), "4xHDR");
  }
  const Topology topology = read(fabric);
  EXPECT_EQ(topology.groups(1), 6u);
  EXPECT_EQ(meet(topology, "n00", "n02"), 1);
  EXPECT_EQ(meet(topology, "n00", "n01"), 2);
  EXPECT_EQ(meet(topology, "n00", "n04"), 2);
  // Half of a row's cable and a third of a column's; all groups together have what there is.
  EXPECT_DOUBLE_EQ(topology.uplink(1, 0).value(), 25e9 * (1.0 / 2 + 1.0 / 3));
}

/// Pods of 2 leaves and 2 spines below 2 cores.
FabricText threeLevels(int pods) {
  FabricText fabric;
  std::vector<std::size_t> cores;
  for (int c = 0; c < 2; ++c) cores.push_back(fabric.addSwitch(fmt::format("core{}", c)));
  for (int p = 0; p < pods; ++p) {
    std::vector<std::size_t> spines;
    for (int s = 0; s < 2; ++s) {
      spines.push_back(fabric.addSwitch(fmt::format("p{}spine{}", p, s)));
      for (const std::size_t core : cores) fabric.cable(spines.back(), core, "4xHDR");
    }
    for (int l = 0; l < 2; ++l) {
      const std::size_t leaf = fabric.addSwitch(fmt::format("p{}leaf{}", p, l));
      for (const std::size_t spine : spines) fabric.cable(leaf, spine, "4xHDR");
      for (int h = 0; h < 8; ++h)
        fabric.cable(leaf, fabric.addCard(fmt::format("n{:03} mlx5_0", (p * 2 + l) * 8 + h)), "4xHDR");
    }
  }
  return fabric;
}

TEST(Fabric, ALoginHostAtACoreSwitchLeavesTheLevels) {
  const Topology before = read(threeLevels(3));
  ASSERT_EQ(before.levels(), 4);
  FabricText fabric = threeLevels(3);
  fabric.cable(0, fabric.addCard("login1 mlx5_0"), "4xHDR");
  fabric.cable(1, fabric.addCard("login2 mlx5_0"), "4xHDR");
  fabric.cable(1, fabric.addCard("backup mlx5_0"), "4xHDR");
  const Topology topology = read(fabric);
  ASSERT_EQ(topology.levels(), 4);
  for (std::uint32_t a = 0; a < before.hosts(); ++a)
    for (std::uint32_t b = 0; b < a; ++b)
      EXPECT_EQ(meet(topology, before.host(a), before.host(b)), before.meet(a, b)) << before.host(a) << before.host(b);
  EXPECT_EQ(meet(topology, "login2", "backup"), 1);
  EXPECT_EQ(meet(topology, "login1", "login2"), 3);
  EXPECT_EQ(meet(topology, "login1", "n000"), 3);
  EXPECT_EQ(topology.groupName(1, topology.groupOf(1, topology.find("login1").value())), "core0");
  EXPECT_EQ(topology.level(1).uplink, before.level(1).uplink);
  EXPECT_EQ(topology.level(2).uplink, before.level(2).uplink);
  EXPECT_EQ(topology.only(before.hostNames()), before) << "for the computing hosts nothing has changed";
}

/// A leaf with few hosts is a leaf: in its pod, though as far from other leaves as a core is.
TEST(Fabric, AnEmptyLeafIsInItsPod) {
  FabricText fabric = threeLevels(3);
  const std::size_t leaf = fabric.addSwitch("io-leaf");
  fabric.cable(leaf, 2, "4xHDR");  // spines of the first pod
  fabric.cable(leaf, 3, "4xHDR");
  fabric.cable(leaf, fabric.addCard("io1 mlx5_0"), "4xHDR");
  const std::size_t logins = fabric.addSwitch("login-leaf");  // hangs on the cores
  fabric.cable(logins, 0, "4xHDR");
  fabric.cable(logins, 1, "4xHDR");
  fabric.cable(logins, fabric.addCard("login1 mlx5_0"), "4xHDR");
  const Topology topology = read(fabric);
  ASSERT_EQ(topology.levels(), 4);
  EXPECT_EQ(meet(topology, "io1", "n000"), 2);
  EXPECT_EQ(meet(topology, "io1", "n016"), 3);
  EXPECT_EQ(meet(topology, "n000", "n008"), 2);
  EXPECT_EQ(meet(topology, "login1", "n000"), 3);
}

TEST(Fabric, SwitchesThatAreJoinedDirectlyAreAllLeaves) {
  FabricText fabric;
  for (std::size_t s = 0; s < 8; ++s) {  // a cube, the hosts of one corner mostly elsewhere
    const std::size_t leaf = fabric.addSwitch(fmt::format("sw{}", s));
    ASSERT_EQ(leaf, s);
  }
  for (std::size_t s = 0; s < 8; ++s) {
    for (const std::size_t bit : {1u, 2u, 4u})
      if ((s & bit) == 0) fabric.cable(s, s | bit, "4xQDR");
    for (int h = 0; h < (s == 5 ? 2 : 6); ++h)
      fabric.cable(s, fabric.addCard(fmt::format("r{}i{} HCA-1", s, h)), "4xQDR");
  }
  const Topology topology = read(fabric);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 8u);
}

TEST(Fabric, CardsWithoutAHostsNameAreToldApartBySystem) {
  FabricText fabric;
  const std::size_t leaf = fabric.addSwitch("leaf");
  for (const auto& [description, system] :
       std::vector<std::pair<std::string, std::uint64_t>>{{"MT4129 ConnectX7   Mellanox Technologies", 0xa1},
                                                          {"MT4129 ConnectX7   Mellanox Technologies", 0xa1},
                                                          {"MT4129 ConnectX7   Mellanox Technologies", 0xa2},
                                                          {"localhost mlx5_0", 0xa3},
                                                          {"localhost HCA-1", 0xa4},
                                                          {"localhost.localdomain mlx5_1", 0xa4},
                                                          {"mlx5_0", 0xa5},
                                                          {"", 0xa6},
                                                          {"n1 mlx5_0", 0xa7},
                                                          {"n1 mlx5_1", 0xa8},
                                                          {"localhost mlx5_2", 0xa8},  // n1 before it had a name
                                                          {"n2 mlx5_0", 0xa9},
                                                          {"n3 mlx5_0", 0xa9},  // one card in two hosts
                                                          {"MT4129 ConnectX7   Mellanox Technologies", 0xa9}}) {
    fabric.cable(leaf, fabric.addCard(description, system), "4xNDR");
  }
  const Topology topology = read(fabric);
  EXPECT_THAT(topology.hostNames(), ElementsAre("n1", "n2", "n3", "unnamed-a1", "unnamed-a2", "unnamed-a3",
                                                "unnamed-a4", "unnamed-a5", "unnamed-a6", "unnamed-a9"));
  EXPECT_EQ(topology.uplink(0, topology.find("n1").value()), 150e9);
  EXPECT_EQ(topology.uplink(0, topology.find("unnamed-a1").value()), 100e9);
  EXPECT_EQ(hostInDescription("MT25408 ConnectX Mellanox Technologies"), "");
  EXPECT_EQ(hostInDescription("MTA7 mlx5_0"), "MTA7");
  EXPECT_EQ(hostInDescription("localhost2 mlx5_0"), "localhost2");
}

TEST(Fabric, LinesOfOtherProgramsAreNoPartOfIt) {
  const FabricText fabric = FabricText::fatTree(2, 3, 1, 1, "4xEDR");
  const std::string text = fabric.text();
  const std::string around =
      "Last login: Mon Nov 23 09:40:02 2026 from 10.0.0.7\n[root@admin ~]# ibnetdiscover 2>&1\n"
      "ibwarn: [2207] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1,36)\n" +
      text.substr(text.find("\nvendid")) +
      "[root@admin ~]# jobs\n[1]+  Done                    sleep 3\n[2] 22071\nCa va bien\nSwitch to the other "
      "window\n";
  EXPECT_EQ(read(around), read(text));
  std::string within = text;
  within.insert(within.find("\n[", within.size() / 2), "\nsrc/query_smp.c:227; send failed; -5");
  EXPECT_EQ(read(within), read(text));
}

/// Also with lines of others, and where a rail's half is missing.
TEST(Fabric, APartOfAFileWithRailsIsRefused) {
  const std::string text =
      "[root@admin ~]# ibnetdiscover\n" + FabricText::railOptimised(1, 2, 2, 1, dgx).text() + "[root@admin ~]#\n";
  EXPECT_EQ(read(text).hosts(), 2u);
  for (std::size_t bytes = 0; bytes < text.rfind("\n["); ++bytes) {
    if (text.find("[1](", bytes) == std::string::npos) break;  // nothing but the last cable's own line is left
    EXPECT_THROW(topologySource("ibnet").read(text.substr(0, bytes), "part"), Error) << bytes << " of " << text.size();
  }
  std::string twice = text;  // a line that stands twice is not the other end
  const std::size_t port = twice.find("\n[1](");
  const std::size_t end = twice.find('\n', port + 1);
  twice.insert(end, twice.substr(port, end - port));
  EXPECT_EQ(read(twice), read(text));
  const std::size_t other = text.find("\n[1]\t");
  const std::string line = text.substr(other, text.find('\n', other + 1) - other);
  std::string without = text;
  without.replace(without.find(line), line.size(), "");
  EXPECT_THAT(errorOf(without), HasSubstr("is listed at one end only"));
}

TEST(Fabric, ReadsNetworksForIbsim) {
  EXPECT_EQ(read(readText(goldenPath("fat_tree.ibsim"))).hosts(), 4u);
  EXPECT_EQ(read(readText(goldenPath("fat_tree.ibsim"))).groups(1), 2u);
  const std::string text =
      "# an example\nSwitch\t8 \"left\"\n[1]\t\"Hca1\" [1]\tw=12\n[3]\t\"right\"[3]\n\nSwitch 8 \"right\"\n[1] "
      "\"Hca2\"[1]\n[2] \"Hca1\"[2]\n[3] \"left\" [3]\n\nHca\t2 \"Hca1\"\n[1]\t\"left\"[1]\n[2]\t\"right\"[2]\n\nHca 2 "
      "\"Hca2\"\n[1] \"right\"[1]\n";
  const Topology topology = read(text);
  EXPECT_THAT(topology.hostNames(), ElementsAre("Hca1", "Hca2"));
  EXPECT_EQ(topology.level(0).uplink, std::nullopt);
  EXPECT_THAT(errorOf("include rack1.net\n" + text), HasSubstr("net:1: it includes another file"));
  EXPECT_THAT(errorOf("Hca 2 \"a\nb"), HasSubstr("has no id in quotation marks"));
  EXPECT_THAT(errorOf("Hca 1 \"a\"\n[1] \"b\"[1]\n"),
              HasSubstr("net:2: the cable from a[1] to b[1] is listed at one end"));
  EXPECT_THAT(errorOf("Hca 1 \"a\"\n[1] \"a\"[1]\n"), HasSubstr("no host is plugged"));
  EXPECT_THAT(errorOf("Hca 1 \"a\"\nSwitch 1 \"a\"\n"), HasSubstr("is a switch and a card"));
}

TEST(Fabric, SpeedsArePrintedAsPeopleWriteThem) {
  for (const auto& [speed, shown, bytes] :
       std::vector<std::tuple<std::string, std::string, double>>{{"4xQDR", "4 GB/s", 4e9},
                                                                 {"4xFDR10", "5 GB/s", 5e9},
                                                                 {"4xFDR", "6.818 GB/s", 54.5454545454e9 / 8},
                                                                 {"4xEDR", "12.5 GB/s", 12.5e9},
                                                                 {"2xHDR", "12.5 GB/s", 12.5e9},
                                                                 {"4xHDR", "25 GB/s", 25e9},
                                                                 {"2xNDR", "25 GB/s", 25e9},
                                                                 {"4xNDR", "50 GB/s", 50e9},
                                                                 {"4xXDR", "100 GB/s", 100e9}}) {
    const Topology topology = read(FabricText::fatTree(2, 2, 1, 1, speed));
    EXPECT_NEAR(topology.level(0).uplink.value(), bytes, 1) << speed;
    EXPECT_THAT(treeText(topology), HasSubstr("  " + shown + "  ")) << speed;
    EXPECT_THAT(topologyToToml(topology), Not(HasSubstr(" B/s"))) << speed;
  }
}

/// Nothing is so large or so odd that it takes long.
TEST(Fabric, AThousandLeavesAndHostsEverywhere) {
  FabricText fabric = FabricText::fatTree(400, 20, 40, 1, "4xHDR");
  for (std::size_t spine = 0; spine < 40; ++spine)
    fabric.cable(spine, fabric.addCard(fmt::format("io{} mlx5_0", spine)), "4xHDR");
  const std::string text = fabric.text();
  const Topology topology = topologySource("ibnet").read(text, "net");
  EXPECT_EQ(topology.hosts(), 8040u);
  EXPECT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 440u);
}

}  // namespace
}  // namespace tacc::test
