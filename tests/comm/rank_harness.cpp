#include "rank_harness.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "id_pipe.hpp"
#include "support/child_process.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

void runThreads(int ranks, const std::function<void(taccComm_t, int)>& body) {
  std::vector<taccComm_t> comms(static_cast<std::size_t>(ranks));
  ASSERT_EQ(taccCommInitAll(comms.data(), ranks, nullptr), taccSuccess) << taccGetLastError(nullptr);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { body(comms[static_cast<std::size_t>(rank)], rank); });
  for (std::thread& thread : threads) thread.join();
  for (taccComm_t comm : comms) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

int runChild(const taccUniqueId& id, int ranks, int rank, const taccConfig_t& config,
             const std::function<void(taccComm_t, int)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  taccComm_t comm = nullptr;
  EXPECT_EQ(taccCommInitRankConfig(&comm, ranks, id, rank, &config), taccSuccess) << taccGetLastError(nullptr);
  if (comm != nullptr) {
    body(comm, rank);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

void collect(const std::vector<pid_t>& children) {
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << " ended with status " << status;
  }
}

void runProcesses(int ranks, const std::function<void(taccComm_t, int)>& body, const taccConfig_t& config) {
  taccUniqueId id;
  ASSERT_EQ(taccGetUniqueId(&id), taccSuccess) << taccGetLastError(nullptr);
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) endAfter([&] { return runChild(id, ranks, rank, config, body); });
    children.push_back(child);
  }
  collect(children);
}

}  // namespace

void runOnHosts(const VirtualCluster& cluster, const std::vector<int>& hosts,
                const std::function<void(taccComm_t, int)>& body, const taccConfig_t& config,
                const std::function<void(int)>& before) {
  const int ranks = static_cast<int>(hosts.size());
  const IdPipe ids;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      endAfter([&] {
        cluster.enter(hosts[static_cast<std::size_t>(rank)]);
        if (before) before(rank);
        return runChild(ids.pass(ranks, rank), ranks, rank, config, body);
      });
    }
    children.push_back(child);
  }
  collect(children);
}

std::vector<std::string> initErrorsOnHosts(const VirtualCluster& cluster, const std::vector<int>& hosts,
                                           const std::function<void(int)>& before) {
  const int ranks = static_cast<int>(hosts.size());
  const IdPipe ids;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  std::vector<FILE*> answers;
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = fork();
    if (child == 0) {
      endAfter([&] {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cluster.enter(hosts[static_cast<std::size_t>(rank)]);
        before(rank);
        taccComm_t comm = nullptr;
        const taccResult_t result = taccCommInitRank(&comm, ranks, ids.pass(ranks, rank), rank);
        const std::string text = result == taccSuccess ? "" : taccGetLastError(nullptr);
        return ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
      });
    }
    ::close(ends[1]);
    answers.push_back(::fdopen(ends[0], "r"));
    children.push_back(child);
  }
  std::vector<std::string> errors;
  for (FILE* answer : answers) {
    std::string& text = errors.emplace_back();
    for (int c = std::fgetc(answer); c != EOF; c = std::fgetc(answer)) text += static_cast<char>(c);
    std::fclose(answer);
  }
  collect(children);
  return errors;
}

void runRanks(RankKind kind, int ranks, const std::function<void(taccComm_t, int)>& body, const taccConfig_t& config) {
  if (kind == RankKind::threads)
    runThreads(ranks, body);
  else
    runProcesses(ranks, body, config);
}

void expectSuccess(taccResult_t result, taccComm_t comm) { EXPECT_EQ(result, taccSuccess) << taccGetLastError(comm); }

}  // namespace tacc::test
