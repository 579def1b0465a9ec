// Communicators that are joined without blocking: asking, aborting at any moment, and what is refused meanwhile.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

/// Starts to join without blocking.
taccComm_t beginJoin(const taccUniqueId& id, int ranks, int rank, double initTimeout) {
  taccConfig_t config = configOf(initTimeout, 30);
  config.blocking = 0;
  taccComm_t comm = nullptr;
  EXPECT_EQ(taccCommInitRankConfig(&comm, ranks, id, rank, &config), taccInProgress) << taccGetLastError(nullptr);
  return comm;
}

taccResult_t awaitJoin(taccComm_t comm) {
  taccResult_t result = taccInProgress;
  while (result == taccInProgress) {
    EXPECT_EQ(taccCommGetAsyncError(comm, &result), taccSuccess) << taccGetLastError(nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return result;
}

taccResult_t sumOfOnes(taccComm_t comm, float& value) {
  value = 1;
  return taccAllReduce(&value, &value, 1, taccFloat32, taccSum, comm, nullptr);
}

TEST(Joining, becomesUsable) {
  Team team(3, [](const taccUniqueId& id, int rank, Report&) {
    taccComm_t comm = beginJoin(id, 3, rank, 20);
    ASSERT_EQ(awaitJoin(comm), taccSuccess) << taccGetLastError(comm);
    float value = 0;
    EXPECT_EQ(sumOfOnes(comm, value), taccSuccess) << taccGetLastError(comm);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join();
}

TEST(Joining, refusesCallsMeanwhile) {
  Team team(1, [](const taccUniqueId& id, int, Report&) {
    taccComm_t comm = beginJoin(id, 2, 0, 20);  // the other one never comes
    float value = 0;
    EXPECT_EQ(sumOfOnes(comm, value), taccInvalidUsage);
    EXPECT_NE(std::string(taccGetLastError(nullptr)).find("still joining"), std::string::npos);
    EXPECT_EQ(taccCommDestroy(comm), taccInvalidUsage);
    int count = 0;
    EXPECT_EQ(taccCommCount(comm, &count), taccInvalidUsage);
    taccResult_t result = taccSuccess;
    EXPECT_EQ(taccCommGetAsyncError(comm, &result), taccSuccess);
    EXPECT_EQ(result, taccInProgress);
    const double start = now();
    EXPECT_EQ(taccCommAbort(comm), taccSuccess);
    EXPECT_LT(now() - start, 2);
    EXPECT_EQ(taccCommAbort(comm), taccInvalidUsage) << "its handle is gone";
  });
  team.join();
}

TEST(Joining, isRefusedInAGroup) {
  taccUniqueId id;
  ASSERT_EQ(taccGetUniqueId(&id), taccSuccess);
  taccConfig_t config = configOf(5, 5);
  config.blocking = 0;
  taccComm_t comm = nullptr;
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  EXPECT_EQ(taccCommInitRankConfig(&comm, 2, id, 0, &config), taccInvalidUsage);
  EXPECT_EQ(taccGroupEnd(), taccInvalidUsage);
  config.blocking = 2;
  EXPECT_EQ(taccCommInitRankConfig(&comm, 2, id, 0, &config), taccInvalidArgument);
  EXPECT_NE(std::string(taccGetLastError(nullptr)).find("blocking is 2"), std::string::npos);
}

TEST(Joining, tellsWhyItFailed) {
  Team team(1, [](const taccUniqueId& id, int, Report&) {
    taccComm_t comm = beginJoin(id, 2, 0, 0.3);
    EXPECT_EQ(awaitJoin(comm), taccTimeout);
    EXPECT_NE(std::string(taccGetLastError(comm)).find("rank 1"), std::string::npos) << taccGetLastError(comm);
    float value = 0;
    EXPECT_EQ(sumOfOnes(comm, value), taccInvalidUsage);
    EXPECT_NE(std::string(taccGetLastError(nullptr)).find("could not join"), std::string::npos);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join();
}

/// Of three ranks (and one that never comes, if `someoneIsMissing`) the `aborter` joins without blocking and aborts
/// after `delay`. The others join as usual, and sum if they could.
void abortAfter(int aborter, std::chrono::microseconds delay, bool someoneIsMissing) {
  const int ranks = someoneIsMissing ? 4 : 3;
  Team team(
      ranks,
      [&](const taccUniqueId& id, int rank, Report& report) {
        if (rank == aborter) {
          taccComm_t comm = beginJoin(id, ranks, rank, 20);
          std::this_thread::sleep_for(delay);
          const double start = now();
          EXPECT_EQ(taccCommAbort(comm), taccSuccess) << taccGetLastError(nullptr);
          EXPECT_LT(now() - start, 2);
          return;
        }
        const taccConfig_t config = configOf(20, 20);
        taccComm_t comm = nullptr;
        report.start = now();
        report.result = taccCommInitRankConfig(&comm, ranks, id, rank, &config);
        report.setMessage(taccGetLastError(nullptr));
        if (comm != nullptr) {
          float value = 0;
          report.result = sumOfOnes(comm, value);
          report.setMessage(taccGetLastError(comm));
          EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
        }
        report.end = now();
      },
      someoneIsMissing ? 3 : -1);
  team.join();
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == aborter) continue;
    const Report& report = team.report(rank);
    EXPECT_EQ(report.result, taccRemoteError) << "rank " << rank << ": " << report.message;
    EXPECT_LT(report.end - report.start, 6) << "rank " << rank << ": " << report.message;
    EXPECT_NE(std::string(report.message).find("rank " + std::to_string(aborter)), std::string::npos)
        << "rank " << rank << ": " << report.message;
  }
}

TEST(Joining, anAbortEndsItOnAllRanks) {
  for (int aborter = 0; aborter < 3; ++aborter) abortAfter(aborter, std::chrono::milliseconds(100), true);
}

TEST(Joining, anAbortAtAnyMomentIsTold) {
  const int moments = isQuick() ? 6 : 40;
  for (int i = 0; i < moments && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    abortAfter(i % 3, std::chrono::microseconds(i * 400), false);
  }
}

}  // namespace
}  // namespace tacc::test
