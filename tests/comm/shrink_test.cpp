// Going on without ranks: whatever happens meanwhile, all that go on are together, and nobody waits for ever.
//
// SHRINK_ROUNDS: how many faults are drawn of each kind (default 24; 8 with TACC_TEST_QUICK).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shrink_team.hpp"

namespace tacc::test {
namespace {

/// What a rank does whom nothing happens to.
Team::Body shrinking(int ranks, const taccConfig_t& config) {
  return [ranks, config](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, ranks, rank, config);
    if (comm == nullptr) return;
    report.stage = 1;
    EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess);
    shrinkAndMeet(comm, rank, {}, report);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  };
}

TEST(Shrink, leavesOutWhoeverIsStopped) {
  for (int victim = 0; victim < 3; ++victim)
    expectStoppedRankLeftOut(victim,
                             [](const taccUniqueId& id, int rank) { return joinTeam(id, 3, rank, configOf(3, 1)); });
}

TEST(Shrink, isUniformWhoeverDiesMeanwhile) {
  std::mt19937 random(20261123);
  double slowest = 0;
  for (int i = 0; i < shrinkRounds(24); ++i) {
    const int ranks = std::uniform_int_distribution(2, 5)(random);
    const int victim = std::uniform_int_distribution(0, ranks - 1)(random);
    const double moment = std::uniform_real_distribution(0.0, 0.04)(random);
    const std::string what = "round " + std::to_string(i) + ": rank " + std::to_string(victim) + " of " +
                             std::to_string(ranks) + " dies after " + std::to_string(moment) + " s";
    Team team(ranks, shrinking(ranks, configOf(20, 20)));
    team.awaitStage(1);
    nap(moment);
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    for (int rank = 0; rank < ranks; ++rank) {
      const Report& report = team.report(rank);
      if (rank == victim) continue;
      EXPECT_EQ(report.result, taccSuccess) << what << ", rank " << rank << ": " << report.message;
      slowest = std::max(slowest, report.end - killed);
    }
    expectTogether(team, what);
    if (HasFailure()) return;
  }
  std::printf("slowest: %.3f s after the death\n", slowest);
}

TEST(Shrink, isUniformWhoeverIsStoppedMeanwhileAndGoesOn) {
  std::mt19937 random(11232026);
  for (int i = 0; i < shrinkRounds(24) / 4; ++i) {
    const int ranks = std::uniform_int_distribution(3, 5)(random);
    const int victim = std::uniform_int_distribution(0, ranks - 1)(random);
    const double moment = std::uniform_real_distribution(0.0, 0.03)(random);
    const double time = std::uniform_real_distribution(0.01, 4.0)(random);
    const std::string what = "round " + std::to_string(i) + ": rank " + std::to_string(victim) + " of " +
                             std::to_string(ranks) + " is stopped after " + std::to_string(moment) + " s for " +
                             std::to_string(time) + " s";
    Team team(ranks, shrinking(ranks, configOf(3, 2)));
    team.awaitStage(1);
    nap(moment);
    team.signal(victim, SIGSTOP);
    nap(time);
    team.signal(victim, SIGCONT);
    team.join();
    expectTogether(team, what);
    if (HasFailure()) return;
  }
}

TEST(Shrink, endsWhenAnotherThreadAborts) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, 3, rank, configOf(60, 60));
    if (comm == nullptr) return;
    report.stage = 1;
    if (rank == 0) {  // never shrinks
      while (report.stage < 3) nap(0.001);
      return;
    }
    std::thread other([comm] {
      nap(0.3);
      EXPECT_EQ(taccCommAbort(comm), taccSuccess);
    });
    taccComm_t smaller = nullptr;
    report.start = now();
    report.result = taccCommShrink(comm, nullptr, 0, &smaller, nullptr, 0);
    report.end = now();
    other.join();
    report.stage = 2;
  });
  team.awaitStage(1);
  for (const int rank : {1, 2})
    while (team.report(rank).stage < 2) nap(0.01);
  team.report(0).stage = 3;
  team.join();
  for (const int rank : {1, 2}) {
    EXPECT_EQ(team.report(rank).result, taccRemoteError);
    EXPECT_LT(team.report(rank).end - team.report(rank).start, 5);
  }
}

/// How many descriptors this process can still open.
void leaveDescriptors(int count) {
  std::vector<int> open;
  for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    open.push_back(fd);
    if (open.size() > 2000) break;
  }
  for (int i = 0; i < count && !open.empty(); ++i) {
    ::close(open.back());
    open.pop_back();
  }
}

TEST(Shrink, endsSoonWithHoweverFewDescriptors) {
  for (int left = 0; left <= 12; left += isQuick() ? 4 : 1) {
    for (const int poor : {0, 1}) {
      Team team(3, [left, poor](const taccUniqueId& id, int rank, Report& report) {
        taccComm_t comm = joinTeam(id, 3, rank, configOf(5, 5));
        if (comm == nullptr) return;
        EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess);
        report.stage = 1;
        if (rank == 2) waitToBeKilled(report);
        if (rank == poor) {
          const rlimit limit{256, 256};
          EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
          leaveDescriptors(left);
        }
        while (report.stage < 3) nap(0.001);
        shrinkAndMeet(comm, rank, {}, report);
        EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
      });
      team.awaitStage(1);
      team.signal(2, SIGKILL);
      for (const int rank : {0, 1}) team.report(rank).stage = 3;
      team.join(2, 30);
      const std::string what = std::to_string(left) + " descriptors left in rank " + std::to_string(poor);
      expectTogether(team, what);
      const Report& injured = team.report(poor);
      if (injured.result != taccSuccess) {
        EXPECT_NE(std::string(injured.message).find("ulimit -n"), std::string::npos)
            << what << ": " << injured.message << "; the other: " << team.report(1 - poor).message;
      }
      for (const int rank : {0, 1}) EXPECT_LT(team.report(rank).end - team.report(rank).start, 12) << what;
    }
  }
}

TEST(Agree, isTheAndOfAllFlagsAndTellsWhoWasLost) {
  Team team(4, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, 4, rank, configOf(20, 20));
    if (comm == nullptr) return;
    int flags = ~(1 << rank);
    EXPECT_EQ(taccCommAgree(comm, &flags), taccSuccess) << taccGetLastError(comm);
    EXPECT_EQ(flags, ~15);
    report.stage = 1;
    if (rank == 2) waitToBeKilled(report);
    EXPECT_NE(taccBarrier(comm, nullptr), taccSuccess);
    for (int i = 0; i < 3; ++i) {
      flags = ~(16 << ((rank + i) % 4));
      EXPECT_EQ(taccCommAgree(comm, &flags), taccRemoteError);
      EXPECT_EQ(flags, ~(15 << 4) | 16 << ((2 + i) % 4));
      EXPECT_NE(std::string(taccGetLastError(comm)).find("without rank 2"), std::string::npos)
          << taccGetLastError(comm);
    }
    shrinkAndMeet(comm, rank, {}, report);
    EXPECT_EQ(report.value, 1 + 2 + 8);
    flags = 5;
    EXPECT_EQ(taccCommAgree(comm, nullptr), taccInvalidArgument);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.awaitStage(1);
  nap(0.05);
  team.signal(2, SIGKILL);
  team.join(2);
}

TEST(Agree, worksAmongThreadsUntilTheyFail) {
  taccComm_t comms[3];
  ASSERT_EQ(taccCommInitAll(comms, 3, nullptr), taccSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      int flags = 7 << rank;
      EXPECT_EQ(taccCommAgree(comms[rank], &flags), taccSuccess);
      EXPECT_EQ(flags, 4);
      EXPECT_EQ(taccBarrier(comms[rank], nullptr), taccSuccess);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taccCommRevoke(comms[1]), taccSuccess);
  int flags = 1;
  EXPECT_EQ(taccCommAgree(comms[0], &flags), taccInvalidUsage);
  EXPECT_EQ(flags, 1);
  for (taccComm_t comm : comms) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

}  // namespace
}  // namespace tacc::test
