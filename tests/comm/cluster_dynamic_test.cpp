// A link becomes slow while a job runs: all ranks leave the algorithm that suffers, in the same call, and results stay
// right. How fast the calls are then is measured (docs/understand/dynamic.md), not asserted.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "rank_harness.hpp"
#include "support/virtual_cluster.hpp"
#include "trials.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const char* const twoSupernodes = R"(
[[level]]
groups = { a = "tacc[1-4]", b = "tacc[5-8]" }
uplink = "25 MB/s"
)";

class ClusterDynamic : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
    directory_ = testing::TempDir() + "dynamic." + std::to_string(::getpid());
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/topology.toml") << twoSupernodes;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void knowTopology() const { setenv("TACC_TOPO_FILE", (directory_ + "/topology.toml").c_str(), 1); }

  std::string directory_;
};

constexpr std::size_t count = 1 << 16;

/// Names of the algorithms of `calls` allreduces, whose results are checked.
void reduceOften(taccComm_t comm, int rank, int ranks, int calls, std::vector<std::string>& names) {
  std::vector<float> in(count), out(count);
  for (int call = 0; call < calls; ++call) {
    for (std::size_t i = 0; i < count; ++i)
      in[i] = static_cast<float>((i + static_cast<std::size_t>(rank * call)) % 16);
    expectSuccess(taccAllReduce(in.data(), out.data(), count, taccFloat, taccSum, comm, nullptr), comm);
    names.emplace_back(taccCommLastAlgorithm(comm));
    for (std::size_t i = 0; i < count; i += 61) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += static_cast<float>((i + static_cast<std::size_t>(r * call)) % 16);
      ASSERT_EQ(out[i], sum) << "element " << i << " of call " << names.size() << " by " << names.back();
    }
  }
}

void expectAgreement(taccComm_t comm, int ranks, const std::vector<std::string>& names) {
  std::vector<std::size_t> mine, all(names.size() * static_cast<std::size_t>(ranks));
  for (const std::string& name : names) mine.push_back(std::hash<std::string>()(name));
  expectSuccess(taccAllGather(mine.data(), all.data(), mine.size(), taccUint64, comm, nullptr), comm);
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(all[i], mine[i % mine.size()]) << "rank " << i / mine.size() << ", call " << i % mine.size();
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(ClusterDynamic, LeavesTheRingWithinFiftyCallsOfASlowUplink) {
  const VirtualCluster cluster(2, 4, 200, 200);
  runOnHosts(
      cluster, {1, 2, 3, 4, 5, 6, 7, 8},
      [&](taccComm_t comm, int rank) {
        std::vector<std::string> names;
        reduceOften(comm, rank, 8, 20, names);
        expectSuccess(taccBarrier(comm, nullptr), comm);
        if (rank == 0) cluster.limitUplink(1, 50);
        reduceOften(comm, rank, 8, 50, names);
        EXPECT_EQ(names.front(), "ring") << "what the model says of the network as it was";
        EXPECT_LT(std::count(names.end() - 8, names.end(), "ring"), 4) << testing::PrintToString(names);
        expectAgreement(comm, 8, names);
        EXPECT_THAT(taccExplain(comm, "allreduce", count * 4), HasSubstr("dynamic: 70 calls"));
        EXPECT_THAT(taccExplain(comm, "allreduce", count * 4), HasSubstr("(ring was slower than "));
      },
      TACC_CONFIG_INITIALIZER,
      [&](int) {
        knowTopology();
        setenv("TACC_TRACE", (directory_ + "/trace").c_str(), 1);
      });
  EXPECT_THAT(contentOf(directory_ + "/trace.0.rank0.txt"), HasSubstr("others are tried"));
  EXPECT_THAT(contentOf(directory_ + "/trace.0.rank0.json"), HasSubstr("takes over"));
}

TEST_F(ClusterDynamic, OffAndForcedStayAsTheyWere) {
  const VirtualCluster cluster(2, 2, 200, 200);
  for (const char* variable : {"TACC_DYNAMIC", "TACC_ALGO"})
    runOnHosts(
        cluster, {1, 2, 3, 4},
        [&](taccComm_t comm, int rank) {
          std::vector<std::string> names;
          reduceOften(comm, rank, 4, 8, names);
          if (rank == 0) cluster.limitUplink(1, 50);
          reduceOften(comm, rank, 4, 16, names);
          EXPECT_EQ(std::ranges::count(names, names.front()), 24);
          EXPECT_THAT(taccExplain(comm, "allreduce", count * 4), Not(HasSubstr("dynamic:")));
          if (rank == 0) cluster.limitUplink(1, 200);
        },
        TACC_CONFIG_INITIALIZER,
        [&](int) { setenv(variable, variable == std::string("TACC_ALGO") ? "ring" : "off", 1); });
}

/// Short calls try what has nearly the same price after some hundred of them, on all ranks alike, with several ranks on
/// some hosts.
TEST_F(ClusterDynamic, ShortCallsTryRivalsAndStayRight) {
  for (const std::vector<int>& hosts : {std::vector<int>{1, 2, 3, 4}, {1, 1, 2, 2, 3, 3}, {1, 2, 2, 3, 4}}) {
    const VirtualCluster cluster(2, 2, 200, 200);
    const int ranks = static_cast<int>(hosts.size());
    runOnHosts(cluster, hosts, [&](taccComm_t comm, int rank) {
      std::vector<std::string> names;
      for (int repetition = 0; repetition < 300; ++repetition) {
        std::vector<Trial> trials;
        for (const Collective collective : {Collective::allReduce, Collective::allGather, Collective::reduceScatter,
                                            Collective::broadcast, Collective::reduce})
          trials.push_back({collective, taccFloat32, taccSum, 20, repetition % ranks, false, false});
        runAll(comm, rank, ranks, trials);
        if (testing::Test::HasFailure()) return;
        float in = 1, out = 0;
        expectSuccess(taccAllReduce(&in, &out, 1, taccFloat, taccSum, comm, nullptr), comm);
        EXPECT_EQ(out, static_cast<float>(ranks));
        names.emplace_back(taccCommLastAlgorithm(comm));
      }
      // Where several share a host, only the one that talks to other hosts knows the name.
      if (hosts.size() == 4) {
        expectAgreement(comm, ranks, names);
        EXPECT_GT(std::set(names.begin(), names.end()).size(), 2u) << "some were tried";
      }
      for (const char* collective : {"allreduce", "broadcast", "reduce"})
        EXPECT_THAT(taccExplain(comm, collective, 20 * sizeof(float)),
                    rank == 0 || hosts.size() == 4 ? HasSubstr("nearly the same price") : HasSubstr(collective));
    });
    if (HasFailure()) return;
  }
}

/// Several ranks a host, in lanes and by leaders, while options are tried.
TEST_F(ClusterDynamic, AllTimedCollectivesStayRight) {
  for (const std::vector<int>& hosts : {std::vector<int>{1, 1, 2, 2, 3, 3, 4, 4}, {1, 2, 2, 3, 4}}) {
    const VirtualCluster cluster(2, 2, 100, 100);
    const int ranks = static_cast<int>(hosts.size());
    std::vector<Trial> trials;
    for (const Collective collective : {Collective::allReduce, Collective::allGather, Collective::reduceScatter})
      trials.push_back(
          {collective, taccFloat32, taccSum, collective == Collective::allReduce ? 100'003U : 5003U, 0, false, false});
    runOnHosts(cluster, hosts, [&](taccComm_t comm, int rank) {
      for (int repetition = 0; repetition < 40; ++repetition) {
        if (repetition == 18 && rank == 0) cluster.limitUplink(2, 20);
        runAll(comm, rank, ranks, trials);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_THAT(taccExplain(comm, "allreduce", 100'003 * sizeof(float)), HasSubstr("explored"));
    });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tacc::test
