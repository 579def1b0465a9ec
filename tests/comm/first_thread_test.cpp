// Ranks whose main() has called pthread_exit() and whose other threads go on: the system has such a process for a
// zombie in some of what it tells, but it is a rank like any other.
#include "support/first_thread.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "comm/hosts.hpp"
#include "fault_team.hpp"

namespace tacc::test {
namespace {

constexpr int ranks = 3;
constexpr std::size_t mostCount = std::size_t{1} << 20;

/// Adds what is given to what the other ranks give; the error, "" where there is none and the sums are right.
std::string sum(float* values, std::size_t count, taccComm_t comm, int rank) {
  std::iota(values, values + count, static_cast<float>(rank));
  if (taccAllReduce(values, values, count, taccFloat32, taccSum, comm, nullptr) != taccSuccess)
    return taccGetLastError(comm);
  for (std::size_t i = 0; i < count; i += 101) {
    const float right = static_cast<float>(ranks * i + ranks * (ranks - 1) / 2);
    if (values[i] < right || values[i] > right) return "a wrong sum of " + std::to_string(count);
  }
  return "";
}

/// Calls of all kinds, on `comm` and what comes of it.
void live(taccComm_t comm, int rank) {
  std::vector<float> own(mostCount), gathered(ranks * mostCount);
  for (std::size_t count = 1; count <= mostCount; count *= 16) {
    EXPECT_EQ(sum(own.data(), count, comm, rank), "");
    EXPECT_EQ(taccBcast(own.data(), count, taccFloat32, 1, comm, nullptr), taccSuccess) << taccGetLastError(comm);
    EXPECT_EQ(taccAllGather(own.data(), gathered.data(), count, taccFloat32, comm, nullptr), taccSuccess)
        << taccGetLastError(comm);
    EXPECT_EQ(taccGather(own.data(), gathered.data(), count, taccFloat32, 0, comm, nullptr), taccSuccess)
        << taccGetLastError(comm);
    EXPECT_EQ(taccGroupStart(), taccSuccess);
    EXPECT_EQ(taccSend(own.data(), count, taccFloat32, (rank + 1) % ranks, comm, nullptr), taccSuccess);
    EXPECT_EQ(taccRecv(gathered.data(), count, taccFloat32, (rank + ranks - 1) % ranks, comm, nullptr), taccSuccess);
    EXPECT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(nullptr);
  }
  void* handle = nullptr;
  EXPECT_EQ(taccCommRegister(comm, own.data(), own.size() * sizeof(float), &handle), taccSuccess)
      << taccGetLastError(comm);
  EXPECT_EQ(sum(own.data(), own.size(), comm, rank), "");
  EXPECT_EQ(taccCommDeregister(comm, handle), taccSuccess) << taccGetLastError(comm);
}

/// `isBefore`: the first thread ends before the rank joins.
void expectLife(bool isBefore) {
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
    ::setenv("TACC_CMA", "on", 1);  // private memory is to be read, where ranks share a host
    const taccConfig_t config = configOf(20, 10);
    taccComm_t comm = isBefore ? nullptr : joinTeam(id, ranks, rank, config);
    const std::uint64_t host = introduceSelf("", true).host;
    // One rank keeps its own.
    const auto rest = [=, &report] {
      taccComm_t own = isBefore ? joinTeam(id, ranks, rank, config) : comm;
      if (own == nullptr) return 1;
      EXPECT_EQ(introduceSelf("", true).host, host);
      live(own, rank);
      taccComm_t part = nullptr;
      EXPECT_EQ(taccCommSplit(own, 0, 0, &part, nullptr), taccSuccess) << taccGetLastError(own);
      if (part != nullptr) live(part, rank);
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
      EXPECT_EQ(taccCommDestroy(own), taccSuccess);
      report.stage = 2;
      return testing::Test::HasFailure() ? 1 : 0;
    };
    if (rank == 1)
      (void)rest();
    else
      endFirstThread(rest);
  });
  team.join();
}

TEST(FirstThread, MayEndWhenTheRankHasJoined) { expectLife(false); }
TEST(FirstThread, MayEndBeforeTheRankJoins) { expectLife(true); }

}  // namespace
}  // namespace tacc::test
