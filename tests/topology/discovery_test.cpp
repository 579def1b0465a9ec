// Clues, the registry, and how findings become one topology.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "golden.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A machine in a folder, with an environment of its own.
class Machine : public testing::Test {
 protected:
  Machine() {
    char name[] = "/tmp/tacc_topology_XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Machine() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  Surroundings surroundings() {
    return {root_, [this](const std::string& name) { return variables_[name]; }};
  }
  SourceContext context(std::vector<std::string> hosts = {}) {
    SourceContext context;
    context.surroundings = surroundings();
    for (const std::string& host : hosts) context.hosts.emplace_back().host = host;
    return context;
  }
  std::string stateOf(const Survey& survey, std::string_view source) {
    for (const SourceState& state : survey.states) {
      if (state.source == source) return state.state;
    }
    return "";
  }

  std::string root_;
  std::map<std::string, std::string> variables_;
};

constexpr const char* slurmConf =
    "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\nSwitchName=top Switches=l[1-2]\n";

TEST_F(Machine, KnowsNothingWithoutFiles) {
  const Survey survey = discoverTopology(context({"a", "b"}));
  EXPECT_EQ(survey.discovery.topology.hosts(), 0u);
  EXPECT_EQ(survey.states.size(), topologySources().size());
}

TEST_F(Machine, GathersCluesAndTellsThemAsText) {
  write("/proc/cray_xt/cname", "c1-0c2s3n1\n");
  write("/etc/cray/xname", "x1000c0s0b0n0\n");
  write("/sys/class/net/hsn1/address", "02:00:00:00:00:42\n");
  write("/sys/class/net/hsn0/address", "02:00:00:00:00:01\n");
  write("/sys/class/net/hsn0/speed", "200000\n");
  write("/sys/class/net/hsn1/speed", "-1\n");  // its link is down
  write("/sys/class/net/eth0/address", "52:54:00:12:34:56\n");
  variables_["SLURM_TOPOLOGY_ADDR"] = "s0.s1.n1";
  variables_["SLURM_TOPOLOGY_ADDR_PATTERN"] = "switch.switch.node";
  variables_["SLURM_JOB_PARTITION"] = "gpu";
  HostClues clues = gatherClues(surroundings(), false);
  EXPECT_EQ(clues.cname, "c1-0c2s3n1");
  EXPECT_EQ(clues.xname, "x1000c0s0b0n0");
  EXPECT_THAT(clues.cards, ElementsAre(SlingshotCard{"02:00:00:00:00:01", 25e9}, SlingshotCard{"02:00:00:00:00:42"}));
  EXPECT_EQ(clues.slurmPartition, "gpu");
  EXPECT_EQ(cluesFromText(cluesToText(clues)), clues);
  if (hasHwloc()) {
    clues.node = nodeFromSynthetic("pack:2 numa:2 l3:1 core:4 pu:2", "test");
    EXPECT_EQ(cluesFromText(cluesToText(clues)), clues);
  }
  for (const char* text :
       {"", "cname c0\n", "host a\nnonsense\n", "host a\ncpus x\n", "host a\ninner cache 2*2 1 MiB\n"}) {
    EXPECT_THROW(cluesFromText(text), Error) << text;
  }
}

TEST_F(Machine, AFileOfTheSiteIsFound) {
  write("/etc/tacc/topology.toml", "hosts = \"n[1-4]\"\n[[level]]\nname = \"rack\"\nrule = \"position / 2\"\n");
  EXPECT_EQ(discoverTopology(context()).discovery.topology.level(1).name, "rack");
  variables_["HOME"] = "/home/me";
  write("/home/me/.config/tacc/topology.toml",
        "hosts = \"n[1-4]\"\n[[level]]\nname = \"mine\"\nrule = \"position / 2\"\n");
  EXPECT_EQ(discoverTopology(context()).discovery.topology.level(1).name, "mine");
}

TEST_F(Machine, TheUsersFileMayBeOfAnyKind) {
  SourceContext with = context();
  with.files = {goldenPath("fat_tree.ibnetdiscover")};
  const Survey survey = discoverTopology(with);
  EXPECT_EQ(survey.discovery.topology, golden("fat_tree.ibnetdiscover"));
  with.files = {root_ + "/missing"};
  EXPECT_THROW(discoverTopology(with), Error);
}

/// As editors of Windows write it.
TEST_F(Machine, AFileMayBeginWithAByteOrderMark) {
  write("/network.toml", "\xef\xbb\xbfhosts=['n[1-4]']\r\n[[level]]\r\nname='rack'\r\nrule='position / 2'\r\n");
  SourceContext with = context();
  with.files = {root_ + "/network.toml"};
  EXPECT_EQ(discoverTopology(with).discovery.topology.level(1).name, "rack");
}

constexpr const char* flatNetwork = "hosts = \"node[0-3]\"\n[[level]]\nlatency = \"2 us\"\nbandwidth = \"9 GB/s\"\n";

/// A file for the network, one for the inside of hosts, one with figures: each by its own source, in whatever order.
TEST_F(Machine, SeveralFilesComplementEachOther) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  write("/flat.toml", flatNetwork);
  std::vector<std::string> files = {goldenPath("two_sockets.hwloc.xml"), goldenPath("fat_tree.ibnetdiscover"),
                                    root_ + "/flat.toml"};
  std::optional<Discovery> first;
  for (int order = 0; order < 6; ++order) {
    SourceContext with = context();
    with.files = files;
    const Survey survey = discoverTopology(with);
    const Topology& topology = survey.discovery.topology;
    EXPECT_EQ(topology.groups(1), 2u);
    EXPECT_EQ(topology.level(2).alpha, 2e-6);
    EXPECT_EQ(topology.level(2).bandwidth, golden("fat_tree.ibnetdiscover").level(2).bandwidth);
    for (std::uint32_t host = 0; host < 4; ++host) {
      ASSERT_NE(topology.node(host), nullptr);
      EXPECT_EQ(*topology.node(host), *golden("two_sockets.hwloc.xml").node(0));
    }
    ASSERT_EQ(survey.discovery.contradictions.size(), 1u);
    EXPECT_THAT(survey.discovery.contradictions[0], HasSubstr("the bandwidth of one stream of level 2 (root) is"));
    EXPECT_THAT(survey.discovery.contradictions[0], HasSubstr("fat_tree.ibnetdiscover) wins"));
    EXPECT_THAT(survey.discovery.contradictions[0], HasSubstr("file (" + root_ + "/flat.toml)"));
    EXPECT_THAT(stateOf(survey, "hwloc"), HasSubstr("two_sockets.hwloc.xml"));
    if (!first) first = survey.discovery;
    EXPECT_EQ(survey.discovery.facts, first->facts);
    std::ranges::next_permutation(files);
  }
}

TEST_F(Machine, FilesOfOneKindCountInTheirOrder) {
  write("/a.toml", "hosts = \"node[0-3]\"\n[node]\nuplink = \"5 GB/s\"\n");
  write("/b.toml", "hosts = \"node[0-3]\"\n[node]\nuplink = \"9 GB/s\"\nlatency = \"1 us\"\n");
  SourceContext with = context();
  with.files = {root_ + "/b.toml", root_ + "/a.toml"};
  const Discovery b = discoverTopology(with).discovery;
  EXPECT_EQ(b.topology.level(0).uplink, 9e9);
  ASSERT_EQ(b.contradictions.size(), 1u);
  EXPECT_THAT(b.contradictions[0], HasSubstr("/b.toml) wins"));
  with.files = {root_ + "/a.toml", root_ + "/b.toml"};
  const Discovery a = discoverTopology(with).discovery;
  EXPECT_EQ(a.topology.level(0).uplink, 5e9);
  EXPECT_EQ(a.topology.level(0).alpha, 1e-6);
}

TEST_F(Machine, WhatIsWrongInOneOfSeveralFilesNamesIt) {
  write("/bad.toml", "hosts = \"node[0-3]\"\n[[level]]\nkynd = \"leaf\"\n");
  write("/other.toml", "hosts = \"other[0-3]\"\n");
  SourceContext with = context({"node0", "node1"});
  const auto error = [&](const std::string& file) {
    with.files = {goldenPath("fat_tree.ibnetdiscover"), file};
    return messageOf([&] { discoverTopology(with); });
  };
  EXPECT_THAT(error(root_ + "/bad.toml"), HasSubstr(root_ + "/bad.toml:3"));
  EXPECT_THAT(error(root_ + "/missing"), HasSubstr(root_ + "/missing cannot be read"));
  EXPECT_THAT(error(root_ + "/other.toml"),
              HasSubstr(root_ + "/other.toml: the topology does not have the hosts node"));
  EXPECT_EQ(error(goldenPath("fat_tree.ibnetdiscover")), "no error");
}

TEST_F(Machine, AForcedSourceTakesTheFilesOfItsKind) {
  write("/a.toml", "hosts = \"node[0-3]\"\n[node]\nuplink = \"5 GB/s\"\n");
  SourceContext with = context();
  with.files = {root_ + "/a.toml", goldenPath("fat_tree.ibnetdiscover")};
  EXPECT_EQ(discoverTopology(with, "ibnet").discovery.topology, golden("fat_tree.ibnetdiscover"));
  EXPECT_EQ(discoverTopology(with, "file").discovery.topology.levels(), 2);
  EXPECT_THAT(messageOf([&] { discoverTopology(with, "slurm"); }), HasSubstr("none of the files"));
  EXPECT_THAT(messageOf([&] { discoverTopology(with, "slurm"); }), HasSubstr(root_ + "/a.toml"));
}

/// An lstopo file of one host does not have to know the others; one that names no host is of all of them.
TEST_F(Machine, InsidesAreOfTheHostTheyNameOrOfAllOthers) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  std::string xml = readText(goldenPath("cxl.hwloc.xml"));
  xml.replace(xml.find("value=\"cxl1\""), 12, "value=\"node2\"");
  write("/named.xml", xml);
  write("/kind.txt", "pack:1 core:6 pu:1\n");
  SourceContext with = context({"node0", "node2", "node3"});
  with.files = {root_ + "/kind.txt", root_ + "/named.xml", goldenPath("fat_tree.ibnetdiscover")};
  const Discovery found = discoverTopology(with).discovery;
  ASSERT_EQ(found.topology.hosts(), 3u);
  EXPECT_EQ(found.topology.node(0)->cores.size(), 6u);
  EXPECT_EQ(found.topology.node(1)->cores.size(), 8u);
  EXPECT_EQ(found.topology.node(2)->cores.size(), 6u);
  EXPECT_THAT(found.contradictions, IsEmpty());
  with.files = {root_ + "/named.xml", goldenPath("fat_tree.ibnetdiscover")};
  EXPECT_EQ(discoverTopology(with).discovery.topology.node(0), nullptr);
  // A host that the network does not have is said, where all of it is looked at.
  with = context();
  with.files = {goldenPath("cxl.hwloc.xml"), goldenPath("fat_tree.ibnetdiscover")};
  const std::vector<std::string> said = discoverTopology(with).discovery.contradictions;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("cxl.hwloc.xml) has the host cxl1, which ibnet"));
}

TEST_F(Machine, BrokenFilesOfTheSiteAreLeftOutButThoseOfTheUserAreErrors) {
  write("/etc/slurm/topology.conf", "SwitchName=a Switches=a\n");
  const Survey survey = discoverTopology(context());
  EXPECT_THAT(stateOf(survey, "slurm"), HasSubstr("left out: "));
  EXPECT_THROW(discoverTopology(context(), "slurm"), Error);
  SourceContext with = context();
  with.files = {root_ + "/etc/slurm/topology.conf"};
  EXPECT_THROW(discoverTopology(with), Error);
}

TEST_F(Machine, OneSourceCanBeForced) {
  write("/etc/slurm/topology.conf", slurmConf);
  write("/etc/tacc/topology.toml", "hosts = \"n[1-4]\"\n");
  EXPECT_EQ(discoverTopology(context(), "slurm").discovery.topology.level(2).name, "top");
  EXPECT_EQ(discoverTopology(context(), "file").discovery.topology.levels(), 2);
  EXPECT_THAT(messageOf([&] { discoverTopology(context(), "sunway"); }), HasSubstr("knows nothing here"));
  EXPECT_THAT(messageOf([&] { discoverTopology(context(), "slumr"); }), HasSubstr("did you mean slurm?"));
}

TEST_F(Machine, OnlyTheHostsThatTakePartAreKept) {
  write("/etc/slurm/topology.conf", slurmConf);
  const Survey part = discoverTopology(context({"n4.example.org", "n1"}));
  EXPECT_THAT(part.discovery.topology.hostNames(), ElementsAre("n1", "n4"));
  const Survey other = discoverTopology(context({"n1", "stranger"}));
  EXPECT_EQ(other.discovery.topology.hosts(), 0u);
  EXPECT_THAT(stateOf(other, "slurm"), HasSubstr("does not have the host stranger"));
}

TEST_F(Machine, NamesOfHostsAreClues) {
  const Survey survey = discoverTopology(context({"vn000001", "vn000300"}));
  EXPECT_EQ(survey.discovery.topology.groups(1), 2u);
  EXPECT_THAT(stateOf(survey, "sunway"), HasSubstr("2 hosts"));
}

Finding finding(const std::string& source, const std::string& toml) {
  return {source, source + ".txt", topologyFromToml(toml, source)};
}

TEST(Merge, FillsFiguresAndSaysWhoseTheyAre) {
  const std::vector<Finding> findings = {
      finding("file", "hosts = \"n[1-4]\"\n[[level]]\nrule = \"position / 2\"\nlatency = \"2 us\"\n"),
      finding("ibnet",
              "hosts = \"n[1-4]\"\n[node]\nuplink = \"10 GB/s\"\n[[level]]\nrule = \"position / 2\"\n"
              "latency = \"2.1 us\"\nuplink = \"20 GB/s\"\n[[level]]\nbandwidth = \"5 GB/s\"\n"),
      finding("hwloc", "hosts = \"n[1-2]\"\n[[machine]]\ncpus = \"0-3\"\n")};
  const Discovery result = merge(findings);
  EXPECT_EQ(result.topology.level(1).alpha, 2e-6);
  EXPECT_EQ(result.topology.level(1).uplink, 20e9);
  EXPECT_EQ(result.topology.level(0).uplink, 10e9);
  EXPECT_EQ(result.topology.level(2).bandwidth, 5e9);
  EXPECT_NE(result.topology.node(1), nullptr);
  EXPECT_EQ(result.topology.node(2), nullptr);
  EXPECT_THAT(result.contradictions, IsEmpty());
  EXPECT_THAT(result.facts, Contains(Fact{"latency of level 1 (leaf)", "2 us", "file (file.txt)"}));
  EXPECT_THAT(result.facts, Contains(Fact{"uplink of level 1 (leaf)", "20 GB/s", "ibnet (ibnet.txt)"}));
  EXPECT_THAT(result.facts, Contains(Fact{"inside of hosts", "2 hosts described", "hwloc (hwloc.txt)"}));
}

TEST(Merge, RailsComeFromWhoeverKnowsOfSome) {
  const std::string groups = "hosts = \"n[1-4]\"\n[[level]]\nrule = \"position / 2\"\n";
  const std::vector<Finding> findings = {finding("slurm", groups), finding("ibnet", groups + "rails = 2\n"),
                                         finding("probe", groups + "rails = 4\n")};
  const Discovery result = merge(findings);
  EXPECT_EQ(result.topology.level(1).rails, 2u);
  EXPECT_THAT(result.facts, Contains(Fact{"rails of level 1 (leaf)", "2", "ibnet (ibnet.txt)"}));
  EXPECT_THAT(result.contradictions,
              ElementsAre("the rails of level 1 (leaf) are 2 for ibnet (ibnet.txt), but 4 for probe (probe.txt); ibnet "
                          "(ibnet.txt) wins"));
}

/// Groups from one file, what differs between them and their hosts from another.
TEST(Merge, FillsUplinksThatDiffer) {
  const std::string groups = "[[level]]\ngroups = { a = \"n[1-2]\", b = \"n[3-4]\", c = \"n[5-6]\" }\n";
  const std::string figures =
      "[node]\nuplink = \"5 GB/s\"\nuplinks = { n4 = \"1 GB/s\" }\n"
      "[[level]]\ngroups = { x = \"n[5-6]\", y = \"n[1-2]\", z = \"n[3-4]\" }\nuplink = \"8 GB/s\"\n"
      "uplinks = { x = \"3 GB/s\" }\n";
  const std::vector<Finding> findings = {finding("slurm", groups), finding("probe", figures)};
  const Topology merged = merge(findings).topology;
  EXPECT_EQ(merged.groupName(1, 2), "c");
  EXPECT_EQ(merged.uplink(1, 0), 8e9);
  EXPECT_EQ(merged.uplink(1, 2), 3e9);
  EXPECT_EQ(merged.uplink(0, merged.find("n4").value()), 1e9);
  EXPECT_EQ(merged.uplink(0, merged.find("n5").value()), 5e9);
  EXPECT_THAT(merge(findings).facts, Contains(Fact{"uplinks of level 1 (leaf) that differ", "1", "probe (probe.txt)"}));
  // What the first says of one group stands, and so does what it says of all.
  const std::vector<Finding> partly = {finding("slurm", groups + "uplinks = { c = \"7 GB/s\" }\n"), findings[1]};
  EXPECT_EQ(merge(partly).topology.uplink(1, 2), 7e9);
  EXPECT_EQ(merge(partly).topology.uplink(1, 1), 8e9);
  const std::vector<Finding> wholly = {finding("slurm", groups + "uplink = \"7 GB/s\"\n"), findings[1]};
  EXPECT_EQ(merge(wholly).topology.uplink(1, 2), 7e9);
}

TEST(Merge, ContradictionsNameBothAndTheWinner) {
  const std::vector<Finding> findings = {
      finding(
          "file",
          "hosts = \"n[1-4]\"\n[node]\nuplink = \"10 GB/s\"\n[[level]]\ngroups = { a = \"n[1-2]\", b = \"n[3-4]\" }\n"),
      finding("slurm",
              "hosts = \"n[1-5]\"\n[node]\nuplink = \"3 GB/s\"\n[[level]]\ngroups = { a = \"n1,n3\", b = \"n2,n[4-5]\" "
              "}\n")};
  const Discovery result = merge(findings);
  EXPECT_EQ(result.topology.uplink(0, 0), 10e9);
  ASSERT_EQ(result.contradictions.size(), 3u);
  EXPECT_THAT(result.contradictions[0],
              HasSubstr("slurm (slurm.txt) has the host n5, which file (file.txt) does not have"));
  EXPECT_THAT(
      result.contradictions[1],
      HasSubstr("the uplink of level 0 (node) is 10 GB/s for file (file.txt), but 3 GB/s for slurm (slurm.txt)"));
  EXPECT_THAT(result.contradictions[2], HasSubstr("cross: the first parts n1 and n3"));
  for (const std::string& sentence : result.contradictions) EXPECT_THAT(sentence, HasSubstr("; file (file.txt) wins"));
}

TEST(Merge, TheFirstThatGroupsHostsGivesTheLevels) {
  const std::vector<Finding> findings = {
      finding("file", "hosts = \"n[1-4]\"\n[[level]]\nname = \"net\"\nlatency = \"2 us\"\n"),
      finding("slurm", "hosts = \"n[1-4]\"\n[[level]]\nname = \"rack\"\nrule = \"position / 2\"\n")};
  const Discovery result = merge(findings);
  EXPECT_EQ(result.topology.level(1).name, "rack");
  EXPECT_EQ(result.topology.level(2).alpha, 2e-6);
}

TEST(Merge, IsAPureFunctionOfTheFindings) {
  const Finding one{"ibnet", "x", golden("three_levels.ibnetdiscover")};
  EXPECT_EQ(merge(std::span(&one, 1)).topology, one.topology);
  EXPECT_EQ(merge({}).topology, Topology());
}

}  // namespace
}  // namespace tacc::test
