// The sources that read files and names, on golden files.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/text_file.hpp"
#include "golden.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/ibnet.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/yaml_text.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

std::string confError(const std::string& text) {
  return messageOf([&] { topologyFromSlurmConf(text, "t.conf"); });
}

TEST(Slurm, ReadsATree) {
  const Topology topology = golden("tree.topology.conf");
  EXPECT_EQ(topology.hosts(), 72u);
  ASSERT_EQ(topology.levels(), 4);
  EXPECT_EQ(topology.level(3).name, "spine1");
  EXPECT_EQ(meet(topology, "n001", "n018"), 1);
  EXPECT_EQ(meet(topology, "n001", "n019"), 2);
  EXPECT_EQ(meet(topology, "n001", "gpu2"), 3);
  EXPECT_EQ(meet(topology, "n055", "gpu2"), 1);
}

TEST(Slurm, ReadsBlocksAndJoinsThem) {
  const Topology topology = golden("block.topology.conf");
  ASSERT_EQ(topology.levels(), 4);
  EXPECT_EQ(meet(topology, "node01", "node18"), 1);
  EXPECT_EQ(meet(topology, "node01", "node19"), 2);
  EXPECT_EQ(meet(topology, "node01", "node37"), 3);
}

TEST(Slurm, ReadsTheDefaultOfAYamlFile) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  const Topology topology = golden("topology.yaml");
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.level(2).name, "sw_root");
  EXPECT_EQ(topology.groupName(1, 2), "s3");
  EXPECT_EQ(meet(topology, "node01", "node04"), 1);
  EXPECT_EQ(meet(topology, "node04", "node05"), 2);
}

TEST(Slurm, YamlErrorsSayWhere) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  const auto error = [](const std::string& text) { return messageOf([&] { topologyFromSlurmYaml(text, "t.yaml"); }); };
  EXPECT_THAT(error("- topology: a\n  tree:\n    swiches: []\n"),
              HasSubstr("t.yaml:3: unknown key \"swiches\"; did you mean switches?"));
  EXPECT_THAT(error("- topology: a\n  flat: true\n"), HasSubstr("is flat: it groups no hosts"));
  EXPECT_THAT(error("a: [b"), HasSubstr("no YAML"));
  EXPECT_THAT(error("x"), HasSubstr("is a list"));
}

TEST(Slurm, UnevenTreesAndSeveralSpines) {
  const Topology topology = topologyFromSlurmConf(
      "SwitchName=l1 Nodes=a[1-2]\nSwitchName=l2 Nodes=a[3-4]\nSwitchName=mid Switches=l1,l2\n"
      "SwitchName=top Switches=mid,l3 Nodes=login\nSwitchName=l3 Nodes=b[1-2]\n",
      "t.conf");
  EXPECT_EQ(meet(topology, "a1", "a2"), 1);
  EXPECT_EQ(meet(topology, "a1", "a3"), 2);
  EXPECT_EQ(meet(topology, "b1", "b2"), 1);
  EXPECT_EQ(meet(topology, "a1", "b1"), 3);
  EXPECT_EQ(meet(topology, "login", "b1"), 3);
  const Topology spines = topologyFromSlurmConf(
      "SwitchName=l1 Nodes=a[1-2]\nSwitchName=l2 Nodes=a[3-4]\nSwitchName=s1 Switches=l[1-2]\nSwitchName=s2 "
      "Switches=l[1-2]\n",
      "t");
  EXPECT_EQ(spines.levels(), 3);
}

TEST(Slurm, AHostAtTwoLeavesHasRails) {
  const auto read = [](const std::string& text) { return topologyFromSlurmConf(text, "t.conf"); };
  const std::string leaves =
      "SwitchName=a1 Nodes=n[1-8]\nSwitchName=a2 Nodes=n[9-16]\nSwitchName=b1 Nodes=n[1-8]\nSwitchName=b2 "
      "Nodes=n[9-16],login\n";
  const Topology joined = read(leaves + "SwitchName=core Switches=a[1-2],b[1-2]\n");
  EXPECT_EQ(joined.hosts(), 17u);
  ASSERT_EQ(joined.levels(), 3);
  EXPECT_EQ(joined.groups(1), 2u);
  EXPECT_EQ(joined.groupName(1, 0), "a2+b2");
  EXPECT_EQ(meet(joined, "n1", "n8"), 1);
  EXPECT_EQ(meet(joined, "n1", "n9"), 2);
  EXPECT_EQ(meet(joined, "login", "n9"), 1);
  EXPECT_EQ(joined.level(0).rails, 2u);
  EXPECT_EQ(joined.level(1).rails, 2u);
  EXPECT_EQ(joined.level(2).rails, 1u);
  EXPECT_EQ(joined.level(2).name, "core");
  const Topology planes = read(leaves + "SwitchName=coreA Switches=a[1-2]\nSwitchName=coreB Switches=b[1-2]\n");
  ASSERT_EQ(planes.levels(), 3);
  EXPECT_EQ(planes.level(2).rails, 2u);
  EXPECT_EQ(planes.level(2).name, "coreA+coreB");
  EXPECT_EQ(meet(planes, "n1", "n9"), 2);
  const Topology pods =
      read(leaves +
           "SwitchName=a3 Nodes=n[17-20]\nSwitchName=b3 Nodes=n[17-20]\nSwitchName=pa Switches=a[1-2]\nSwitchName=pb "
           "Switches=b[1-2]\nSwitchName=top Switches=pa,a3\nSwitchName=topb Switches=pb,b3\n");
  ASSERT_EQ(pods.levels(), 4);
  EXPECT_EQ(meet(pods, "n1", "n9"), 2);
  EXPECT_EQ(meet(pods, "n1", "n17"), 3);
  EXPECT_EQ(pods.level(2).rails, 2u);
  if (!hasYaml()) return;
  const Topology yaml = topologyFromSlurmYaml(
      "- topology: t\n  tree:\n    switches:\n      - {switch: a, nodes: 'n[1-4]'}\n      - {switch: b, nodes: "
      "'n[1-4]'}\n"
      "      - {switch: c, children: 'a,b'}\n",
      "t.yaml");
  EXPECT_EQ(yaml.hosts(), 4u);
  EXPECT_EQ(yaml.level(1).rails, 2u);
}

TEST(Slurm, BadFilesAreNamed) {
  EXPECT_THAT(confError("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), HasSubstr("the switches form a loop"));
  EXPECT_THAT(confError("SwitchName=a Switches=a\n"), HasSubstr("loop"));
  EXPECT_THAT(confError("SwitchName=a Nodes=x\nSwitchName=a Nodes=y\n"),
              HasSubstr("t.conf:2: the switch a stands in t.conf:1"));
  EXPECT_EQ(confError("SwitchName=a Nodes=x,y,x\n"), "no error") << "a host may be named twice at one switch";
  EXPECT_EQ(confError("SwitchName=a Nodes=x\nSwitchName=b Switches=a Nodes=x\n"), "no error") << "and again above it";
  EXPECT_THAT(confError("SwitchName=leaf1 Nodes=x\nSwitchName=b Switches=leaf2\n"), HasSubstr("did you mean leaf1?"));
  EXPECT_THAT(confError("SwitchName=a Node=x\n"), HasSubstr("unknown key \"Node\"; did you mean Nodes?"));
  EXPECT_THAT(confError("SwitchName=a\n"), HasSubstr("no switch has hosts"));
  EXPECT_THAT(confError("SwitchName=a Nodes=x Nodes=y\n"), HasSubstr("stands twice"));
  EXPECT_THAT(confError("SwitchName=a Nodes=n[1-999999999999]\n"), HasSubstr("t.conf:1"));
  EXPECT_THAT(confError("BlockName=a Nodes=x\nSwitchName=b Nodes=y\n"), HasSubstr("both SwitchName and BlockName"));
  EXPECT_THAT(confError("BlockSizes=0\nBlockName=a Nodes=x\n"), HasSubstr("BlockSizes"));
  EXPECT_THAT(confError("# nothing\n"), HasSubstr("no line begins with SwitchName="));
  std::string chain;  // deeper than any network
  for (int i = 0; i < 3000; ++i) chain += fmt::format("SwitchName=s{} Switches=s{}\n", i, i + 1);
  EXPECT_THAT(confError(chain + "SwitchName=s3000 Nodes=x\n"), HasSubstr("below more than"));
}

TEST(Slurm, ReadsAddressesOfAJob) {
  std::vector<HostClues> hosts(4);
  for (std::size_t i = 0; i < 4; ++i) {
    hosts[i].host = "n" + std::to_string(i);
    hosts[i].slurmAddress = fmt::format("s0.s{}.n{}.example.org", i / 2 + 1, i);
    hosts[i].slurmPattern = "switch.switch.node";
  }
  const Topology topology = topologyFromSlurmAddresses(hosts);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.level(2).name, "s0");
  EXPECT_EQ(meet(topology, "n0", "n1"), 1);
  EXPECT_EQ(meet(topology, "n1", "n2"), 2);
  hosts[2].slurmAddress = "s0";
  EXPECT_THAT(messageOf([&] { topologyFromSlurmAddresses(hosts); }), HasSubstr("host n2: SLURM_TOPOLOGY_ADDR"));
  hosts[2].slurmAddress.clear();
  EXPECT_EQ(topologyFromSlurmAddresses(hosts).hosts(), 0u);
}

TEST(Sunway, GroupsByTheNumber) {
  const TopologySource& sunway = topologySource("sunway");
  const Topology topology = sunway.read("vn000000\nvn[000255-000256]\nvn040959\n", "t");
  EXPECT_EQ(topology.groups(1), 3u);
  EXPECT_EQ(meet(topology, "vn000000", "vn000255"), 1);
  EXPECT_EQ(meet(topology, "vn000255", "vn000256"), 2);
  EXPECT_THAT(messageOf([&] { sunway.read("vn000001\nlogin\n", "t"); }), HasSubstr("t: not all hosts are called"));
  SourceContext context;
  for (const char* name : {"vn000001", "login"}) context.hosts.emplace_back().host = name;
  EXPECT_FALSE(sunway.look(context)) << "a host with another name";
  context.hosts.pop_back();
  EXPECT_TRUE(sunway.look(context));
}

TEST(Ibnet, FindsLeavesPodsAndUplinks) {
  const Topology topology = golden("three_levels.ibnetdiscover");
  EXPECT_EQ(topology.hosts(), 16u);
  ASSERT_EQ(topology.levels(), 4);
  EXPECT_EQ(topology.groupName(1, 0), "leaf0");
  EXPECT_EQ(meet(topology, "cn001", "cn004"), 1);
  EXPECT_EQ(meet(topology, "cn001", "cn005"), 2);
  EXPECT_EQ(meet(topology, "cn001", "cn009"), 3);
  EXPECT_EQ(topology.level(0).uplink, 12.5e9);
  EXPECT_EQ(topology.uplink(1, 0), 25e9);
  EXPECT_EQ(topology.uplink(2, 0), 50e9);
}

/// Wherever a file ends too early, or begins too late, it is refused and does not pass for a smaller network.
TEST(Ibnet, APartOfAFileIsRefused) {
  const std::string whole = readText(goldenPath("fat_tree.ibnetdiscover"));
  const auto read = [](const std::string& text) {
    return topologyOfFabric(fabricFromIbnetdiscover(text, "part"), "part");
  };
  EXPECT_EQ(read(whole).hosts(), 4u);
  const std::size_t lastCable = whole.rfind("\n["), secondDevice = whole.find("\nSwitch", whole.find("\nSwitch") + 1);
  ASSERT_LT(secondDevice, lastCable);
  for (std::size_t bytes = 0; bytes < lastCable; ++bytes)
    EXPECT_THROW(read(whole.substr(0, bytes)), Error) << bytes << " of " << whole.size();
  EXPECT_THROW(read(whole.substr(secondDevice)), Error);
}

TEST(Ibnet, SpeedsAreOfData) {
  EXPECT_DOUBLE_EQ(infinibandBandwidth("4xQDR"), 4e9);
  EXPECT_NEAR(infinibandBandwidth("4xFDR"), 6.82e9, 1e7);
  EXPECT_DOUBLE_EQ(infinibandBandwidth("4xHDR"), 25e9);
  EXPECT_DOUBLE_EQ(infinibandBandwidth("12xEDR"), 37.5e9);
  for (const char* text : {"", "x", "4x", "QDR", "4xWOW", "99xQDR"}) EXPECT_EQ(infinibandBandwidth(text), 0) << text;
}

TEST(Ibnet, DescriptionsNameHostsAndSwitches) {
  EXPECT_EQ(hostInDescription("node7 HCA-1"), "node7");
  EXPECT_EQ(hostInDescription(""), "");
  EXPECT_EQ(switchInDescription("MF0;leaf1:MQM8700/U1"), "leaf1");
  EXPECT_EQ(switchInDescription("Infiniscale-IV Mellanox Technologies"), "Infiniscale-IV Mellanox Technologies");
}

TEST(Ibnet, HostsAreTogetherInTheirRails) {
  Fabric fabric;
  for (const char* name : {"r0a", "r0b", "r1a", "r1b", "top"})
    fabric.devices.push_back({fmt::format("S-{}", fabric.devices.size()), name, Fabric::Kind::switching});
  for (std::uint32_t host = 0; host < 4; ++host) {
    for (std::uint32_t rail = 0; rail < 2; ++rail) {
      fabric.devices.push_back({fmt::format("H-{}{}", host, rail), fmt::format("n{}", host)});
      fabric.cables.push_back({static_cast<std::uint32_t>(fabric.devices.size()) - 1, host / 2 * 2 + rail, 1e9});
    }
  }
  for (std::uint32_t leaf = 0; leaf < 4; ++leaf) fabric.cables.push_back({leaf, 4, 2e9});
  const Topology topology = topologyOfFabric(fabric, "test");
  EXPECT_EQ(topology.hosts(), 4u);
  EXPECT_EQ(topology.groups(1), 2u);
  EXPECT_EQ(topology.groupName(1, 0), "r0a+r0b");
  EXPECT_EQ(topology.level(0).uplink, 2e9);
  EXPECT_EQ(topology.uplink(1, 0), 4e9);
  EXPECT_EQ(topology.level(1).bandwidth, 1e9);
  EXPECT_EQ(topology.level(0).rails, 2u);
  EXPECT_EQ(topology.level(1).rails, 2u);
  EXPECT_EQ(topology.level(2).rails, 1u);
  EXPECT_THAT(messageOf([] { topologyOfFabric({}, "empty"); }), HasSubstr("empty: no host is plugged"));
}

TEST(Hwloc, ReadsXmlAndWords) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const Topology topology = golden("two_sockets.hwloc.xml");
  EXPECT_EQ(topology.host(0), "two_sockets");
  EXPECT_EQ(topology.node(0)->summary(), "2 sockets, 8 numa, 16 caches of 16 MiB, 64 cores, 128 threads");
  EXPECT_EQ(golden("knl_snc4.hwloc.xml").node(0)->summary(),
            "1 socket, 4 numa, 32 caches of 1 MiB, 64 cores, 256 threads");
  EXPECT_EQ(nodeFromSynthetic("pack:2 numa:4 l3:2 core:4 pu:2", "w"), *topology.node(0));
  EXPECT_EQ(formatCpus(nodeFromSynthetic("core:3 pu:1", "w").cores), "0-2");
  for (const char* word : {"", "nonsense", "pack:", "core:99999999 pu:9", "pack:1000 core:1000 pu:1000", "pack:-1 pu:2",
                           "pu:2049", "core:0xffff pu:2", "core:02000 pu:2", "core:1000pu:1000", "1000 1000",
                           "pack:2(x) core:1025", "pack:2 [numa] core:1025"}) {
    EXPECT_THROW(nodeFromSynthetic(word, "w"), Error) << word;
  }
  EXPECT_THAT(messageOf([] { nodeFromXml("<topology version=\"2.0\"><object", "x.xml"); }),
              HasSubstr("x.xml: hwloc cannot read"));
}

TEST(Hwloc, DescribesThisHost) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const NodeDescription node = nodeHere();
  EXPECT_GE(node.cores.size(), 1u);
  EXPECT_TRUE(node.coreOf(node.cores.back().front()));
  EXPECT_EQ(node, nodeHere());
}

TEST(Files, TellTheirKind) {
  for (const auto& [name, source] : {std::pair("tree.topology.conf", "slurm"),
                                     {"topology.yaml", "slurm"},
                                     {"fat_tree.ibnetdiscover", "ibnet"},
                                     {"fat_tree.ibsim", "ibnet"},
                                     {"xc40.hosts", "cray"},
                                     {"xe6.links", "cray"},
                                     {"knl_snc4.hwloc.xml", "hwloc"}}) {
    EXPECT_EQ(sourceOfFile(readText(goldenPath(name)), name).name, source) << name;
  }
  EXPECT_EQ(sourceOfFile("vn[000000-001023]\n", "t").name, "sunway");
  EXPECT_EQ(sourceOfFile("pack:2 core:4\n", "t").name, "hwloc");
  EXPECT_EQ(sourceOfFile("pair a b 1us 1GB/s\n", "t").name, "probe");
  EXPECT_EQ(sourceOfFile("# c\nhosts = \"a\"\n", "t").name, "file");
  EXPECT_THAT(messageOf([] { sourceOfFile("hello world", "t"); }), HasSubstr("not known what kind of file"));
  EXPECT_THAT(messageOf([] { topologySource("slurn"); }), HasSubstr("did you mean slurm?"));
}

}  // namespace
}  // namespace tacc::test
