// What stands beside Slurm's files: those that are included, slurm.conf, the job and its hosts.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "slurm_shapes.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/yaml_text.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

/// A folder with the files of a site.
class SlurmFolder : public testing::Test {
 protected:
  SlurmFolder() {
    char name[] = "/tmp/tacc_slurm_XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~SlurmFolder() override { std::filesystem::remove_all(root_); }
  std::string write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return root_ + path;
  }
  SlurmSite site() {
    return SlurmSite::in({root_, [this](const std::string& name) { return variables_[name]; }});
  }
  std::string conf(const std::string& path) {
    return messageOf([&] { shape_ = shape(topologyFromSlurmConf(readText(root_ + path), root_ + path, site())); });
  }
  std::string yaml(const std::string& path) {
    return messageOf([&] { shape_ = shape(topologyFromSlurmYaml(readText(root_ + path), root_ + path, site())); });
  }
  std::string root_, shape_;
  std::map<std::string, std::string> variables_;
};

TEST_F(SlurmFolder, FilesThatAreIncluded) {
  write("/etc/slurm/topology.conf", "# all\nInclude racks/a.conf\n  INCLUDE  /etc/slurm/b.conf   # beside\n");
  write("/etc/slurm/racks/a.conf", "SwitchName=l1 Nodes=n[1-2]\ninclude more.conf\n");
  write("/etc/slurm/racks/more.conf", "SwitchName=l2 Nodes=n[3-4]\n");
  write("/etc/slurm/b.conf", "SwitchName=top Switches=l[1-2]\n");
  EXPECT_EQ(conf("/etc/slurm/topology.conf"), "no error");
  EXPECT_EQ(shape_, twoShape);
  EXPECT_EQ(sourceOfFile(readText(root_ + "/etc/slurm/topology.conf"), "t").name, "slurm");

  write("/etc/slurm/racks/more.conf", "SwitchName=l2 Nodes=n[3-4\n");
  EXPECT_THAT(conf("/etc/slurm/topology.conf"), HasSubstr("/etc/slurm/racks/more.conf:1: "));
  write("/etc/slurm/racks/more.conf", "SwitchName=l1 Nodes=n[3-4]\n");
  EXPECT_THAT(conf("/etc/slurm/topology.conf"),
              HasSubstr("more.conf:1: the switch l1 stands in " + root_ + "/etc/slurm/racks/a.conf:1"));
  write("/etc/slurm/racks/more.conf", "Include\n");
  EXPECT_THAT(conf("/etc/slurm/topology.conf"), HasSubstr("more.conf:1: Include has one file behind it"));
}

TEST_F(SlurmFolder, IncludesThatCannotBe) {
  write("/a.conf", twoLeaves + "Include b.conf\n");
  EXPECT_THAT(conf("/a.conf"), HasSubstr("/a.conf:3: the included file " + root_ + "/b.conf does not exist"));
  write("/b.conf", "Include c.conf\n");
  write("/c.conf", "\nInclude b.conf\n");
  EXPECT_THAT(conf("/a.conf"), HasSubstr("/c.conf:2: files that include each other in a loop: " + root_ +
                                         "/b.conf includes " + root_ + "/c.conf includes " + root_ + "/b.conf"));
  write("/c.conf", "Include ./d/../a.conf\n");
  std::filesystem::create_directories(root_ + "/d");
  EXPECT_THAT(conf("/a.conf"), HasSubstr("in a loop: " + root_ + "/a.conf includes"));
  write("/c.conf", "Include d\n");
  EXPECT_THAT(conf("/a.conf"), HasSubstr("does not exist or is no file"));
  // Each includes the next twice: more than any file could hold, though no file includes itself.
  write("/b.conf", "Include x0.conf\n");
  for (int i = 0; i < 40; ++i)
    write(fmt::format("/x{}.conf", i), fmt::format("Include x{0}.conf\nInclude x{0}.conf\n", i + 1));
  write("/x40.conf", "# nothing\n");
  EXPECT_THAT(conf("/a.conf"), HasSubstr("more than 1000 files"));
}

TEST_F(SlurmFolder, TheNameOfTheClusterInIncludes) {
  write("/topology.conf", "Include %c/net-%c.conf\n");
  write("/titan/net-titan.conf", twoLeaves);
  EXPECT_THAT(conf("/topology.conf"), HasSubstr("/topology.conf:1: %c in %c/net-%c.conf is the name of the cluster"));
  variables_["SLURM_CLUSTER_NAME"] = "titan";
  EXPECT_EQ(conf("/topology.conf"), "no error");
  variables_.clear();
  write("/slurm.conf", "SlurmctldHost=a\nClusterName=Titan\nNodeName=n[1-4] CPUs=4\n");
  EXPECT_EQ(conf("/topology.conf"), "no error");
  EXPECT_EQ(shape_, twoShape);
}

TEST_F(SlurmFolder, TheTopologyOfTheJobsPartition) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  write("/topology.yaml", named("a", "cluster_default: true\n  " + tree1) + named("b", block1) + named("c", ring1));
  write("/slurm.conf", "ClusterName=x\nPartitionName=debug Nodes=ALL Default=YES\nInclude parts.conf\n");
  write("/parts.conf",
        "PartitionName=gpu Nodes=n[1-3] \\\n  MaxTime=1:00 topology=b State=UP\nPartitionName=DEFAULT Topology=c\n"
        "PartitionName=late Nodes=n1\nPartitionName=odd Topology=nope\n");
  const auto shapeIn = [&](const std::string& partition) {
    variables_["SLURM_JOB_PARTITION"] = partition;
    const std::string error = yaml("/topology.yaml");
    return error == "no error" ? shape_ : error;
  };
  EXPECT_EQ(shapeIn(""), twoShape);
  EXPECT_EQ(shapeIn("debug"), twoShape);
  EXPECT_EQ(shapeIn("gpu"), blockShape);
  EXPECT_EQ(shapeIn("late"), "4: n[1-4]");
  EXPECT_EQ(shapeIn("unknown"), twoShape);
  EXPECT_THAT(shapeIn("odd"),
              HasSubstr("/parts.conf:5: Topology=nope of the job's partition is not in " + root_ + "/topology.yaml"));

  std::filesystem::remove(root_ + "/parts.conf");
  EXPECT_EQ(shapeIn("debug"), twoShape);
  EXPECT_THAT(shapeIn("gpu"), HasSubstr("partition gpu is not known: it may stand in " + root_ + "/parts.conf"));
  write("/parts.conf", "Include slurm.conf\n");
  EXPECT_THAT(shapeIn("gpu"), HasSubstr("in a loop"));
  std::filesystem::remove(root_ + "/slurm.conf");
  EXPECT_EQ(shapeIn("gpu"), twoShape);
  write("/elsewhere/my.conf", "PartitionName=gpu Topology=c\n");
  variables_["SLURM_CONF"] = "/elsewhere/my.conf";
  EXPECT_EQ(shapeIn("gpu"), "4: n[1-4]");
}

TEST_F(SlurmFolder, LookingAroundInAJob) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  SourceContext context;
  context.surroundings = {root_, [this](const std::string& name) { return variables_[name]; }};
  for (const char* host : {"n4.example.org", "n1"}) context.hosts.emplace_back().host = host;
  const auto look = [&] { return discoverTopology(context).discovery.topology; };
  const auto beIn = [&](const char* first, const char* second) {
    context.hosts[0].slurmPartition = first;
    context.hosts[1].slurmPartition = second;
  };
  write("/etc/slurm/topology.yaml",
        named("f", "cluster_default: true\n  flat: true") + named("a", tree1) + named("r", ring1));
  EXPECT_EQ(look().hosts(), 0u) << "flat: nobody says how hosts are grouped, so they are measured";
  write("/etc/slurm/slurm.conf", "PartitionName=gpu Topology=a\nPartitionName=loop Topology=r\n");
  beIn("gpu", "gpu");
  EXPECT_EQ(shape(look()), "(n1) (n4)");
  beIn("loop", "");
  EXPECT_EQ(shape(look()), "n[1,4]");
  beIn("loop", "gpu");
  EXPECT_EQ(look().hosts(), 0u) << "a job in two partitions has the cluster's topology";
  // Of toruses that differ, the job's own counts.
  write("/etc/slurm/topology.yaml", named("t",
                                          "torus3d: {toruses: [{name: p, dims: {x: 2, y: 2, z: 1}, nodes: 'n[1-4]'}, "
                                          "{name: q, dims: {x: 3, y: 1, z: 1}, nodes: 'm[1-3]'}]}"));
  context.hosts.clear();
  for (const char* host : {"n1", "n2", "n3", "n4"}) context.hosts.emplace_back().host = host;
  EXPECT_EQ(shape(look()), "2x2: n[1-4]");
}

/// In clouds NodeHostname often is another name than NodeName, by which the files go.
TEST_F(SlurmFolder, HostsThatSlurmCallsOtherwise) {
  write("/etc/slurm/topology.conf", twoLeaves);
  SourceContext context;
  context.surroundings = {root_, [](const std::string&) { return std::string(); }};
  for (int i = 1; i < 4; ++i) {
    HostClues& host = context.hosts.emplace_back();
    host.host = fmt::format("ip-10-0-0-{}", i);
    host.slurmAddress = fmt::format("l{}.n{}", (i + 1) / 2, i);
    host.slurmPattern = "switch.node";
  }
  EXPECT_EQ(shape(discoverTopology(context, "slurm").discovery.topology), "(ip-10-0-0-[1-2]) (ip-10-0-0-3)");
  // Of a host that the file lacks Slurm's own word counts; without it nothing is known.
  context.hosts[1].slurmAddress = "l2.n9";
  EXPECT_EQ(shape(discoverTopology(context, "slurm").discovery.topology), "(ip-10-0-0-1) (ip-10-0-0-[2-3])");
  context.hosts[1].slurmAddress.clear();
  EXPECT_THAT(messageOf([&] { discoverTopology(context, "slurm"); }), HasSubstr("does not have the host ip-10-0-0-2"));
}

TEST_F(SlurmFolder, AddressesServeWhereFilesDoNot) {
  write("/etc/slurm/topology.conf", twoLeaves + "SwitchName=top Switches=l[1-3]\n");
  SourceContext context;
  context.surroundings = {root_, [](const std::string&) { return std::string(); }};
  for (int i = 1; i < 5; ++i) context.hosts.emplace_back().host = fmt::format("n{}", i);
  EXPECT_THAT(messageOf([&] { discoverTopology(context, "slurm"); }), HasSubstr("there is no switch l3"));
  for (int i = 0; i < 4; ++i) {
    context.hosts[static_cast<std::size_t>(i)].slurmPattern = "node";
    context.hosts[static_cast<std::size_t>(i)].slurmAddress = fmt::format("n{}", i + 1);
  }
  EXPECT_THAT(messageOf([&] { discoverTopology(context, "slurm"); }), HasSubstr("there is no switch l3"));
  for (int i = 0; i < 4; ++i) {
    context.hosts[static_cast<std::size_t>(i)].slurmPattern = "switch.switch.node";
    context.hosts[static_cast<std::size_t>(i)].slurmAddress = fmt::format("top.l{}.n{}", i / 2 + 1, i + 1);
  }
  const Survey survey = discoverTopology(context, "slurm");
  EXPECT_EQ(shape(survey.discovery.topology), twoShape);
  const auto slurm = std::ranges::find(survey.states, "slurm", &SourceState::source);
  EXPECT_THAT(slurm->state, HasSubstr("from SLURM_TOPOLOGY_ADDR, not " + root_ +
                                      "/etc/slurm/topology.conf:3: there is no switch l3"));
}

/// Where hosts stand in a torus counts, also where others only know groups.
TEST_F(SlurmFolder, ATorusIsMoreThanGroups) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  write("/etc/slurm/topology.yaml", named("t", torus1));
  write("/etc/tacc/topology.toml", "hosts = \"n[1-6]\"\n");
  SourceContext context;
  context.surroundings = {root_, [](const std::string&) { return std::string(); }};
  EXPECT_EQ(shape(discoverTopology(context).discovery.topology), "2x3: n[1-6]");
}

/// Hosts n0, n1, ... with these addresses.
std::string shapeOfAddresses(const std::string& pattern, const std::vector<std::string>& addresses) {
  std::vector<HostClues> hosts;
  for (const std::string& address : addresses) {
    HostClues& host = hosts.emplace_back();
    host.host = "n" + std::to_string(hosts.size() - 1);
    const bool isPlain = address.find_first_of(".:") == std::string::npos && address.starts_with('n');
    host.slurmAddress = isPlain ? address : address + "." + host.host;
    host.slurmPattern = isPlain ? "node" : pattern;
  }
  try {
    const Topology topology = topologyFromSlurmAddresses(hosts);
    return topology.hosts() == 0 ? "nothing" : shape(topology);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(SlurmAddress, TellsWhereHostsAre) {
  const std::string two = "switch.switch.node", three = "switch.switch.switch.node";
  EXPECT_EQ(shapeOfAddresses(two, {"s0.a", "s0.a", "s0.b"}), "(n[0-1]) (n2)");
  EXPECT_EQ(shapeOfAddresses(three, {"s0.m1.a", "s0.m1.b", "s0.m2.c", "s0.m2.d"}), "((n0) (n1)) ((n2) (n3))");
  // Uneven: no switch stands between the root and c.
  EXPECT_EQ(shapeOfAddresses(three, {"s0.m1.a", "s0.m1.b", "s0..c", "s0..d"}), "((n0) (n1)) ((n2)) ((n3))");
  // Several switches above, and two trees.
  EXPECT_EQ(shapeOfAddresses(two, {"s[0-1].a", "s[1-2].b", "s9.c", "s9.d"}), "((n0) (n1)) ((n2) (n3))");
  EXPECT_EQ(shapeOfAddresses(two, {"s0.a", "s0.b", ".c"}), "((n0) (n1)) ((n2))");
  // Hosts of which Slurm knows nothing are alone.
  EXPECT_EQ(shapeOfAddresses(two, {"s0.a", "s0.a", "n2"}), "(n[0-1]) (n2)");
  EXPECT_EQ(shapeOfAddresses(two, {"n0", "n1"}), "nothing");
  EXPECT_EQ(shapeOfAddresses("block.node", {"b1", "b1", "b2", "n3"}), "(n[0-1]) (n2) (n3)");
  EXPECT_EQ(shapeOfAddresses("torus:x:y:z.node", {"p:1:0:3", "p:0:0:3", "p:0:2:3", "p:1:2:3"}), "2x2: n[1,0,2-3]");
  EXPECT_EQ(shapeOfAddresses("torus:x:y:z.node", {"p:0:0:0", "p:1:0:0", "p:0:1:0"}), "n[0-2]");
  EXPECT_EQ(shapeOfAddresses("torus:x:y:z.node", {"p:0:0:0", "p:1:0:0", "q:0:1:0", "q:0:2:0"}),
            "(2: n[0-1]) (2: n[2-3])");
  EXPECT_EQ(shapeOfAddresses("ring:position.node", {"r:2", "r:0", "r:1"}), "3: n[1-2,0]");
  EXPECT_EQ(shapeOfAddresses("", {"s0.a", "s0.b"}), "(n0) (n1)");

  EXPECT_THAT(shapeOfAddresses(two, {"core.rack.1", "core.rack.2"}), HasSubstr("the name of a switch has a dot"));
  EXPECT_THAT(shapeOfAddresses("torus:x:y:z.node", {"p:0:0"}),
              HasSubstr("host n0: SLURM_TOPOLOGY_ADDR has \"p:0:0\" where the pattern has torus:x:y:z"));
  EXPECT_THAT(shapeOfAddresses("torus:x:y:z.node", {"p:0:0:0", "p:0:0:0"}),
              HasSubstr("the hosts n0 and n1 have the same place"));
  EXPECT_THAT(shapeOfAddresses("", {"s0.a", "s1"}), HasSubstr("one job has one topology"));
}

}  // namespace
}  // namespace tacc::test
