// What a communicator tells of where its ranks stand: taccCommGetNodeInfo and taccCommGetInfo.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "rank_harness.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

TEST(NodeInfo, tellsWhoSharesAHost) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<int> hosts = {1, 2, 1, 3, 2};
  const VirtualCluster cluster(1, 3);
  runOnHosts(cluster, hosts, [&](taccComm_t comm, int rank) {
    taccNodeInfo_t info{};
    info.size = sizeof info;
    expectSuccess(taccCommGetNodeInfo(comm, &info), comm);
    EXPECT_EQ(info.hosts, 3);
    const int host = hosts[static_cast<std::size_t>(rank)];
    EXPECT_EQ(info.localRanks, std::count(hosts.begin(), hosts.end(), host));
    EXPECT_EQ(info.localRank, std::count(hosts.begin(), hosts.begin() + rank, host));
    EXPECT_GE(info.numaDomain, 0);
    std::vector<int> all(5);
    expectSuccess(taccAllGather(&info.host, all.data(), 1, taccInt32, comm, nullptr), comm);
    for (std::size_t a = 0; a < 5; ++a)
      for (std::size_t b = 0; b < 5; ++b) EXPECT_EQ(all[a] == all[b], hosts[a] == hosts[b]);
    info.size = 4;
    EXPECT_EQ(taccCommGetNodeInfo(comm, &info), taccInvalidArgument);
    taccCommInfo_t whole{};
    whole.size = sizeof whole;
    expectSuccess(taccCommGetInfo(comm, &whole), comm);
    EXPECT_EQ(whole.hosts, 3);
    EXPECT_STRNE(whole.hostName, "");
    EXPECT_STRNE(whole.transport, "");
    EXPECT_STRNE(whole.transport, "shm");
    EXPECT_NE(whole.topologyDigest, 0u);
    std::vector<std::uint64_t> digests(5);
    expectSuccess(taccAllGather(&whole.topologyDigest, digests.data(), 1, taccUint64, comm, nullptr), comm);
    EXPECT_EQ(digests, std::vector<std::uint64_t>(5, whole.topologyDigest));
  });
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    taccNodeInfo_t info{};
    info.size = sizeof info;
    expectSuccess(taccCommGetNodeInfo(comm, &info), comm);
    EXPECT_EQ(info.hosts, 1);
    EXPECT_EQ(info.localRank, rank);
    EXPECT_EQ(info.localRanks, 2);
    EXPECT_EQ(info.networkGroups, 1);
    taccCommInfo_t whole{};
    whole.size = sizeof whole;
    expectSuccess(taccCommGetInfo(comm, &whole), comm);
    EXPECT_STREQ(whole.transport, "shm");
    EXPECT_EQ(whole.topologyDigest, 0u);
  });
}

}  // namespace
}  // namespace tacc::test
