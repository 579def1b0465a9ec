// Ranks that fork, as data loaders do: a child keeps no connection of its parent open, acts for nobody, and may use the
// library for itself.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fault_team.hpp"
#include "support/child_process.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

// GCC's AddressSanitizer does not take its allocator's locks before fork(): where another thread allocates meanwhile,
// they stay taken in the child. It also takes what threads of the parent own for leaks there.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool canAllocateInChildren = false;
#else
constexpr bool canAllocateInChildren = true;
#endif

constexpr int patience = 60;  // seconds; far more than anything here takes
constexpr std::size_t large = 1 << 20;

taccResult_t sum(taccComm_t comm, std::size_t count = 3) {
  static std::vector<float> buffers[2] = {std::vector<float>(large, 1.0f), std::vector<float>(large)};
  return taccAllReduce(buffers[0].data(), buffers[1].data(), count, taccFloat32, taccSum, comm, nullptr);
}

/// A child that does nothing but live; it ends with the test at the latest.
pid_t forkIdleChild() {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(patience);
  for (;;) pause();
}

/// Runs `body` in a child of this process, which has to end by itself, and well.
void inChild(const std::function<void()>& body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    endAfter([&] {
      alarm(20);  // a hang is a failure
      body();
      std::fflush(nullptr);
      // Not _exit(), at which a sanitizer looks for leaks: what the parent's other threads owned has no owner here.
      return static_cast<int>(::syscall(SYS_exit_group, testing::Test::HasFailure() ? 1 : 0));
    });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with status " << status;
}

class Forked : public HostRanksTest {};

TEST_P(Forked, aChildDoesNotKeepADeadRankAlive) {
  for (const int victim : {0, ranks() - 1}) {
    Team team(fourHosts(), hosts(), [this, victim](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, patience));
      ASSERT_EQ(sum(comm), taccSuccess) << taccGetLastError(comm);
      ASSERT_EQ(sum(comm, large), taccSuccess) << taccGetLastError(comm);
      if (rank == victim) {
        report.value = forkIdleChild();
        waitToBeKilled(report);
      }
      report.stage = 1;
      report.result = sum(comm, large);
      report.end = now();
      report.setMessage(taccGetLastError(comm));
      taccComm_t smaller = nullptr;
      ASSERT_EQ(taccCommShrink(comm, nullptr, 0, &smaller, nullptr, 0), taccSuccess) << taccGetLastError(comm);
      report.laterSeconds = now() - report.end;
      int left = 0;
      EXPECT_EQ(taccCommCount(smaller, &left), taccSuccess);
      EXPECT_EQ(left, ranks() - 1);
      EXPECT_EQ(sum(smaller), taccSuccess) << taccGetLastError(smaller);
      EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
      EXPECT_EQ(taccCommDestroy(smaller), taccSuccess);
    });
    team.awaitStage(1);
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    double known = 0, shrunk = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == victim) continue;
      const Report& report = team.report(rank);
      EXPECT_EQ(report.result, taccRemoteError) << report.message;
      EXPECT_NE(std::string(report.message).find("rank " + std::to_string(victim)), std::string::npos)
          << report.message;
      known = std::max(known, report.end - killed);
      shrunk = std::max(shrunk, report.laterSeconds);
    }
    std::printf("rank %d killed: known after %.3f s, shrunk in %.3f s\n", victim, known, shrunk);
    EXPECT_LT(known, isQuick() ? 4 : 1.5);
    EXPECT_LT(shrunk, isQuick() ? 10 : 4);
    kill(static_cast<pid_t>(team.report(victim).value), SIGKILL);
  }
}

/// What a rank has, and a child of it must not use.
struct Inherited {
  taccComm_t comm, joining;
  taccStream_t stream;
  taccBucket_t bucket;
  void *memory, *registration;
};

/// Every function of the interface that takes a handle.
std::vector<std::pair<const char*, std::function<taccResult_t()>>> callsOn(const Inherited& has) {
  static float data[64];
  static taccResult_t error;
  static int number;
  static std::size_t bytes;
  static taccComm_t made;
  static taccBucket_t bucket;
  static void* handle;
  static taccRedOp_t op;
  const taccComm_t c = has.comm;
  const auto type = taccFloat32;
  return {
      {"taccAllReduce", [=] { return taccAllReduce(data, data, 1, type, taccSum, c, nullptr); }},
      {"taccAllReduce on a stream", [=] { return taccAllReduce(data, data, 1, type, taccSum, c, has.stream); }},
      {"taccBroadcast", [=] { return taccBroadcast(data, data, 1, type, 0, c, nullptr); }},
      {"taccBcast", [=] { return taccBcast(data, 1, type, 0, c, nullptr); }},
      {"taccReduce", [=] { return taccReduce(data, data, 1, type, taccSum, 0, c, nullptr); }},
      {"taccAllGather", [=] { return taccAllGather(data, data + 1, 1, type, c, nullptr); }},
      {"taccReduceScatter", [=] { return taccReduceScatter(data, data + 32, 1, type, taccSum, c, nullptr); }},
      {"taccAllToAll", [=] { return taccAllToAll(data, data + 32, 1, type, c, nullptr); }},
      {"taccGather", [=] { return taccGather(data, data + 32, 1, type, 0, c, nullptr); }},
      {"taccScatter", [=] { return taccScatter(data, data + 32, 1, type, 0, c, nullptr); }},
      {"taccBarrier", [=] { return taccBarrier(c, nullptr); }},
      {"taccSend", [=] { return taccSend(data, 1, type, 0, c, nullptr); }},
      {"taccRecv", [=] { return taccRecv(data, 1, type, 0, c, nullptr); }},
      {"taccCommSplit", [=] { return taccCommSplit(c, 0, 0, &made, nullptr); }},
      {"taccCommShrink", [=] { return taccCommShrink(c, nullptr, 0, &made, nullptr, 0); }},
      {"taccCommRevoke", [=] { return taccCommRevoke(c); }},
      {"taccCommAbort", [=] { return taccCommAbort(c); }},
      {"taccCommFinalize", [=] { return taccCommFinalize(c); }},
      {"taccCommDestroy", [=] { return taccCommDestroy(c); }},
      {"taccCommGetAsyncError", [=] { return taccCommGetAsyncError(c, &error); }},
      {"taccCommCount", [=] { return taccCommCount(c, &number); }},
      {"taccCommUserRank", [=] { return taccCommUserRank(c, &number); }},
      {"taccCommRegister", [=] { return taccCommRegister(c, data, sizeof data, &handle); }},
      {"taccCommDeregister", [=] { return taccCommDeregister(c, has.registration); }},
      {"taccRedOpCreatePreMulSum",
       [=] { return taccRedOpCreatePreMulSum(&op, data, type, taccScalarHostImmediate, c); }},
      {"taccRedOpDestroy", [=] { return taccRedOpDestroy(taccSum, c); }},
      {"taccExplain", [=] { return taccExplain(c, "allreduce", 8) == nullptr ? taccInvalidUsage : taccSuccess; }},
      {"taccCommLastAlgorithm", [=] { return *taccCommLastAlgorithm(c) == '\0' ? taccInvalidUsage : taccSuccess; }},
      {"taccBucketCreate", [=] { return taccBucketCreate(&bucket, c, nullptr, 0); }},
      {"taccBucketAdd", [=] { return taccBucketAdd(has.bucket, data, 1, type, taccSum); }},
      {"taccBucketFlush", [=] { return taccBucketFlush(has.bucket); }},
      {"taccBucketBytes", [=] { return taccBucketBytes(has.bucket, &bytes); }},
      {"taccBucketDestroy", [=] { return taccBucketDestroy(has.bucket); }},
      {"taccStreamQuery", [=] { return taccStreamQuery(has.stream); }},
      {"taccStreamSynchronize", [=] { return taccStreamSynchronize(has.stream); }},
      {"taccStreamDestroy", [=] { return taccStreamDestroy(has.stream); }},
      {"taccMemFree", [=] { return taccMemFree(has.memory); }},
      {"taccCommGetAsyncError while joining", [=] { return taccCommGetAsyncError(has.joining, &error); }},
      {"taccCommAbort while joining", [=] { return taccCommAbort(has.joining); }},
      {"taccCommDestroy while joining", [=] { return taccCommDestroy(has.joining); }},
  };
}

TEST_P(Forked, aChildIsRefusedEveryCall) {
  if (!canAllocateInChildren) GTEST_SKIP() << "this sanitizer's allocator may stay locked in a child";
  Team team(fourHosts(), hosts(), [this](const taccUniqueId& id, int rank, Report&) {
    Inherited has{};
    has.comm = joinTeam(id, ranks(), rank, configOf(20, patience));
    ASSERT_EQ(taccStreamCreate(&has.stream), taccSuccess);
    ASSERT_EQ(taccBucketCreate(&has.bucket, has.comm, has.stream, 4096), taccSuccess);
    ASSERT_EQ(taccMemAlloc(&has.memory, 8192), taccSuccess);
    std::vector<float> buffer(100'000, 1.0f);
    ASSERT_EQ(taccCommRegister(has.comm, buffer.data(), buffer.size() * sizeof(float), &has.registration), taccSuccess);
    taccUniqueId never;
    taccConfig_t config = configOf(20, patience);
    config.blocking = 0;
    ASSERT_EQ(taccGetUniqueId(&never), taccSuccess);
    ASSERT_EQ(taccCommInitRankConfig(&has.joining, 2, never, 1, &config), taccInProgress);
    // The stream has work when the process forks: it waits for the last rank.
    float value = 1;
    if (rank != ranks() - 1) {
      ASSERT_EQ(taccAllReduce(&value, &value, 1, taccFloat32, taccSum, has.comm, has.stream), taccSuccess);
    }
    inChild([&] {
      for (const auto& [name, call] : callsOn(has)) {
        const double start = now();
        EXPECT_EQ(call(), taccInvalidUsage) << name << ": " << taccGetLastError(nullptr);
        EXPECT_LT(now() - start, 1) << name;
        EXPECT_NE(std::string(taccGetLastError(has.comm)).find("forked"), std::string::npos)
            << name << ": " << taccGetLastError(has.comm);
      }
    });
    // A child that ends with exit() and all its destructors.
    const pid_t leaver = fork();
    if (leaver == 0) std::exit(0);
    int status = 0;
    EXPECT_EQ(waitpid(leaver, &status, 0), leaver);
    EXPECT_EQ(status, 0);
    if (rank == ranks() - 1) {
      ASSERT_EQ(taccAllReduce(&value, &value, 1, taccFloat32, taccSum, has.comm, has.stream), taccSuccess);
    }
    EXPECT_EQ(taccStreamSynchronize(has.stream), taccSuccess) << taccGetLastError(nullptr);
    EXPECT_EQ(value, static_cast<float>(ranks()));
    EXPECT_EQ(sum(has.comm, large), taccSuccess) << taccGetLastError(has.comm);
    EXPECT_EQ(taccCommAbort(has.joining), taccSuccess);
    EXPECT_EQ(taccCommDeregister(has.comm, has.registration), taccSuccess);
    EXPECT_EQ(taccMemFree(has.memory), taccSuccess);
    EXPECT_EQ(taccBucketDestroy(has.bucket), taccSuccess) << taccGetLastError(has.comm);
    EXPECT_EQ(taccStreamDestroy(has.stream), taccSuccess);
    EXPECT_EQ(taccCommDestroy(has.comm), taccSuccess) << taccGetLastError(nullptr);
  });
  team.join(-1, patience);
}

/// What a program has open that this process execs, as links of /proc.
std::multiset<std::string> openAfterExec() {
  std::multiset<std::string> open;
  FILE* const list = popen("exec ls -l /proc/self/fd", "r");
  if (list == nullptr) return open;
  for (char line[512]; std::fgets(line, sizeof line, list) != nullptr;) {
    const std::string text = line;
    const std::size_t arrow = text.find(" -> ");
    // `ls` itself has the directory, and the pipe to this process.
    if (arrow == std::string::npos || text.find("/proc/") != std::string::npos ||
        text.find("pipe:") != std::string::npos)
      continue;
    open.insert(text.substr(arrow));
  }
  pclose(list);
  return open;
}

TEST_P(Forked, nothingIsOpenAfterExec) {
  Team team(fourHosts(), hosts(), [this](const taccUniqueId& id, int rank, Report&) {
    const auto before = openAfterExec();
    taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, patience));
    void* memory = nullptr;
    ASSERT_EQ(taccMemAlloc(&memory, large * sizeof(float)), taccSuccess);
    auto* data = static_cast<float*>(memory);
    EXPECT_EQ(taccAllReduce(data, data, large, taccFloat32, taccSum, comm, nullptr), taccSuccess);
    EXPECT_EQ(openAfterExec(), before);
    EXPECT_EQ(sum(comm), taccSuccess);
    EXPECT_EQ(taccMemFree(memory), taccSuccess);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, patience);
}

/// Threads, processes and streams of a child's own.
void useTheLibrary() {
  std::vector<taccComm_t> comms(2);
  ASSERT_EQ(taccCommInitAll(comms.data(), 2, nullptr), taccSuccess) << taccGetLastError(nullptr);
  taccStream_t stream = nullptr;
  ASSERT_EQ(taccStreamCreate(&stream), taccSuccess) << taccGetLastError(nullptr);
  float values[2] = {1, 2};
  EXPECT_EQ(taccAllReduce(&values[0], &values[0], 1, taccFloat32, taccSum, comms[0], stream), taccSuccess);
  EXPECT_EQ(taccAllReduce(&values[1], &values[1], 1, taccFloat32, taccSum, comms[1], nullptr), taccSuccess);
  EXPECT_EQ(taccStreamSynchronize(stream), taccSuccess);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[1], 3);
  EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
  for (taccComm_t comm : comms) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  taccUniqueId id;
  ASSERT_EQ(taccGetUniqueId(&id), taccSuccess);
  const auto asRank = [&](int rank) {
    taccComm_t comm = joinTeam(id, 2, rank, configOf(20, patience));
    void* memory = nullptr;
    ASSERT_EQ(taccMemAlloc(&memory, 4096), taccSuccess) << taccGetLastError(nullptr);
    auto* data = static_cast<float*>(memory);
    data[0] = 4;
    EXPECT_EQ(taccAllReduce(data, data, 1024, taccFloat32, taccSum, comm, nullptr), taccSuccess)
        << taccGetLastError(comm);
    EXPECT_EQ(data[0], 8);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    EXPECT_EQ(taccMemFree(memory), taccSuccess);
  };
  const pid_t other = fork();
  if (other == 0)
    endAfter([&] {
      asRank(1);
      return testing::Test::HasFailure() ? 1 : 0;
    });
  asRank(0);
  int status = 0;
  EXPECT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

TEST_P(Forked, childrenHaveCommunicatorsOfTheirOwnWhileTheParentGoesOn) {
  Team team(fourHosts(), hosts(), [this](const taccUniqueId& id, int rank, Report&) {
    taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, patience));
    std::vector<pid_t> children;
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(sum(comm, large), taccSuccess) << taccGetLastError(comm);
      const pid_t child = fork();
      if (child == 0)
        endAfter([] {
          alarm(30);
          useTheLibrary();
          return testing::Test::HasFailure() ? 1 : 0;
        });
      children.push_back(child);
    }
    for (int i = 0; i < 100; ++i) EXPECT_EQ(sum(comm), taccSuccess) << taccGetLastError(comm);
    for (const pid_t child : children) {
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, 2 * patience);
}

/// One thread forks again and again while others are inside calls, make and end handles, and take memory.
TEST_P(Forked, forksAmongCallsOfOtherThreadsLoseNothing) {
  if (!canAllocateInChildren) GTEST_SKIP() << "this sanitizer's allocator may stay locked in a child";
  Team team(fourHosts(), hosts(), [this](const taccUniqueId& id, int rank, Report&) {
    taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, patience));
    std::atomic<bool> ends{false};
    std::thread maker([&] {
      while (!ends.load(std::memory_order_relaxed)) {
        taccStream_t stream = nullptr;
        EXPECT_EQ(taccStreamCreate(&stream), taccSuccess);
        EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
        void* memory = nullptr;
        EXPECT_EQ(taccMemAlloc(&memory, 100), taccSuccess);
        EXPECT_EQ(taccMemFree(memory), taccSuccess);
        taccComm_t own = nullptr;
        EXPECT_EQ(taccCommInitAll(&own, 1, nullptr), taccSuccess);
        EXPECT_EQ(taccCommDestroy(own), taccSuccess);
      }
    });
    // All ranks end after the same number of calls.
    std::atomic<int> calls{0};
    std::thread caller([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(sum(comm, i % 2 == 0 ? 3 : large / 8), taccSuccess) << taccGetLastError(comm);
        calls.fetch_add(1);
      }
    });
    for (int round = 0; round < (isQuick() ? 10 : 40); ++round)
      inChild([&] {
        taccResult_t error = taccSuccess;
        EXPECT_EQ(taccCommGetAsyncError(comm, &error), taccInvalidUsage);
        std::vector<taccComm_t> comms(2);
        EXPECT_EQ(taccCommInitAll(comms.data(), 2, nullptr), taccSuccess) << taccGetLastError(nullptr);
        void* memory = nullptr;
        EXPECT_EQ(taccMemAlloc(&memory, 100), taccSuccess);
        EXPECT_EQ(taccMemFree(memory), taccSuccess);
      });
    caller.join();
    ends = true;
    maker.join();
    EXPECT_EQ(calls.load(), 200);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, 2 * patience);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Forked,
                         testing::Values(Layout{"oneEach", {1, 2, 3}}, Layout{"blocks", {1, 1, 2, 2}},
                                         Layout{"oneHost", {1, 1, 1}}),
                         layoutName);

}  // namespace
}  // namespace tacc::test
