// Where hosts stand: files, measuring, contradictions, and the explanation of choices.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "comm/probe/network_survey.hpp"
#include "rank_harness.hpp"
#include "support/child_process.hpp"
#include "support/virtual_cluster.hpp"
#include "topology/toml/toml.hpp"
#include "trials.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

RankIdentity rankOn(const std::string& host) {
  RankIdentity identity{};
  std::copy(host.begin(), host.end(), identity.hostName.begin());
  identity.host = std::hash<std::string>()(host);
  return identity;
}

const char* const evenAndOdd = R"(
[[level]]
groups = { odd = "tacc1,tacc3", even = "tacc2,tacc4" }
)";

TEST(Walk, GoesOverGroupsAndLeavesStrangersAtTheEnd) {
  const Topology topology = topologyFromToml(evenAndOdd, "test");
  std::vector<RankIdentity> who;
  for (const char* host : {"tacc2", "other", "tacc1.cluster", "tacc4", "tacc3", "tacc1.cluster"})
    who.push_back(rankOn(host));
  const HostMap hosts(who);
  const HostMap walked = hosts.inOrder(walkOver(topology, hosts, who));
  std::vector<std::string> names;
  for (const int leader : walked.lane(0)) names.emplace_back(who[static_cast<std::size_t>(leader)].hostName.data());
  EXPECT_THAT(names, testing::ElementsAre("tacc1.cluster", "tacc3", "tacc2", "tacc4", "other"));
  EXPECT_EQ(walked.everybody(), (std::vector<int>{2, 5, 4, 0, 3, 1}));
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(walked.ranksOf(walked.hostOf(rank))[static_cast<std::size_t>(walked.localOf(rank))], rank);
}

class ClusterTopology : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
    directory_ = testing::TempDir() + "topology." + std::to_string(::getpid());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  std::string directory_;
};

TEST_F(ClusterTopology, CallsAreRightInTheOrderOfAFile) {
  const VirtualCluster cluster(1, 4);
  const std::string path = file("t.toml", evenAndOdd);
  for (const std::vector<int>& hosts : {std::vector<int>{1, 2, 3, 4}, {1, 2, 3, 4, 2, 4}, {4, 1, 4, 1, 2, 3, 3, 2}}) {
    const int ranks = static_cast<int>(hosts.size());
    runOnHosts(
        cluster, hosts,
        [&](taccComm_t comm, int rank) {
          runAll(comm, rank, ranks, trialsOfRoots(ranks));
          const char* text = taccExplain(comm, "allreduce", 1 << 20);
          ASSERT_NE(text, nullptr) << taccGetLastError(comm);
          EXPECT_THAT(text, HasSubstr("2 groups"));
          EXPECT_THAT(text, HasSubstr("-> "));
          EXPECT_EQ(taccExplain(comm, "allreduced", 8), nullptr);
          EXPECT_THAT(taccGetLastError(comm), HasSubstr("reducescatter"));
        },
        TACC_CONFIG_INITIALIZER, [&](int) { setenv("TACC_TOPO_FILE", path.c_str(), 1); });
    if (HasFailure()) return;
  }
}

TEST_F(ClusterTopology, PlansAreToldTheSidesOfATorus) {
  const VirtualCluster cluster(1, 4);
  const std::string path = file("torus.toml",
                                "hosts = \"tacc[1-4]\"\n[[level]]\nwiring = \"torus\"\ndimensions = [2, 2]\n"
                                "links = 1\nlink = \"20 MB/s\"\n");
  for (const char* algorithm : {"swing", "ring_2d"}) {
    runOnHosts(
        cluster, {4, 2, 1, 3},
        [&](taccComm_t comm, int rank) {
          EXPECT_THAT(taccExplain(comm, "allreduce", 1 << 20), HasSubstr("a torus of 2 x 2"));
          std::vector<std::int64_t> values(10'007);
          for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) << (8 * rank);
          ASSERT_EQ(taccAllReduce(values.data(), values.data(), values.size(), taccInt64, taccSum, comm, nullptr),
                    taccSuccess)
              << taccGetLastError(comm);
          for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(values[i], static_cast<std::int64_t>(i) * 0x1010101) << algorithm << ", element " << i;
          EXPECT_STREQ(taccCommLastAlgorithm(comm), algorithm);
          // What it does not serve is chosen.
          expectSuccess(taccBcast(values.data(), values.size(), taccInt64, 3, comm, nullptr), comm);
          std::vector<int> gathered(4, -1);
          const std::vector<std::size_t> counts(4, 1);
          expectSuccess(taccAllGatherV(&rank, gathered.data(), counts.data(), nullptr, taccInt32, comm, nullptr), comm);
          EXPECT_THAT(gathered, testing::ElementsAre(0, 1, 2, 3)) << algorithm;
          EXPECT_THAT(taccExplain(comm, "broadcast", 1 << 20), testing::Not(HasSubstr("forced"))) << algorithm;
          EXPECT_THAT(taccExplain(comm, "allreduce", 1 << 20), HasSubstr(std::string(algorithm) + " was forced"));
        },
        TACC_CONFIG_INITIALIZER,
        [&](int) {
          setenv("TACC_TOPO_FILE", path.c_str(), 1);
          setenv("TACC_ALGO", algorithm, 1);
        });
    if (HasFailure()) return;
  }
}

TEST_F(ClusterTopology, MeasuredOnesAreUsedWithoutAFile) {
  const VirtualCluster cluster(2, 2, 200, 100);
  runOnHosts(
      cluster, {1, 3, 2, 4}, [&](taccComm_t comm, int rank) { runAll(comm, rank, 4, trialsOfRoots(4)); },
      TACC_CONFIG_INITIALIZER, [](int) { setenv("TACC_TOPO_SOURCE", "probe", 1); });
}

/// As where every host has a bridge of its own containers, at the same address everywhere.
TEST_F(ClusterTopology, RanksMeetOverTheFirstNamedInterfaceThatLeadsToTheOther) {
  const VirtualCluster cluster(1, 2);
  for (int host = 1; host <= 2; ++host) {
    const std::string make =
        "ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up";
    ChildProcess child([&] {
      cluster.enter(host);
      return std::system(make.c_str()) == 0;
    });
    ASSERT_EQ(child.wait(), 0);
  }
  for (const char* names : {"docker0,eth0", "eth0,docker0"}) {
    runOnHosts(
        cluster, {1, 1, 2, 2},
        [](taccComm_t comm, int rank) {
          std::vector<int> sent, got(4);
          for (int other = 0; other < 4; ++other) sent.push_back(4 * rank + other);
          expectSuccess(taccAllToAll(sent.data(), got.data(), 1, taccInt32, comm, nullptr), comm);
          EXPECT_THAT(got, testing::ElementsAre(rank, rank + 4, rank + 8, rank + 12));
        },
        TACC_CONFIG_INITIALIZER,
        [&](int) {
          setenv("TACC_SOCKET_IFNAME", names, 1);
          setenv("TACC_TRANSPORT", "tcp", 1);
          setenv("TACC_TIMEOUT", "20", 1);
        });
    if (HasFailure()) return;
  }
}

TEST_F(ClusterTopology, HostsThatSeeDifferentOnesAreBothNamed) {
  const VirtualCluster cluster(1, 2);
  const std::string one = file("one.toml", "[[level]]\ngroups = { a = \"tacc1\", b = \"tacc2\" }\n");
  const std::string other = file("other.toml", "hosts = \"tacc[1-2]\"\n[[level]]\nlatency = \"9 us\"\n");
  const auto errors = initErrorsOnHosts(
      cluster, {1, 2}, [&](int rank) { setenv("TACC_TOPO_FILE", rank == 0 ? one.c_str() : other.c_str(), 1); });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("different topologies"));
    EXPECT_THAT(error, HasSubstr("tacc1"));
    EXPECT_THAT(error, HasSubstr("tacc2"));
    EXPECT_THAT(error, HasSubstr("digest"));
  }
}

TEST_F(ClusterTopology, ABrokenFileIsAnErrorOnAllRanks) {
  const VirtualCluster cluster(1, 2);
  const std::string path = file("broken.toml", "hosts = \"tacc[1-2]\"\n[[level]]\nkynd = \"leaf\"\n");
  const auto errors = initErrorsOnHosts(cluster, {1, 2}, [&](int) { setenv("TACC_TOPO_FILE", path.c_str(), 1); });
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("kynd"));
}

}  // namespace
}  // namespace tacc::test
