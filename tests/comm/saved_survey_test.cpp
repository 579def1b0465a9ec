// What a job measured of the network, and later jobs need not measure: on virtual hosts, with the bytes that they send.
#include "comm/probe/saved_survey.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "api/handles.hpp"
#include "core/text_file.hpp"
#include "rank_harness.hpp"
#include "support/run_program.hpp"
#include "support/virtual_cluster.hpp"
#include "topology/model/saved.hpp"
#include "topology/model/topology.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Topology network(const std::string& figures) { return topologyFromToml("hosts = \"n[0-5]\"\n" + figures, "test"); }

TEST(RingIn, IsWhatTheSlowestThingOnTheWayLetsThrough) {
  const Topology tree = network(
      "[node]\nuplink = \"10 GB/s\"\nuplinks = { n5 = \"4 GB/s\" }\n[[level]]\nrule = \"position / 3\"\n"
      "uplink = \"6 GB/s\"\n[[level]]\n");
  const auto along = ringIn(tree, std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(along);
  EXPECT_DOUBLE_EQ(along->fastest, 10e9);
  EXPECT_DOUBLE_EQ(along->slowest, 4e9);
  // Each message crosses: three share an uplink.
  const auto across = ringIn(tree, std::vector<std::uint32_t>{0, 3, 1, 4, 2, 5});
  ASSERT_TRUE(across);
  EXPECT_DOUBLE_EQ(across->fastest, 2e9);
  EXPECT_DOUBLE_EQ(across->slowest, 2e9);
  const auto stream = ringIn(network("[[level]]\nbandwidth = \"3 GB/s\"\n"), std::vector<std::uint32_t>{0, 1, 2});
  ASSERT_TRUE(stream);
  EXPECT_DOUBLE_EQ(stream->slowest, 3e9);
  EXPECT_FALSE(ringIn(network("[[level]]\nlatency = \"1 us\"\n"), std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_FALSE(ringIn(tree, std::vector<std::uint32_t>{0}));
  EXPECT_FALSE(ringIn(Topology(), {}));
}

TEST(RingIn, AnotherNetworkIsNotADisturbedOne) {
  const RingSpeeds promised{10e6, 20e6};
  EXPECT_FALSE(isOfAnotherNetwork({10e6, 20e6}, promised));
  EXPECT_FALSE(isOfAnotherNetwork({1e6, 300e6}, promised)) << "others use the links and the processors, too";
  EXPECT_TRUE(isOfAnotherNetwork({40e6, 100e6}, promised));
  EXPECT_TRUE(isOfAnotherNetwork({0.5e6, 1e6}, promised));
}

TEST(Groups, AreTheSameWhateverTheyAreCalled) {
  const auto of = [](const std::string& text) { return topologyFromToml(text, "test"); };
  const Topology a = of("[[level]]\ngroups = { x = \"n0,n1\", y = \"n2,n3\" }\n");
  EXPECT_TRUE(haveSameGroups(a, a));
  EXPECT_TRUE(haveSameGroups(a, of("[[level]]\ngroups = { b = \"n2,n3\", c = \"n1,n0\" }\n")));
  EXPECT_FALSE(haveSameGroups(a, of("[[level]]\ngroups = { x = \"n0,n2\", y = \"n1,n3\" }\n")));
  EXPECT_FALSE(haveSameGroups(a, of("[[level]]\ngroups = { x = \"n0\", y = \"n1,n2,n3\" }\n")));
  EXPECT_FALSE(haveSameGroups(a, of("[[level]]\ngroups = { x = \"n0,n1\", y = \"n2\", z = \"n3\" }\n")));
  EXPECT_FALSE(haveSameGroups(a, of("[[level]]\ngroups = { x = \"n0,n1\", y = \"n2,n4\" }\n")));
  EXPECT_FALSE(haveSameGroups(a, of("hosts = \"n[0-3]\"\n[[level]]\n")));
}

/// What a rank has seen of a job.
struct Outcome {
  std::uint64_t digest, groups, sent;
};

/// Bytes that this host has sent over its network since it is there.
std::uint64_t bytesSent() {
  std::ifstream file("/proc/thread-self/net/dev");
  for (std::string line; std::getline(file, line);) {
    if (line.find("eth0:") == std::string::npos) continue;
    std::istringstream numbers(line.substr(line.find(':') + 1));
    std::uint64_t number = 0;
    for (int column = 0; column < 9; ++column) numbers >> number;
    return number;
  }
  throw std::runtime_error("no eth0");
}

class SavedSurvey : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
    directory_ = testing::TempDir() + "saved." + std::to_string(::getpid());
    std::filesystem::create_directories(cache());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string cache() const { return directory_ + "/cache"; }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  Surroundings surroundings() const {
    return {"", [this](const std::string& name) { return name == "XDG_CACHE_HOME" ? cache() : ""; }};
  }

  /// The program among ranks 0 to 3 on hosts 1 to 4. The file that it keeps.
  std::string probe(const VirtualCluster& cluster, const std::string& environment = "") const {
    return kept(
        runProgram(std::getenv("VIRTUAL_CLUSTER_TOOL"),
                   fmt::format("--name {} run --ranks 4 -- {} --probe --save --digest", cluster.name(), TACC_TEST_TOPO),
                   fmt::format("XDG_CACHE_HOME={} TACC_JOB_SECRET=sesame {}", cache(), environment)));
  }
  std::string kept(const Ran& ran) const {
    EXPECT_EQ(ran.status, 0) << ran.output;
    const std::vector<std::string> files = savedFiles(surroundings(), "tcp");
    if (files.size() != 1) throw std::runtime_error(fmt::format("{} files are kept: {}", files.size(), ran.output));
    EXPECT_THAT(ran.output, HasSubstr(files[0]));
    EXPECT_EQ(files[0], pathOfSaved(surroundings(), "tcp", {"tacc1", "tacc2", "tacc3", "tacc4"}));
    return files[0];
  }

  /// A job on these hosts; `sees`: whether a rank finds what is kept.
  std::vector<Outcome> job(const VirtualCluster& cluster, const std::vector<int>& hosts,
                           const std::function<bool(int)>& sees, const std::string& topologyFile = "") const {
    const std::size_t bytes = hosts.size() * sizeof(Outcome);
    void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const outcomes = static_cast<Outcome*>(shared);
    runOnHosts(
        cluster, hosts,
        [&](taccComm_t comm, int rank) {
          const auto topology = comm->communicator->topology();
          ASSERT_NE(topology, nullptr);
          Outcome& mine = outcomes[rank];
          mine = {topology->digest(), topology->groups(std::min(1, topology->root())), bytesSent() - mine.sent};
          std::int64_t value = rank;
          ASSERT_EQ(taccAllReduce(&value, &value, 1, taccInt64, taccSum, comm, nullptr), taccSuccess);
        },
        TACC_CONFIG_INITIALIZER,
        [&](int rank) {
          ::setenv("XDG_CACHE_HOME", sees(rank) ? cache().c_str() : directory_.c_str(), 1);
          if (!topologyFile.empty()) ::setenv("TACC_TOPO_FILE", topologyFile.c_str(), 1);
          outcomes[rank].sent = bytesSent();
        });
    std::vector<Outcome> result(outcomes, outcomes + hosts.size());
    ::munmap(shared, bytes);
    for (const Outcome& outcome : result) EXPECT_EQ(outcome.digest, result[0].digest) << "ranks have different ones";
    return result;
  }

  static bool everybody(int) { return true; }
  static bool nobody(int) { return false; }

  /// Rank 0's, which takes part in all that is measured.
  static std::uint64_t sent(const std::vector<Outcome>& job) { return job[0].sent; }

  std::string directory_;
};

/// No job that is told its network measures it. What it sends is what any of them does.
constexpr std::uint64_t slack = 600'000;

TEST_F(SavedSurvey, ALaterJobSendsNoProbesAndHasTheSameTopology) {
  const VirtualCluster cluster(2, 2, 200, 50);
  const std::string path = probe(cluster);
  const Topology saved = topologyFromToml(readText(path), path);
  const int root = saved.root();
  ASSERT_EQ(saved.groups(root - 1), 2u) << "what shares an uplink is not seen";
  EXPECT_LT(saved.meet(0, 1), root);
  EXPECT_EQ(saved.meet(0, 2), root);
  EXPECT_TRUE(saved.level(root).bandwidth);
  EXPECT_EQ(saved.node(3) != nullptr, hasHwloc());
  EXPECT_THAT(readText(path), Not(testing::ContainsRegex("[0-9.]{6,} ?[kMGu]?(B/s|s)"))) << "figures that nobody reads";
  const auto told = job(cluster, {1, 2, 3, 4}, nobody, path);
  const auto later = job(cluster, {1, 2, 3, 4}, everybody);
  const auto measured = job(cluster, {1, 2, 3, 4}, nobody);
  EXPECT_EQ(later[0].digest, saved.digest());
  EXPECT_EQ(told[0].digest, saved.digest());
  EXPECT_LT(sent(later), sent(told) + slack);
  EXPECT_GT(sent(measured), sent(told) + 4 * slack);
  EXPECT_NE(measured[0].digest, saved.digest()) << "figures that are measured twice are never equal";
}

TEST_F(SavedSurvey, APartOfTheHostsInAnyOrderIsKnownToo) {
  const VirtualCluster cluster(2, 3, 200, 300);
  const std::string path = folderOfSaved(surroundings()) + "/topology-tcp-whole.toml";
  const Topology whole = topologyFromToml(
      "hosts = \"tacc[1-6]\"\n[node]\nuplink = \"25 MB/s\"\n[[level]]\nrule = \"position / 3\"\nlatency = \"20 us\"\n"
      "bandwidth = \"25 MB/s\"\nuplink = \"37 MB/s\"\n[[level]]\nlatency = \"21 us\"\nbandwidth = \"25 MB/s\"\n",
      "test");
  saveTopology(path, whole, "by a test");
  const std::vector<std::string> names = {"tacc6", "tacc1", "tacc5", "tacc2"};
  const auto part = job(cluster, {6, 1, 5, 2, 5, 2}, everybody);
  EXPECT_EQ(part[0].digest, whole.only(names).digest());
  EXPECT_EQ(part[0].groups, 2u);
}

/// Rank 0 looks for all: that some hosts see a file, and others do not, parts nobody.
TEST_F(SavedSurvey, HostsThatSeeDifferentFilesAgree) {
  const VirtualCluster cluster(2, 2, 200, 100);
  const std::string path = probe(cluster);
  const Topology saved = topologyFromToml(readText(path), path);
  const auto first = job(cluster, {1, 2, 3, 4}, [](int rank) { return rank == 0; });
  EXPECT_EQ(first[0].digest, saved.digest());
  const auto others = job(cluster, {1, 2, 3, 4}, [](int rank) { return rank != 0; });
  EXPECT_NE(others[0].digest, saved.digest());
  EXPECT_GT(sent(others), sent(first) + 4 * slack);
}

TEST_F(SavedSurvey, ForeignDamagedAndOutdatedFilesAreMeasuredAgain) {
  const VirtualCluster cluster(2, 2, 200, 100);
  const auto keep = [&](const std::string& name, const std::string& text) {
    std::filesystem::remove_all(cache());
    std::filesystem::create_directories(cache() + "/tacc");
    std::ofstream(cache() + "/tacc/topology-" + name + ".toml") << text;
  };
  const std::string good =
      "hosts = \"tacc[1-4]\"\n[node]\nuplink = \"25 MB/s\"\n[[level]]\nlatency = \"20 us\"\nbandwidth = \"25 MB/s\"\n";
  keep("tcp-good", good);
  const auto known = job(cluster, {1, 2, 3, 4}, everybody);
  EXPECT_EQ(known[0].digest, topologyFromToml(good, "test").digest());
  const std::string slow = "hosts = \"tacc[1-4]\"\n[node]\nuplink = \"1 MB/s\"\n[[level]]\nbandwidth = \"1 MB/s\"\n";
  const std::string foreign = "hosts = \"tacc[1-3],other\"\n" + good.substr(good.find("[node]"));
  for (const auto& [name, text] : {std::pair<std::string, std::string>("tcp-slow", slow),
                                   {"tcp-foreign", foreign},
                                   {"ucx-good", good},
                                   {"tcp-damaged", good.substr(0, good.size() - 6)}}) {
    keep(name, text);
    const auto again = job(cluster, {1, 2, 3, 4}, everybody);
    EXPECT_GT(sent(again), sent(known) + 4 * slack) << name;
    EXPECT_NE(again[0].digest, topologyFromToml(good, "test").digest()) << name;
  }
}

/// Two supernodes, as every probe of such a cluster finds them.
void expectTwoPairs(const std::string& path) {
  const Topology saved = topologyFromToml(readText(path), path);
  EXPECT_EQ(saved.groups(saved.root() - 1), 2u);
  EXPECT_LT(saved.meet(0, 1), saved.root());
  EXPECT_EQ(saved.meet(1, 2), saved.root());
}

TEST_F(SavedSurvey, MpiexecOfMpichStartsTheProbe) {
  if (runProgram("sh", "-c 'command -v mpiexec.hydra'", "").status != 0) GTEST_SKIP() << "there is no mpiexec.hydra";
  const VirtualCluster cluster(2, 2, 200, 50);
  const std::string tool = std::getenv("VIRTUAL_CLUSTER_TOOL");
  expectTwoPairs(kept(runProgram(
      tool,
      fmt::format(
          "--name {} exec 1 mpiexec.hydra -launcher ssh -launcher-exec {}_rsh -hosts tacc1,tacc2,tacc3,tacc4 -n 4 "
          "-ppn 1 -genv TACC_RENDEZVOUS tacc1:29400 {} --probe --save",
          cluster.name(), tool, TACC_TEST_TOPO),
      fmt::format("XDG_CACHE_HOME={} TACC_JOB_SECRET=sesame", cache()))));
}

/// What Slurm says to the tasks of a step of one task a host.
TEST_F(SavedSurvey, VariablesOfSrunStartTheProbe) {
  const VirtualCluster cluster(2, 2, 200, 50);
  const std::string tool = std::getenv("VIRTUAL_CLUSTER_TOOL");
  std::string tasks;
  for (int task = 0; task < 4; ++task)
    tasks += fmt::format("{} --name {} exec {} env SLURM_PROCID={} {} --probe --save & ", tool, cluster.name(),
                         task + 1, task, TACC_TEST_TOPO);
  expectTwoPairs(kept(runProgram(
      "sh", fmt::format("-c '{} wait'", tasks),
      fmt::format("XDG_CACHE_HOME={} TACC_JOB_SECRET=sesame SLURM_STEP_ID=0 SLURM_JOB_ID=4711 SLURM_NTASKS=4 "
                  "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=4 SLURM_STEP_NODELIST=\"tacc[1-4]\"",
                  cache()))));
}

/// As on a site whose files tell the groups, but no figures.
TEST_F(SavedSurvey, FiguresAreKeptForGroupsThatASourceTells) {
  const VirtualCluster cluster(2, 2, 200, 100);
  const std::string groups = file("groups.toml", "[[level]]\ngroups = { a = \"tacc[1-2]\", b = \"tacc[3-4]\" }\n");
  const std::string others = file("others.toml", "[[level]]\ngroups = { a = \"tacc1,tacc3\", b = \"tacc2,tacc4\" }\n");
  const std::string path = probe(cluster, "TACC_TOPO_FILE=" + groups);
  const Topology saved = topologyFromToml(readText(path), path);
  EXPECT_EQ(saved.groupName(1, 1), "b");
  ASSERT_TRUE(saved.uplink(1, 0));
  const auto told = job(cluster, {1, 2, 3, 4}, nobody, path);
  const auto later = job(cluster, {1, 2, 3, 4}, everybody, groups);
  EXPECT_EQ(later[0].digest, saved.digest());
  EXPECT_LT(sent(later), sent(told) + slack);
  const auto moved = job(cluster, {1, 2, 3, 4}, everybody, others);
  EXPECT_GT(sent(moved), sent(told) + slack) << "the hosts are grouped otherwise by now";
  EXPECT_NE(moved[0].digest, saved.digest());
}

}  // namespace
}  // namespace tacc::test
