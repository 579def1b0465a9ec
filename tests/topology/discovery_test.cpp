// Clues, the registry, and how findings become one topology.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "golden.hpp"
#include "topology/hwloc_node.hpp"
#include "topology/toml.hpp"

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
  write("/sys/class/net/eth0/address", "52:54:00:12:34:56\n");
  variables_["SLURM_TOPOLOGY_ADDR"] = "s0.s1.n1";
  variables_["SLURM_TOPOLOGY_ADDR_PATTERN"] = "switch.switch.node";
  variables_["SLURM_JOB_PARTITION"] = "gpu";
  HostClues clues = gatherClues(surroundings(), false);
  EXPECT_EQ(clues.cname, "c1-0c2s3n1");
  EXPECT_EQ(clues.xname, "x1000c0s0b0n0");
  EXPECT_THAT(clues.macs, ElementsAre("02:00:00:00:00:01", "02:00:00:00:00:42"));
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
  with.file = goldenPath("fat_tree.ibnetdiscover");
  const Survey survey = discoverTopology(with);
  EXPECT_EQ(survey.discovery.topology, golden("fat_tree.ibnetdiscover"));
  with.file = root_ + "/missing";
  EXPECT_THROW(discoverTopology(with), Error);
}

TEST_F(Machine, BrokenFilesOfTheSiteAreLeftOutButThoseOfTheUserAreErrors) {
  write("/etc/slurm/topology.conf", "SwitchName=a Switches=a\n");
  const Survey survey = discoverTopology(context());
  EXPECT_THAT(stateOf(survey, "slurm"), HasSubstr("left out: "));
  EXPECT_THROW(discoverTopology(context(), "slurm"), Error);
  SourceContext with = context();
  with.file = root_ + "/etc/slurm/topology.conf";
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
