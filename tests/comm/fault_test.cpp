// What ranks see when another dies, stops, aborts or calls something else: an error that names it, soon, on every rank.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t large = 3 << 20;  // bytes: several pieces, several chunks
constexpr double promptSeconds = 2;     // between a death and the errors of the others
constexpr int victim = 2;

/// A buffer of this process's, made at its first use, so that parents and children do not share it.
void* privateBuffer(int which) {
  static std::vector<float> buffers[2];
  buffers[which].resize(large / sizeof(float));
  return buffers[which].data();
}
void* libraryBuffer(int which) {
  static void* buffers[2] = {};
  if (buffers[which] == nullptr) {
    EXPECT_EQ(taccMemAlloc(&buffers[which], large), taccSuccess);
  }
  return buffers[which];
}

taccResult_t allReduce(taccComm_t comm, std::size_t bytes, void* (*buffer)(int)) {
  return taccAllReduce(buffer(0), buffer(1), bytes / sizeof(float), taccFloat32, taccSum, comm, nullptr);
}

struct Blocking {
  const char* name;
  bool warm;  // once with the victim before
  taccResult_t (*call)(taccComm_t comm, int rank);
};

/// Calls in which every rank but the victim waits for it.
const Blocking blockings[] = {
    {"smallAllReduce", true, [](taccComm_t c, int) { return allReduce(c, 16, privateBuffer); }},
    {"eagerAllReduce", true, [](taccComm_t c, int) { return allReduce(c, 20000, privateBuffer); }},
    {"largeAllReducePrivate", true, [](taccComm_t c, int) { return allReduce(c, large, privateBuffer); }},
    {"largeAllReduceLibrary", true, [](taccComm_t c, int) { return allReduce(c, large, libraryBuffer); }},
    {"firstAllReduceLibrary", false, [](taccComm_t c, int) { return allReduce(c, large, libraryBuffer); }},
    {"smallBroadcast", false,
     [](taccComm_t c, int) { return taccBcast(privateBuffer(0), 4, taccFloat32, victim, c, nullptr); }},
    {"largeBroadcast", false,
     [](taccComm_t c, int) { return taccBcast(privateBuffer(0), large / 4, taccFloat32, victim, c, nullptr); }},
    {"barrier", true, [](taccComm_t c, int) { return taccBarrier(c, nullptr); }},
    {"sendAndReceive", false,
     [](taccComm_t c, int rank) {
       return rank == 1 ? taccSend(privateBuffer(0), large / 4, taccFloat32, victim, c, nullptr)
                        : taccRecv(privateBuffer(0), 5, taccFloat32, victim, c, nullptr);
     }},
    {"group", false,
     [](taccComm_t c, int rank) {
       // The dead rank is neither the first nor the last that is waited for.
       EXPECT_EQ(taccGroupStart(), taccSuccess);
       for (int peer = 0; peer < 4; ++peer) {
         if (peer == rank) continue;
         (void)taccSend(privateBuffer(0), large / 4, taccFloat32, peer, c, nullptr);
         (void)taccRecv(privateBuffer(1), peer == victim ? 1 : large / 4, taccFloat32, peer, c, nullptr);
       }
       return taccGroupEnd();
     }},
};

void expectNamesVictim(const Report& report, int rank, double since, double seconds) {
  EXPECT_NE(std::string(report.message).find("rank " + std::to_string(victim)), std::string::npos)
      << "rank " << rank << ": " << report.message;
  EXPECT_LT(report.end - since, seconds) << "rank " << rank << ": " << report.message;
}

void expectEnded(const Report& report, int rank) {
  EXPECT_NE(report.later, taccSuccess) << "rank " << rank;
  EXPECT_LT(report.laterSeconds, 0.5) << "rank " << rank;
  EXPECT_NE(report.async, taccSuccess) << "rank " << rank;
  EXPECT_EQ(report.destroyed, taccSuccess) << "rank " << rank;
}

void expectDeathSeen(const Team& team, double killed) {
  for (int rank = 0; rank < team.ranks(); ++rank) {
    if (rank == victim) continue;
    const Report& report = team.report(rank);
    EXPECT_EQ(report.result, taccRemoteError) << "rank " << rank << ": " << report.message;
    expectNamesVictim(report, rank, killed, promptSeconds);
    expectEnded(report, rank);
  }
}

class Blocked : public testing::TestWithParam<Blocking> {
 protected:
  /// Four ranks, three of them in the call, the victim outside.
  static Team::Body body(double operationTimeout) {
    return [operationTimeout](const taccUniqueId& id, int rank, Report& report) {
      const Blocking& blocking = GetParam();
      taccComm_t comm = joinTeam(id, 4, rank, configOf(20, operationTimeout));
      if (comm == nullptr) return;
      if (blocking.warm) {
        EXPECT_EQ(blocking.call(comm, rank), taccSuccess) << taccGetLastError(comm);
      }
      if (rank == victim) waitToBeKilled(report);
      reportCall(comm, rank, blocking.call, report);
    };
  }
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
};

TEST_P(Blocked, endsWhenARankIsKilled) {
  Team team(4, body(60));
  team.awaitStage(1);
  settle();
  const double killed = now();
  team.signal(victim, SIGKILL);
  team.join(victim);
  expectDeathSeen(team, killed);
}

TEST_P(Blocked, endsWhenARankIsStopped) {
  Team team(4, body(1));
  team.awaitStage(1);
  team.signal(victim, SIGSTOP);
  team.join(victim);
  int timeouts = 0;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    if (rank == victim) continue;
    const Report& report = team.report(rank);
    EXPECT_TRUE(report.result == taccTimeout || report.result == taccRemoteError) << report.message;
    expectNamesVictim(report, rank, report.start, isQuick() ? 4 : 2.2);
    EXPECT_NE(std::string(report.message).find("stopped"), std::string::npos) << report.message;
    expectEnded(report, rank);
    timeouts += report.result == taccTimeout ? 1 : 0;
  }
  EXPECT_GE(timeouts, 1);
  team.signal(victim, SIGCONT);
}

INSTANTIATE_TEST_SUITE_P(Calls, Blocked, testing::ValuesIn(blockings),
                         [](const testing::TestParamInfo<Blocking>& suite) { return suite.param.name; });

/// Calls of all kinds one after the other until one fails.
taccResult_t streamOfCalls(taccComm_t comm, int) {
  for (int i = 0;; ++i) {
    taccResult_t result = taccSuccess;
    switch (i % 5) {
      case 0:
        result = allReduce(comm, 16, privateBuffer);
        break;
      case 1:
        result = allReduce(comm, 20000, privateBuffer);
        break;
      case 2:
        result = allReduce(comm, large, privateBuffer);
        break;
      case 3:
        result = allReduce(comm, large, libraryBuffer);
        break;
      default:
        result = taccBcast(privateBuffer(0), large / 8, taccFloat32, i % 4, comm, nullptr);
    }
    if (result != taccSuccess) return result;
  }
}

TEST(Stream, endsWhenARankIsKilled) {
  for (int repetition = 0; repetition < (isQuick() ? 2 : 8); ++repetition) {
    Team team(4, [](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t comm = joinTeam(id, 4, rank, configOf(20, 60));
      if (comm != nullptr) reportCall(comm, rank, streamOfCalls, report);
    });
    team.awaitStage(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 13 * repetition));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    expectDeathSeen(team, killed);
    if (HasFailure()) return;
  }
}

TEST(Abort, endsBlockedCallsOnAllRanks) {
  for (const std::size_t bytes : {std::size_t{16}, large}) {
    Team team(3, [bytes](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t comm = joinTeam(id, 3, rank, configOf(20, 60));
      if (comm == nullptr) return;
      const auto call = [bytes](taccComm_t c, int) { return allReduce(c, bytes, privateBuffer); };
      if (rank == 0) waitToBeKilled(report);  // never comes, so that the others wait
      if (rank == 1) return reportCall(comm, rank, call, report);
      std::thread aborter([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        report.value = now();
        EXPECT_EQ(taccCommAbort(comm), taccSuccess);
      });
      report.stage = 1;
      report.result = call(comm, rank);
      report.end = now();
      report.setMessage(taccGetLastError(nullptr));
      aborter.join();
    });
    team.join(0);
    for (const int rank : {1, 2}) {
      const Report& report = team.report(rank);
      EXPECT_EQ(report.result, taccRemoteError) << report.message;
      EXPECT_LT(report.end - team.report(2).value, 0.5);
    }
    EXPECT_NE(std::string(team.report(1).message).find("taccCommAbort was called on rank 2"), std::string::npos)
        << team.report(1).message;
    expectEnded(team.report(1), 1);
  }
}

/// Two of three ranks hand new library memory round and wait for rank 0, which is in the call and stands still.
TEST(Abort, isHeardWhileLibraryMemoryIsHandedRound) {
  constexpr int released = 3;  // a stage
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, 3, rank, configOf(20, 60));
    if (comm == nullptr) return;
    (void)libraryBuffer(0);
    (void)libraryBuffer(1);
    if (rank < 2)
      return reportCall(
          comm, rank, [](taccComm_t c, int) { return allReduce(c, large, libraryBuffer); }, report);
    report.stage = 1;
    while (report.stage != released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      report.value = now();
      EXPECT_EQ(taccCommAbort(comm), taccSuccess);
    });
    report.result = allReduce(comm, large, libraryBuffer);
    aborter.join();
  });
  team.awaitStage(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  team.signal(0, SIGSTOP);
  team.report(2).stage = released;
  team.join(0);
  const Report& report = team.report(1);
  EXPECT_EQ(report.result, taccRemoteError) << report.message;
  EXPECT_LT(report.end - team.report(2).value, 0.5) << report.message;
  EXPECT_NE(std::string(report.message).find("taccCommAbort was called on rank 2"), std::string::npos)
      << report.message;
  expectEnded(report, 1);
  team.signal(0, SIGCONT);
}

struct Difference {
  const char* name;
  taccResult_t (*one)(taccComm_t comm);
  taccResult_t (*other)(taccComm_t comm);
  std::vector<const char*> words;  // that the message must hold
};

template <std::size_t count, taccDataType_t type = taccFloat32, taccRedOp_t op = taccSum>
taccResult_t sum(taccComm_t comm) {
  return taccAllReduce(privateBuffer(0), privateBuffer(1), count, type, op, comm, nullptr);
}
template <std::size_t count, int root>
taccResult_t spread(taccComm_t comm) {
  return taccBcast(privateBuffer(0), count, taccFloat32, root, comm, nullptr);
}
template <std::size_t count, int root>
taccResult_t reduceTo(taccComm_t comm) {
  return taccReduce(privateBuffer(0), privateBuffer(1), count, taccFloat32, taccSum, root, comm, nullptr);
}
taccResult_t meet(taccComm_t comm) { return taccBarrier(comm, nullptr); }

constexpr std::size_t many = large / 16;  // elements of any type fit the buffers

const Difference differences[] = {
    {"collectiveSmall", sum<4>, meet, {"allreduce", "barrier"}},
    {"collectiveLarge", sum<many>, spread<many, 0>, {"allreduce", "broadcast"}},
    {"countSmall", sum<4>, sum<5>, {"count 4", "count 5"}},
    {"countLarge", sum<many>, sum<many - 1>, {"count 196608", "count 196607"}},
    {"smallAndLarge", sum<4>, sum<many>, {"count 4", "count 196608"}},
    {"typeSmall", sum<4>, sum<4, taccInt32>, {"float", "int32"}},
    {"typeLarge", sum<many>, sum<many, taccInt32>, {"float", "int32"}},
    {"operationSmall", sum<4>, sum<4, taccFloat32, taccMax>, {"sum", "max"}},
    {"operationLarge", sum<many>, sum<many, taccFloat32, taccMax>, {"sum", "max"}},
    {"rootOfReduce", reduceTo<4, 0>, reduceTo<4, 1>, {"root 0", "root 1"}},
    {"rootOfBroadcast", spread<4, 0>, spread<4, 1>, {"root 0", "root 1"}},
    {"rootOfLargeBroadcast", spread<many, 0>, spread<many, 1>, {"root 0", "root 1"}},
    // Tiny calls that go one way wait for other words than the rest (CallNote).
    {"tinyBroadcastAndSum", spread<1, 0>, sum<1>, {"broadcast", "allreduce"}},
    {"sumAndTinyBroadcast", sum<1>, spread<1, 0>, {"broadcast", "allreduce"}},
    {"tinyBroadcastAndReduce", spread<1, 0>, reduceTo<1, 0>, {"broadcast", "reduce"}},
    {"tinyAndSmallBroadcast", spread<2, 0>, spread<3, 0>, {"count 2", "count 3"}},
    {"rootOfTinyBroadcast", spread<1, 0>, spread<1, 1>, {"root 0", "root 1"}},
    {"emptyAndFull", sum<0>, sum<4>, {"count 0", "count 4"}},
};

class Mismatch : public testing::TestWithParam<Difference> {
 protected:
  /// The last of `ranks` calls something else. The collectives that do not wait for all may notice in a call after.
  static void run(int ranks) {
    Team team(ranks, [ranks](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t comm = joinTeam(id, ranks, rank, configOf(20, 5));
      if (comm == nullptr) return;
      const Difference& difference = GetParam();
      const auto call = [&](taccComm_t c, int me) {
        const taccResult_t result = me == ranks - 1 ? difference.other(c) : difference.one(c);
        return result == taccSuccess ? meet(c) : result;
      };
      reportCall(comm, rank, call, report);
    });
    team.join();
    int found = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Report& report = team.report(rank);
      EXPECT_TRUE(report.result == taccInvalidUsage || report.result == taccRemoteError)
          << "rank " << rank << " of " << ranks << " has " << report.result << ": " << report.message;
      expectEnded(report, rank);
      if (report.result != taccInvalidUsage) continue;
      ++found;
      for (const char* word : GetParam().words)
        EXPECT_NE(std::string(report.message).find(word), std::string::npos) << word << " is not in " << report.message;
    }
    EXPECT_GE(found, 1) << "no rank of " << ranks << " says what was wrong";
  }
};

TEST_P(Mismatch, isAnErrorThatShowsBothCalls) {
  run(2);
  run(3);
}

INSTANTIATE_TEST_SUITE_P(Calls, Mismatch, testing::ValuesIn(differences),
                         [](const testing::TestParamInfo<Difference>& suite) { return suite.param.name; });

}  // namespace
}  // namespace tacc::test
