// Many processes on several hosts form a communicator and get right results. 32 by default;
//
//   TACC_TEST_RANKS=512 many_ranks_test   as many as asked for, on 8 hosts; prints times and memory
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "fault_team.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

constexpr int hostCount = 8;

int ranksAsked() {
  const char* const asked = std::getenv("TACC_TEST_RANKS");
  return asked == nullptr ? 32 : std::max(hostCount, std::atoi(asked));
}

/// This process's share of the memory that it uses, in MiB.
double proportionalMebibytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  while (rollup >> word)
    if (word == "Pss:") {
      double kibibytes = 0;
      rollup >> kibibytes;
      return kibibytes / 1024;
    }
  return 0;
}

void tell(int rank, const char* what, double start) {
  if (rank == 0) std::printf("%s: %.1f ms\n", what, (now() - start) * 1e3);
}

void expectAllReduced(taccComm_t comm, int rank, int ranks, int count, const char* what) {
  std::vector<int> mine(static_cast<std::size_t>(count)), sum(mine.size());
  std::iota(mine.begin(), mine.end(), rank);
  const double start = now();
  ASSERT_EQ(taccAllReduce(mine.data(), sum.data(), mine.size(), taccInt32, taccSum, comm, nullptr), taccSuccess)
      << taccGetLastError(comm);
  tell(rank, what, start);
  for (int i = 0; i < count; ++i)
    ASSERT_EQ(sum[static_cast<std::size_t>(i)], ranks * (ranks - 1) / 2 + ranks * i) << "rank " << rank;
}

void expectBroadcast(taccComm_t comm, int rank, int ranks) {
  const int root = ranks / 3;
  std::vector<int> expected(100003);
  std::iota(expected.begin(), expected.end(), 17);
  std::vector<int> data = rank == root ? expected : std::vector<int>(expected.size());
  const double start = now();
  ASSERT_EQ(taccBroadcast(data.data(), data.data(), data.size(), taccInt32, root, comm, nullptr), taccSuccess)
      << taccGetLastError(comm);
  tell(rank, "broadcast of 400 KB", start);
  ASSERT_EQ(data, expected) << "rank " << rank;
}

void expectGathered(taccComm_t comm, int rank, int ranks) {
  constexpr std::size_t count = 100;
  const std::vector<int> mine(count, rank);
  std::vector<int> all(count * static_cast<std::size_t>(ranks), -1);
  const double start = now();
  ASSERT_EQ(taccAllGather(mine.data(), all.data(), count, taccInt32, comm, nullptr), taccSuccess)
      << taccGetLastError(comm);
  tell(rank, "allgather of 400 B each", start);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int>(i / count)) << "rank " << rank;
}

TEST(ManyRanks, GetRightResults) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const int ranks = ranksAsked();
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(1 + rank * hostCount / ranks);
  const VirtualCluster cluster(2, hostCount / 2);
  constexpr double patience = 400;
  Team team(cluster, hosts, [ranks](const taccUniqueId& id, int rank, Report& report) {
    const double start = now();
    taccComm_t comm = joinTeam(id, ranks, rank, configOf(patience, patience));
    if (comm == nullptr) return;
    tell(rank, "joining", start);
    for (const bool isFirst : {true, false}) {
      if (!isFirst && rank == 0) std::printf("again, prices known and connections made:\n");
      expectAllReduced(comm, rank, ranks, 1, "allreduce of 4 B");
      expectAllReduced(comm, rank, ranks, 100003, "allreduce of 400 KB");
      expectBroadcast(comm, rank, ranks);
      expectGathered(comm, rank, ranks);
    }
    report.value = proportionalMebibytes();
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, patience);
  double mebibytes = 0;
  for (int rank = 0; rank < ranks; ++rank) mebibytes += team.report(rank).value;
  std::printf("%d ranks on %d hosts: %.0f MiB\n", ranks, hostCount, mebibytes);
}

}  // namespace
}  // namespace tacc::test
