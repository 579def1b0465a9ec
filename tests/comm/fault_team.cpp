#include "fault_team.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "id_pipe.hpp"
#include "support/child_process.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

/// Of the test that runs.
int failures() {
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  int count = 0;
  for (int i = 0; i < result.total_part_count(); ++i)
    if (result.GetTestPartResult(i).failed()) ++count;
  return count;
}

int runChild(const Team::Body& body, const taccUniqueId& id, int rank, Report& report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int inherited = failures();
  body(id, rank, report);
  report.stage = 2;
  return failures() > inherited ? 1 : 0;
}

}  // namespace

void Report::setMessage(const char* text) {
  const std::size_t length = std::min(std::strlen(text), sizeof message - 1);
  std::memcpy(message, text, length);
  message[length] = '\0';
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

taccConfig_t configOf(double initTimeout, double operationTimeout) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.initTimeout = initTimeout;
  config.operationTimeout = operationTimeout;
  return config;
}

void Team::start(int ranks, int absent, const std::function<int(int rank)>& child) {
  void* shared = mmap(nullptr, static_cast<std::size_t>(ranks) * sizeof(Report), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  reports_ = static_cast<Report*>(shared);
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = rank == absent ? 0 : fork();
    if (pid == 0 && rank != absent) endAfter([&] { return child(rank); });
    if (pid < 0) ADD_FAILURE() << "fork failed for rank " << rank;
    children_.push_back(std::max(pid, 0));
  }
}

Team::Team(int ranks, const Body& body, int absent) {
  taccUniqueId id;
  EXPECT_EQ(taccGetUniqueId(&id), taccSuccess) << taccGetLastError(nullptr);
  start(ranks, absent, [&](int rank) { return runChild(body, id, rank, reports_[rank]); });
}

Team::Team(const VirtualCluster& cluster, const std::vector<int>& hosts, const Body& body) {
  const int ranks = static_cast<int>(hosts.size());
  const IdPipe ids;
  start(ranks, -1, [&](int rank) {
    cluster.enter(hosts[static_cast<std::size_t>(rank)]);
    return runChild(body, ids.pass(ranks, rank), rank, reports_[rank]);
  });
}

Team::~Team() {
  for (const pid_t child : children_) {
    if (child == 0) continue;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  munmap(reports_, children_.size() * sizeof(Report));
}

void Team::signal(int rank, int number) const { kill(children_[static_cast<std::size_t>(rank)], number); }

void Team::awaitStage(int stage, double seconds) {
  const double deadline = now() + seconds;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (children_[static_cast<std::size_t>(rank)] == 0) continue;
    while (reports_[rank].stage < stage && now() < deadline) nap();
    EXPECT_GE(reports_[rank].stage, stage) << "rank " << rank << " did not come to stage " << stage;
  }
}

void Team::join(int except, double seconds) {
  const double deadline = now() + seconds;
  for (int rank = 0; rank < ranks(); ++rank) {
    pid_t& child = children_[static_cast<std::size_t>(rank)];
    if (rank == except || child == 0) continue;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (now() > deadline) {
        ADD_FAILURE() << "rank " << rank << " hangs";
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        break;
      }
      nap();
    }
    child = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << " ended with status " << status;
  }
}

taccComm_t joinTeam(const taccUniqueId& id, int ranks, int rank, const taccConfig_t& config) {
  taccComm_t comm = nullptr;
  EXPECT_EQ(taccCommInitRankConfig(&comm, ranks, id, rank, &config), taccSuccess) << taccGetLastError(nullptr);
  return comm;
}

void reportCall(taccComm_t comm, int rank, const RankCall& call, Report& report) {
  report.start = now();
  report.stage = 1;
  report.result = call(comm, rank);
  report.end = now();
  report.setMessage(taccGetLastError(comm));
  report.later = call(comm, rank);
  report.laterSeconds = now() - report.end;
  EXPECT_EQ(taccCommGetAsyncError(comm, &report.async), taccSuccess);
  report.destroyed = taccCommDestroy(comm);
}

void waitToBeKilled(Report& report) {
  report.stage = 1;
  for (;;) pause();
}

}  // namespace tacc::test
