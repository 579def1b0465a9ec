// Ranks on several hosts that die, stop, are cut off, or call different things: the others say so, and go on without.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fault_team.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t large = 1 << 20;             // elements
const double promptSeconds = isQuick() ? 4 : 1.5;  // a death is known at once, and told to all

float* buffer(int which) {
  static std::vector<float> buffers[2] = {std::vector<float>(large, 1.0f), std::vector<float>(large, 1.0f)};
  return buffers[which].data();
}

taccResult_t allReduce(taccComm_t comm, std::size_t count) {
  return taccAllReduce(buffer(0), buffer(1), count, taccFloat32, taccSum, comm, nullptr);
}

struct NamedCall {
  const char* name;
  RankCall call;
};

const std::vector<NamedCall>& calls() {
  static const std::vector<NamedCall> all = {
      {"smallAllreduce", [](taccComm_t c, int) { return allReduce(c, 2); }},
      {"largeAllreduce", [](taccComm_t c, int) { return allReduce(c, large); }},
      {"broadcast",
       [](taccComm_t c, int) { return taccBroadcast(buffer(0), buffer(1), large, taccFloat32, 1, c, nullptr); }},
      {"reduce",
       [](taccComm_t c, int) { return taccReduce(buffer(0), buffer(1), large, taccFloat32, taccSum, 1, c, nullptr); }},
      {"allgather",
       [](taccComm_t c, int) { return taccAllGather(buffer(0), buffer(1), large / 8, taccFloat32, c, nullptr); }},
      {"reduceScatter",
       [](taccComm_t c, int) {
         return taccReduceScatter(buffer(0), buffer(1), large / 8, taccFloat32, taccSum, c, nullptr);
       }},
      {"alltoall",
       [](taccComm_t c, int) { return taccAllToAll(buffer(0), buffer(1), large / 8, taccFloat32, c, nullptr); }},
      {"gather",
       [](taccComm_t c, int) { return taccGather(buffer(0), buffer(1), large / 8, taccFloat32, 1, c, nullptr); }},
      {"scatter",
       [](taccComm_t c, int) { return taccScatter(buffer(0), buffer(1), large / 8, taccFloat32, 1, c, nullptr); }},
      {"barrier", [](taccComm_t c, int) { return taccBarrier(c, nullptr); }},
  };
  return all;
}

/// All calls in turn, until one fails.
taccResult_t streamOfCalls(taccComm_t comm, int rank) {
  for (std::size_t i = 0;; ++i)
    if (const taccResult_t result = calls()[i % calls().size()].call(comm, rank); result != taccSuccess) return result;
}

/// The same call until it fails: a rooted one may succeed on some ranks without the lost one.
RankCall untilFailure(const RankCall& call) {
  return [&call](taccComm_t comm, int rank) {
    for (;;)
      if (const taccResult_t result = call(comm, rank); result != taccSuccess) return result;
  };
}

class HostFaults : public HostRanksTest {
 protected:
  /// Joins, makes one good call if `warm`, then `call`; the victim only waits.
  Team::Body body(int victim, double operationTimeout, const RankCall& call, bool warm = true) const {
    return [this, victim, operationTimeout, &call, warm](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, operationTimeout));
      if (comm == nullptr) return;
      if (warm) {
        EXPECT_EQ(allReduce(comm, 3), taccSuccess) << taccGetLastError(comm);
      }
      if (rank == victim) waitToBeKilled(report);
      reportCall(comm, rank, call, report);
    };
  }
  void expectAllName(const Team& team, int victim, double since, double seconds) const {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == victim) continue;
      const Report& report = team.report(rank);
      EXPECT_TRUE(report.result == taccRemoteError || report.result == taccTimeout)
          << "rank " << rank << ": " << report.result << " " << report.message;
      EXPECT_NE(std::string(report.message).find("rank " + std::to_string(victim)), std::string::npos)
          << "rank " << rank << ": " << report.message;
      EXPECT_LT(report.end - since, seconds) << "rank " << rank << ": " << report.message;
      EXPECT_NE(report.later, taccSuccess) << "rank " << rank;
      EXPECT_NE(report.async, taccSuccess) << "rank " << rank;
      EXPECT_EQ(report.destroyed, taccSuccess) << "rank " << rank;
    }
  }
};

/// Those that need a network.
class NetworkFaults : public HostFaults {};

/// A host that is cut off for as long as this lives: the next test has the same hosts.
struct Unplugged {
  Unplugged(const VirtualCluster& among, int number) : cluster(among), host(number) {
    cluster.unplug(host);
    since = now();
  }
  Unplugged(const Unplugged&) = delete;
  Unplugged& operator=(const Unplugged&) = delete;
  ~Unplugged() { cluster.plug(host); }

  const VirtualCluster& cluster;
  int host;
  double since = 0;
};

TEST_P(HostFaults, aKilledRankIsNamedInEveryCall) {
  int victim = 0;
  for (const NamedCall& named : calls()) {
    victim = (victim + 1) % ranks();
    const RankCall repeated = untilFailure(named.call);
    Team team(fourHosts(), hosts(), body(victim, 60, repeated));
    team.awaitStage(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    expectAllName(team, victim, killed, promptSeconds);
    if (HasFailure()) FAIL() << named.name;
  }
}

TEST_P(HostFaults, aRankKilledAtAnyMomentIsNamed) {
  for (int repetition = 0; repetition < (isQuick() ? 2 : 8); ++repetition) {
    const int victim = repetition % ranks();
    Team team(fourHosts(), hosts(), body(-1, 60, streamOfCalls));
    team.awaitStage(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 17 * repetition));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    expectAllName(team, victim, killed, promptSeconds);
    if (HasFailure()) FAIL() << "repetition " << repetition;
  }
}

TEST_P(HostFaults, aStoppedRankIsNamed) {
  for (const int victim : {0, ranks() - 1})
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      Team team(fourHosts(), hosts(), body(victim, 1, calls()[which].call));
      team.awaitStage(1);
      const double stopped = now();
      team.signal(victim, SIGSTOP);
      team.join(victim);
      expectAllName(team, victim, stopped, isQuick() ? 5 : 2.2);
      team.signal(victim, SIGCONT);
      if (HasFailure()) FAIL() << "victim " << victim << " in " << calls()[which].name;
    }
}

TEST_P(NetworkFaults, anUnpluggedHostIsNamed) {
  const int victim = ranks() - 1;
  const int host = hosts().back();
  Team team(fourHosts(), hosts(), body(-1, 1, streamOfCalls));
  team.awaitStage(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Unplugged unplugged(fourHosts(), host);
  team.join(-1, 20);
  const bool hasOthers = std::count(hosts().begin(), hosts().end(), host) > 1;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Report& report = team.report(rank);
    EXPECT_TRUE(report.result == taccRemoteError || report.result == taccTimeout) << report.message;
    EXPECT_LT(report.end - unplugged.since, isQuick() ? 5 : 2.5) << "rank " << rank << ": " << report.message;
    // Those who are cut off can only tell that rank 0 is.
    const int named = hosts()[static_cast<std::size_t>(rank)] == host ? 0 : victim;
    const bool isNamed = std::string(report.message).find("rank " + std::to_string(named)) != std::string::npos;
    EXPECT_TRUE(isNamed || (hasOthers && hosts()[static_cast<std::size_t>(rank)] != host))
        << "rank " << rank << ": " << report.message;
  }
}

/// What a host sends to another is lost for as long as this lives: it goes to a network card that nobody has.
class Misdirected {
 public:
  Misdirected(const VirtualCluster& cluster, int from, int to) : cluster_(cluster), from_(from), to_(to) {
    EXPECT_TRUE(changeNeighbour("replace", " lladdr 02:00:00:00:00:01 nud permanent"));
  }
  Misdirected(const Misdirected&) = delete;
  Misdirected& operator=(const Misdirected&) = delete;
  ~Misdirected() { EXPECT_TRUE(changeNeighbour("del", "")); }

 private:
  bool changeNeighbour(const char* verb, const char* how) const {
    const std::string command = fmt::format("ip neigh {} {} dev eth0{}", verb, VirtualCluster::address(to_), how);
    ChildProcess child([&] {
      cluster_.enter(from_);
      return std::system(command.c_str()) == 0;
    });
    return child.wait() == 0;
  }

  const VirtualCluster& cluster_;
  int from_, to_;
};

/// Where frames are lost between two hosts alone, over TCP, which knows it.
class LostFrames : public HostFaults {};

TEST_P(LostFrames, aPairOfHostsThatLoseOnlyEachOtherIsNamed) {
  // Seconds: a frame that is lost is sent for the third time after 0.6 to 0.8.
  constexpr double timeout = 2;
  Team team(fourHosts(), hosts(), body(-1, timeout, streamOfCalls));
  team.awaitStage(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const Misdirected forth(fourHosts(), 2, 3), back(fourHosts(), 3, 2);
  team.join(-1, 20);
  const std::string told = team.report(0).message;
  EXPECT_NE(told.find("loses what is sent between rank 1 (process"), std::string::npos) << told;
  EXPECT_NE(told.find("on host tacc2) and rank 2 (process"), std::string::npos) << told;
}

TEST_P(HostFaults, callsThatDifferAreNamed) {
  for (const std::size_t count : {std::size_t{4}, large}) {
    const RankCall call = [count](taccComm_t c, int rank) {
      return rank == 1 ? taccAllReduce(buffer(0), buffer(1), count, taccInt32, taccSum, c, nullptr)
                       : allReduce(c, count);
    };
    Team team(fourHosts(), hosts(), body(-1, 20, call, false));
    team.join();
    int usage = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
      const Report& report = team.report(rank);
      usage += report.result == taccInvalidUsage ? 1 : 0;
      EXPECT_TRUE(report.result == taccInvalidUsage || report.result == taccRemoteError) << report.message;
      const std::string message = report.message;
      EXPECT_NE(message.find("float"), std::string::npos) << "rank " << rank << ": " << message;
      EXPECT_NE(message.find("int32"), std::string::npos) << "rank " << rank << ": " << message;
    }
    EXPECT_GE(usage, 1);
  }
}

TEST_P(HostFaults, abortEndsBlockedCallsOnAllHosts) {
  const int last = ranks() - 1;
  Team team(fourHosts(), hosts(), [this, last](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, 60));
    if (comm == nullptr) return;
    if (rank == 1) waitToBeKilled(report);  // never comes, so that the others wait
    const RankCall call = [](taccComm_t c, int) { return allReduce(c, large); };
    if (rank != last) return reportCall(comm, rank, call, report);
    std::thread aborter([&] {
      // Before the call has begun it would be another error; ThreadSanitizer takes a while to begin it.
      std::this_thread::sleep_for(std::chrono::milliseconds(800));
      report.value = now();
      EXPECT_EQ(taccCommAbort(comm), taccSuccess);
    });
    report.stage = 1;
    report.result = call(comm, rank);
    report.end = now();
    aborter.join();
  });
  team.join(1);
  const double aborted = team.report(last).value;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == 1) continue;
    EXPECT_EQ(team.report(rank).result, taccRemoteError) << "rank " << rank << ": " << team.report(rank).message;
    EXPECT_LT(team.report(rank).end - aborted, promptSeconds) << "rank " << rank;
    if (rank != last) {
      EXPECT_NE(std::string(team.report(rank).message).find("taccCommAbort"), std::string::npos)
          << team.report(rank).message;
    }
  }
}

/// One rank joins without blocking and aborts at some moment of joining, or after it.
TEST_P(HostFaults, anAbortWhileJoiningIsTold) {
  for (int repetition = 0; repetition < (isQuick() ? 2 : 12); ++repetition) {
    const int aborter = repetition % ranks();
    Team team(fourHosts(), hosts(), [&](const taccUniqueId& id, int rank, Report& report) {
      taccConfig_t config = configOf(20, 20);
      config.blocking = rank == aborter ? 0 : 1;
      taccComm_t comm = nullptr;
      report.start = now();
      report.result = taccCommInitRankConfig(&comm, ranks(), id, rank, &config);
      if (rank == aborter) {
        EXPECT_EQ(report.result, taccInProgress) << taccGetLastError(nullptr);
        std::this_thread::sleep_for(std::chrono::milliseconds(9 * repetition));
        EXPECT_EQ(taccCommAbort(comm), taccSuccess) << taccGetLastError(nullptr);
        return;
      }
      report.setMessage(taccGetLastError(nullptr));
      if (comm != nullptr) {
        report.result = allReduce(comm, 3);
        report.setMessage(taccGetLastError(comm));
        EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
      }
      report.end = now();
    });
    team.join();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == aborter) continue;
      const Report& report = team.report(rank);
      EXPECT_EQ(report.result, taccRemoteError) << "rank " << rank << ": " << report.message;
      EXPECT_NE(std::string(report.message).find("rank " + std::to_string(aborter)), std::string::npos)
          << "rank " << rank << ": " << report.message;
      EXPECT_LT(report.end - report.start, 6) << "rank " << rank << ": " << report.message;
    }
    if (HasFailure()) FAIL() << "repetition " << repetition;
  }
}

TEST_P(NetworkFaults, asyncErrorTellsARankThatIsInNoCall) {
  const int victim = ranks() - 1;
  Team team(fourHosts(), hosts(), [this, victim](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, 60));
    if (comm == nullptr) return;
    EXPECT_EQ(allReduce(comm, 3), taccSuccess);
    taccResult_t result = taccInternalError;
    EXPECT_EQ(taccCommGetAsyncError(comm, &result), taccSuccess);
    EXPECT_EQ(result, taccSuccess);
    if (rank == victim) waitToBeKilled(report);
    report.stage = 1;
    while (result == taccSuccess) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(taccCommGetAsyncError(comm, &result), taccSuccess);
    }
    report.end = now();
    EXPECT_EQ(result, taccRemoteError);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.awaitStage(1);
  const double killed = now();
  team.signal(victim, SIGKILL);
  team.join(victim);
  for (int rank = 0; rank < victim; ++rank) EXPECT_LT(team.report(rank).end - killed, promptSeconds);
}

TEST_P(HostFaults, survivorsShrinkAndGoOn) {
  for (const int victim : {0, ranks() - 1}) {
    Team team(fourHosts(), hosts(), [this, victim](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, 60));
      if (comm == nullptr) return;
      EXPECT_EQ(allReduce(comm, 3), taccSuccess);
      if (rank == victim) waitToBeKilled(report);
      report.stage = 1;
      EXPECT_NE(streamOfCalls(comm, rank), taccSuccess);
      taccComm_t smaller = nullptr;
      ASSERT_EQ(taccCommShrink(comm, nullptr, 0, &smaller, nullptr, 0), taccSuccess) << taccGetLastError(comm);
      EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
      int left = 0, place = -1;
      EXPECT_EQ(taccCommCount(smaller, &left), taccSuccess);
      EXPECT_EQ(taccCommUserRank(smaller, &place), taccSuccess);
      EXPECT_EQ(left, ranks() - 1);
      EXPECT_EQ(place, rank > victim ? rank - 1 : rank);
      for (const std::size_t count : {std::size_t{3}, large}) {
        std::fill_n(buffer(0), count, static_cast<float>(rank + 1));
        EXPECT_EQ(allReduce(smaller, count), taccSuccess) << taccGetLastError(smaller);
        const int all = ranks() * (ranks() + 1) / 2 - (victim + 1);
        EXPECT_EQ(std::count(buffer(1), buffer(1) + count, static_cast<float>(all)), static_cast<long>(count));
      }
      EXPECT_EQ(taccCommDestroy(smaller), taccSuccess);
    });
    team.awaitStage(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    team.signal(victim, SIGKILL);
    team.join(victim);
    if (HasFailure()) FAIL() << "victim " << victim;
  }
}

TEST_P(HostFaults, revokeTellsAllAndShrinkLeavesOutWhomItShall) {
  Team team(fourHosts(), hosts(), [this](const taccUniqueId& id, int rank, Report&) {
    taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, 60));
    if (comm == nullptr) return;
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ(taccCommRevoke(comm), taccSuccess);
    }
    EXPECT_EQ(allReduce(comm, large), taccRemoteError);
    EXPECT_NE(std::string(taccGetLastError(comm)).find("rank 0"), std::string::npos) << taccGetLastError(comm);
    const int excluded = 1;
    if (rank != excluded) {
      taccComm_t smaller = nullptr;
      ASSERT_EQ(taccCommShrink(comm, &excluded, 1, &smaller, nullptr, 0), taccSuccess) << taccGetLastError(comm);
      EXPECT_EQ(allReduce(smaller, 5), taccSuccess) << taccGetLastError(smaller);
      EXPECT_EQ(taccCommDestroy(smaller), taccSuccess);
    }
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join();
}

INSTANTIATE_TEST_SUITE_P(Layouts, NetworkFaults,
                         testing::Values(Layout{"oneEach", {1, 2, 3, 4}}, Layout{"blocks", {1, 1, 2, 2}}), layoutName);
INSTANTIATE_TEST_SUITE_P(Layouts, LostFrames, testing::Values(Layout{"oneEach", {1, 2, 3, 4}}), layoutName);
INSTANTIATE_TEST_SUITE_P(Layouts, HostFaults,
                         testing::Values(Layout{"oneEach", {1, 2, 3, 4}}, Layout{"blocks", {1, 1, 2, 2}},
                                         Layout{"oneHost", {1, 1, 1}}),
                         layoutName);

}  // namespace
}  // namespace tacc::test
