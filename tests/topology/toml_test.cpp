#include "topology/toml/toml.hpp"

#include <gmock/gmock.h>

#include "golden.hpp"
#include "topology/model/draft.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

Topology read(const std::string& text) { return topologyFromToml(text, "t.toml"); }
std::string errorOf(const std::string& text) {
  return messageOf([&] { read(text); });
}

TEST(Toml, TenLinesDescribeACluster) {
  const Topology topology = read(R"(
hosts = "node[001-064]"
[node]
uplink = "12.5 GB/s"
[[level]]
name = "rack"
rule = "position / 16"
latency = "1.5 us"
bandwidth = "12.5 GB/s"
uplink = "4:1"
)");
  EXPECT_EQ(topology.hosts(), 64u);
  EXPECT_EQ(topology.groups(1), 4u);
  EXPECT_EQ(topology.uplink(1, 0), 50e9);
  EXPECT_EQ(topology.level(1).alpha, 1.5e-6);
  EXPECT_DOUBLE_EQ(topology.level(1).beta().value(), 8e-11);
  EXPECT_EQ(topology.level(1).kind, LevelKind::leaf);
}

TEST(Toml, GroupsNameHostsOrGroupsOfTheLevelBelow) {
  const Topology topology = read(R"(
[[level]]
[level.groups]
leaf0 = "a[1-2]"
leaf1 = ["a3", "b[1-2]"]
leaf2 = "c"
[[level]]
name = "pod"
groups = { left = "leaf[0-1]", right = "leaf2" }
uplinks = { left = "5 GB/s" }
[[level]]
wiring = "all-to-all"
links = 2
)");
  EXPECT_EQ(topology.hosts(), 6u);
  EXPECT_EQ(topology.levels(), 4);
  EXPECT_EQ(topology.meet(*topology.find("a1"), *topology.find("b2")), 2);
  EXPECT_EQ(topology.meet(*topology.find("a1"), *topology.find("c")), 3);
  EXPECT_EQ(topology.uplink(2, topology.groupOf(2, *topology.find("a1"))), 5e9);
  EXPECT_EQ(topology.level(3).wiring, Wiring::allToAll);
}

TEST(Toml, HostsMayHaveLinksOfTheirOwn) {
  const std::string text = R"(
hosts = "n[1-6]"
[node]
uplink = "10 GB/s"
uplinks = { "n[2-3]" = "2 GB/s", n6 = "1 GB/s" }
)";
  const Topology topology = read(text);
  for (const auto& [host, link] : std::map<std::string, double>{{"n1", 10e9}, {"n2", 2e9}, {"n3", 2e9}, {"n6", 1e9}})
    EXPECT_EQ(topology.uplink(0, *topology.find(host)), link) << host;
  EXPECT_EQ(read(topologyToToml(topology)), topology);
  EXPECT_NE(read(topologyToToml(topology)).digest(),
            read("hosts = \"n[1-6]\"\n[node]\nuplink = \"10 GB/s\"\n").digest());
  const std::vector<std::string> some = {"n3", "n4"};
  EXPECT_EQ(topology.only(some).uplink(0, 0), 2e9);
  EXPECT_EQ(topology.only(some).uplink(0, 1), 10e9);
  EXPECT_THROW(read("hosts = \"n[1-6]\"\n[node]\nuplinks = { n7 = \"1 GB/s\" }\n"), Error);
}

TEST(Toml, LevelsHaveRails) {
  const std::string text = R"(
hosts = "n[1-8]"
[node]
rails = 2
uplink = "25 GB/s"
[[level]]
rule = "position / 4"
rails = 2
bandwidth = "12.5 GB/s"
uplink = "2:1"
[[level]]
name = "planes"
rails = 3
)";
  const Topology topology = read(text);
  EXPECT_EQ(topology.level(0).rails, 2u);
  EXPECT_EQ(topology.level(1).rails, 2u);
  EXPECT_EQ(topology.level(2).rails, 3u);
  EXPECT_EQ(topology.uplink(1, 0), 50e9) << "of all cards of the hosts";
  EXPECT_EQ(read(topologyToToml(topology)), topology);
  std::string other = text;
  other.replace(other.find("rails = 3"), 9, "rails = 4");
  EXPECT_NE(read(other).digest(), topology.digest());
  other.replace(other.find("rails = 4"), 9, "rails = 0");
  EXPECT_THAT(errorOf(other), HasSubstr("rails"));
  other.replace(other.find("rails = 0"), 9, "rails = \"2\"");
  EXPECT_THAT(errorOf(other), HasSubstr("rails"));
  const std::vector<std::string> some = {"n1", "n8"};
  EXPECT_EQ(topology.only(some).level(1).rails, 2u);
}

TEST(Toml, MachinesSayWhatIsInsideHosts) {
  const Topology topology = read(R"(
hosts = "n[1-4]"
[[machine]]
hosts = "n[1-3]"
cpus = "0-7+8-15"
[[machine.level]]
kind = "cache"
sizes = "4*2"
bytes = "16 MiB"
[[machine.level]]
kind = "socket"
sizes = "2*4"
[[machine]]
hosts = "n4"
cpus = "0,2,4"
)");
  const NodeDescription* node = topology.node(*topology.find("n2"));
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->summary(), "2 sockets, 4 caches of 16 MiB, 8 cores, 16 threads");
  EXPECT_EQ(node->coreOf(9), 1u);
  EXPECT_EQ(node->coreOf(16), std::nullopt);
  EXPECT_EQ(node->count(LevelKind::socket), 2u);
  EXPECT_EQ(node->nesting.meet(0, 3), 2);
  EXPECT_EQ(topology.node(*topology.find("n4"))->cores.size(), 3u);
}

TEST(Toml, WhatIsSavedLoadsAsAnEqualValue) {
  for (const char* name : {"tree.topology.conf", "block.topology.conf", "fat_tree.ibnetdiscover",
                           "three_levels.ibnetdiscover", "xc40.hosts", "ex.hosts"}) {
    const Topology topology = golden(name);
    const Topology again = topologyFromToml(topologyToToml(topology), name);
    EXPECT_EQ(again, topology) << name;
    EXPECT_EQ(again.digest(), topology.digest()) << name;
  }
  TopologyDraft odd;
  odd.name = "quote \" backslash \\ bell \a";
  odd.hosts = {"x", "y.example.org", "z_1"};
  odd.node.alpha = 1.0 / 3;
  odd.root.bandwidth = 1e10 / 7;
  LevelDraft level;
  level.level.name = "a \"level\"";
  level.groupOf = {"with space", "=", "="};
  level.uplinks["="] = 7;
  odd.levels.push_back(level);
  const Topology topology = build(odd);
  EXPECT_EQ(read(topologyToToml(topology)), topology) << topologyToToml(topology);
}

TEST(Toml, ATorusKeepsItsOrder) {
  const Topology topology =
      read("hosts = [\"b\", \"a\", \"d\", \"c\"]\n[[level]]\nwiring = \"torus\"\ndimensions = [2, 2]\n");
  EXPECT_EQ(topology.host(0), "b");
  EXPECT_EQ(topology.host(3), "c");
  EXPECT_EQ(read(topologyToToml(topology)), topology);
}

TEST(Toml, UnknownKeysNameTheNearest) {
  EXPECT_THAT(errorOf("hosts = \"a\"\n[node]\nlatencie = \"1 us\"\n"),
              HasSubstr("t.toml:3:12: unknown key \"latencie\"; did you mean latency? (allowed in [node]:"));
  EXPECT_THAT(errorOf("host = \"a\"\n"), HasSubstr("did you mean hosts?"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[level]]\nwirring = \"torus\"\n"), HasSubstr("did you mean wiring?"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[level]]\nwiring = \"tores\"\n"), HasSubstr("did you mean torus?"));
}

TEST(Toml, ErrorsSayWhereAndWhatWouldBeRight) {
  EXPECT_THAT(errorOf("hosts = \"a\nb\""), HasSubstr("t.toml:1:"));
  EXPECT_THAT(errorOf(""), HasSubstr("there are no hosts"));
  EXPECT_THAT(errorOf("hosts = 7"), HasSubstr("must be text in quotation marks"));
  EXPECT_THAT(errorOf("hosts = \"a,b,a\""), HasSubstr("the host a stands twice"));
  EXPECT_THAT(errorOf("hosts = \"n[0-999999999999]\""), HasSubstr("more than 1048576 hosts"));
  EXPECT_THAT(errorOf("hosts = [\"n[1-1048576]\", \"m[1-1048576]\"]"), HasSubstr("more than 0 hosts"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[node]\nuplink = \"0 GB/s\"\n"), HasSubstr("must be a speed above 0"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[node]\nuplink = \"-3 GB/s\"\n"), HasSubstr("must be a speed above 0"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[node]\nlatency = \"3\"\n"), HasSubstr("must be a time above 0"));
  EXPECT_THAT(errorOf("hosts = \"a1\"\n[[level]]\nrule = \"number by 2\"\n"),
              HasSubstr("must be like \"number / 256\""));
  EXPECT_THAT(errorOf("hosts = \"a1\"\n[[level]]\nrule = \"number / 0\"\n"), HasSubstr("a number above 0"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[level]]\nrule = \"number / 2\"\n"), HasSubstr("the host a has no number"));
  EXPECT_THAT(errorOf("hosts = \"a[1-4]\"\n[[level]]\ngroups = { x = \"a[1-2]\" }\n"),
              HasSubstr("the hosts a[3-4] are in no group"));
  EXPECT_THAT(errorOf("hosts = \"a,b\"\n[[level]]\ngroups = { x = \"a,b\", y = \"a\" }\n"),
              HasSubstr("a is in \"x\" already"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[level]]\ngroups = { x = \"a,c\" }\n"), HasSubstr("there is no host \"c\""));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[level]]\n[[level]]\n"), HasSubstr("has neither rule nor groups"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[level]]\nuplink = \"1 GB/s\"\n"), HasSubstr("it has no uplink"));
  EXPECT_THAT(errorOf("hosts = \"a1\"\n[[level]]\nrule = \"number / 2\"\nuplink = \"4:1\"\n"),
              HasSubstr("a ratio needs the uplink"));
  EXPECT_THAT(errorOf("hosts = \"a[1-4]\"\n[[level]]\nrule = \"number / 2\"\n[[level]]\nrule = \"number % 2\"\n"),
              HasSubstr("lies in two of the level \"group\""));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[machine]]\ncpus = \"0-3,2\"\n"), HasSubstr("cpu 2 stands twice"));
  EXPECT_THAT(errorOf("hosts = \"a\"\n[[machine]]\ncpus = \"0-3+4-5\"\n"), HasSubstr("not equally long"));
  EXPECT_THAT(
      errorOf("hosts = \"a\"\n[[machine]]\ncpus = \"0-3\"\n[[machine.level]]\nkind = \"numa\"\nsizes = \"2*3\"\n"),
      HasSubstr("does not cut 4 cores"));
  EXPECT_THAT(
      errorOf("hosts = \"a\"\n[[machine]]\nhosts = \"a\"\ncpus = \"0\"\n[[machine]]\nhosts = \"a\"\ncpus = \"1\"\n"),
      HasSubstr("the host a is described twice"));
}

}  // namespace
}  // namespace tacc::test
