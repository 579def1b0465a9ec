// Faults in communicators that are split off one of a single host: a rank that dies, stops or leaves is missed in those
// that it belongs to, and in no other.
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "node_split_parts.hpp"
#include "rank_harness.hpp"
#include "shrink_team.hpp"
#include "support/child_process.hpp"

namespace tacc::test {
namespace {

/// What a rank does in a test of faults: joins, splits twice, ends some communicators, and calls on the part until that
/// fails.
struct Faulty {
  bool losesParent;  // before the fault
  std::size_t count;
};

void runFaulty(const Faulty& faulty, int ranks, const taccUniqueId& id, int rank, Report& report,
               const taccConfig_t& config) {
  taccComm_t const whole = joinTeam(id, ranks, rank, config);
  ASSERT_NE(whole, nullptr);
  taccComm_t const first = split(whole, 0, -rank), second = split(first, 0, rank);
  ASSERT_NE(second, nullptr);
  if (faulty.losesParent) {
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    EXPECT_EQ(taccCommDestroy(first), taccSuccess);
  }
  std::vector<float> numbers(faulty.count, 1), sums(faulty.count);
  const auto call = [&](taccComm_t comm) {
    return taccAllReduce(numbers.data(), sums.data(), faulty.count, taccFloat32, taccSum, comm, nullptr);
  };
  EXPECT_EQ(call(second), taccSuccess);
  report.start = now();
  report.stage = 1;
  while ((report.result = call(second)) == taccSuccess) {
  }
  report.end = now();
  report.setMessage(taccGetLastError(second));
  if (!faulty.losesParent) {
    report.later = call(whole);
    EXPECT_NE(std::strstr(taccGetLastError(whole), "rank"), nullptr);
    EXPECT_EQ(taccCommDestroy(first), taccSuccess);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
  }
  EXPECT_EQ(taccCommDestroy(second), taccSuccess);
  report.stage = 2;
}

/// All others went on to the end, and blame the victim, which was killed at that time, within five seconds.
void expectNamed(const Team& team, int ranks, int victim, double killed) {
  const std::string name = "rank " + std::to_string(victim);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    const Report& report = team.report(rank);
    EXPECT_EQ(report.stage, 2);
    EXPECT_EQ(report.result, taccRemoteError) << report.message;
    EXPECT_NE(std::strstr(report.message, name.c_str()), nullptr) << report.message;
    EXPECT_LT(report.end - killed, 5);
  }
}

TEST(NodeSplitFaults, ARankThatIsKilledEndsAllWithItsName) {
  std::mt19937 random(27);
  for (int round = 0; round < splitRounds(); ++round) {
    const int ranks = 2 + round % 3, victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const Faulty faulty{round % 2 == 1, round % 3 == 0 ? std::size_t{1} : std::size_t{200000}};
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim) + " of " +
                 std::to_string(ranks));
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      runFaulty(faulty, ranks, id, rank, report, configOf(20, 20));
    });
    team.awaitStage(1);
    nap(0.001 * static_cast<double>(random() % 40));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    // The part of a part has the order of the whole again.
    expectNamed(team, ranks, victim, killed);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != victim && !faulty.losesParent) {
        EXPECT_EQ(team.report(rank).later, taccRemoteError);
      }
    if (HasFailure()) return;
  }
}

TEST(NodeSplitFaults, ARankThatIsStoppedIsNamed) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    runFaulty({true, 100}, 3, id, rank, report, configOf(20, 1));
  });
  team.awaitStage(1);
  nap(0.02);
  team.signal(1, SIGSTOP);
  team.join(1);
  for (const int rank : {0, 2}) {
    const Report& report = team.report(rank);
    EXPECT_TRUE(report.result == taccTimeout || report.result == taccRemoteError) << report.message;
    EXPECT_NE(std::strstr(report.message, "rank 1"), nullptr) << report.message;
    EXPECT_NE(std::strstr(report.message, "stopped"), nullptr) << report.message;
  }
  team.signal(1, SIGCONT);
}

TEST(NodeSplitFaults, ARankThatDiesWhileOthersSplitIsNamedOnAll) {
  std::mt19937 random(272);
  for (int round = 0; round < 2 * splitRounds(); ++round) {
    const int ranks = 2 + round % 3, victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim) + " of " +
                 std::to_string(ranks));
    std::vector<int> everybody(static_cast<std::size_t>(ranks));
    std::iota(everybody.begin(), everybody.end(), 0);
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t const whole = joinTeam(id, ranks, rank, configOf(20, 20));
      ASSERT_NE(whole, nullptr);
      report.stage = 1;
      for (int i = 0; report.result == taccSuccess; ++i) {
        taccComm_t part = nullptr;
        // Groups of all: of some the others might never hear.
        report.result = round % 2 == 0 ? taccCommSplit(whole, i % 3 == 0 ? rank % 2 : 0, rank, &part, nullptr)
                                       : taccCommCreateGroup(whole, everybody.data(), ranks, &part, nullptr);
        if (part != nullptr) {
          EXPECT_EQ(taccCommDestroy(part), taccSuccess);
        }
      }
      report.end = now();
      report.setMessage(taccGetLastError(whole));
      EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      report.stage = 2;
    });
    team.awaitStage(1);
    nap(1e-6 * static_cast<double>(random() % 30000));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    expectNamed(team, ranks, victim, killed);
    if (HasFailure()) return;
  }
}

/// By its number in the communicator that the group is made of, whichever step it is at.
TEST(NodeSplitFaults, ARankThatDiesWhileItsGroupIsMadeIsNamedOnAll) {
  std::mt19937 random(273);
  for (int round = 0; round < 2 * splitRounds(); ++round) {
    const int victim = round % 2 == 0 ? 3 : 1;
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim));
    Team team(4, [&](const taccUniqueId& id, int rank, Report& report) {
      const int members[] = {3, 1};
      taccComm_t const whole = joinTeam(id, 4, rank, configOf(20, 20));
      ASSERT_NE(whole, nullptr);
      report.stage = 1;
      if (rank % 2 == 0) report.result = taccBarrier(whole, nullptr);
      while (report.result == taccSuccess) {
        taccComm_t group = nullptr;
        report.result = taccCommCreateGroup(whole, members, 2, &group, nullptr);
        if (group != nullptr) {
          EXPECT_EQ(taccCommDestroy(group), taccSuccess);
        }
      }
      report.end = now();
      report.setMessage(taccGetLastError(whole));
      EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      report.stage = 2;
    });
    team.awaitStage(1);
    nap(0.0005 * static_cast<double>(random() % 40));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    expectNamed(team, 4, victim, killed);
    const std::string dead = "rank " + std::to_string(victim) + " (process";
    for (int rank = 0; rank < 4; ++rank)
      if (rank != victim) {
        EXPECT_NE(std::strstr(team.report(rank).message, dead.c_str()), nullptr) << team.report(rank).message;
      }
    if (HasFailure()) return;
  }
}

TEST(NodeSplitFaults, WhoLeavesAPartIsMissedThereAndNowhereElse) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const whole = joinTeam(id, 3, rank, configOf(20, 20));
    ASSERT_NE(whole, nullptr);
    taccComm_t const part = split(whole, 0, rank), other = split(whole, 0, -rank);
    if (rank == 2) {
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    } else {
      int number = 1;
      report.result = taccAllReduce(&number, &number, 1, taccInt32, taccSum, part, nullptr);
      report.setMessage(taccGetLastError(part));
      EXPECT_EQ(report.result, taccRemoteError);
      EXPECT_NE(std::strstr(report.message, "rank 2"), nullptr) << report.message;
      EXPECT_NE(std::strstr(report.message, "no longer in the communicator"), nullptr) << report.message;
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    }
    expectWorks({other, {2, 1, 0}}, rank, 5000);
    expectWorks({whole, {0, 1, 2}}, rank, 5000);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    expectWorks({other, {2, 1, 0}}, rank, 100);
    EXPECT_EQ(taccCommDestroy(other), taccSuccess);
    report.stage = 2;
  });
  team.join();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(team.report(rank).stage, 2);
}

TEST(NodeSplitFaults, AbortOfAPartEndsThatPartAlone) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const whole = joinTeam(id, 3, rank, configOf(20, 20));
    ASSERT_NE(whole, nullptr);
    taccComm_t const part = split(whole, 0, rank), partOfIt = split(part, 0, rank);
    if (rank == 1) {
      EXPECT_EQ(taccCommAbort(part), taccSuccess);
    } else {
      int number = 1;
      EXPECT_EQ(taccAllReduce(&number, &number, 1, taccInt32, taccSum, part, nullptr), taccRemoteError);
      EXPECT_NE(std::strstr(taccGetLastError(part), "rank 1"), nullptr) << taccGetLastError(part);
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    }
    expectWorks({partOfIt, {0, 1, 2}}, rank, 50000);
    expectWorks({whole, {0, 1, 2}}, rank, 50000);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    EXPECT_EQ(taccCommDestroy(partOfIt), taccSuccess);
    report.stage = 2;
  });
  team.join();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(team.report(rank).stage, 2);
}

/// A death, then agree and shrink of a part whose parent has gone or not: all that live are together.
TEST(NodeSplitFaults, APartShrinksAndAgreesAfterADeath) {
  std::mt19937 random(2727);
  for (int round = 0; round < 2 * splitRounds(); ++round) {
    const int ranks = 2 + round % 4, victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const bool losesParent = round % 2 == 0;
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim) + " of " +
                 std::to_string(ranks));
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t const whole = joinTeam(id, ranks, rank, configOf(20, 20));
      ASSERT_NE(whole, nullptr);
      taccComm_t const part = split(whole, 0, rank);
      ASSERT_NE(part, nullptr);
      if (losesParent) {
        EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      }
      int flags = ~(1 << rank);
      EXPECT_EQ(taccCommAgree(part, &flags), taccSuccess) << taccGetLastError(part);
      EXPECT_EQ(flags, ~((1 << ranks) - 1));
      report.stage = 1;
      int number = 1;
      while (taccAllReduce(&number, &number, 1, taccInt32, taccSum, part, nullptr) == taccSuccess) {
      }
      flags = 7;
      EXPECT_EQ(taccCommAgree(part, &flags), taccRemoteError);
      EXPECT_EQ(flags, 7);
      EXPECT_NE(std::strstr(taccGetLastError(part), std::to_string(victim).c_str()), nullptr);
      shrinkAndMeet(part, rank, {}, report);
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
      if (!losesParent) {
        EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      }
      report.stage = 2;
    });
    team.awaitStage(1);
    nap(0.001 * static_cast<double>(random() % 20));
    team.signal(victim, SIGKILL);
    team.join(victim);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const Report& report = team.report(rank);
      EXPECT_EQ(report.stage, 2);
      EXPECT_EQ(report.result, taccSuccess) << report.message;
      EXPECT_EQ(report.value, ((1 << ranks) - 1) & ~(1 << victim));
    }
    expectTogether(team, "shrink of a part");
    if (HasFailure()) return;
  }
}

/// Also where a rank is stopped before its place is open: it is waited for, left out, and told when it goes on.
TEST(NodeSplitFaults, WhoIsStoppedIsLeftOutOfAPartAndTold) {
  const auto makePart = [](const taccUniqueId& id, int rank) {
    taccComm_t const whole = joinTeam(id, 3, rank, configOf(4, 1));
    taccComm_t const part = split(whole, 0, rank);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    return part;
  };
  for (const int victim : {0, 2}) {
    const std::string told = expectStoppedRankLeftOut(victim, makePart);
    EXPECT_NE(told.find("without it"), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace tacc::test
