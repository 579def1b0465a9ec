// A job that is suspended as a whole, as a batch system does it, goes on when it is continued: time in which no rank
// ran is none in which one waited for others.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

constexpr int ranks = 3;
constexpr double timeout = 1.5;

TEST(SuspendedJob, GoesOnAfterLongerThanItsTimeOut) {
  Team team(ranks, [](const taccUniqueId& id, int rank, Report& report) {
    const taccComm_t comm = joinTeam(id, ranks, rank, configOf(20, timeout));
    if (comm == nullptr) return;
    const auto call = [rank](taccComm_t one, int) {
      // The others wait for it when all are stopped.
      if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return taccBarrier(one, nullptr);
    };
    reportCall(comm, rank, call, report);
    EXPECT_EQ(report.result, taccSuccess) << report.message;
    EXPECT_EQ(report.later, taccSuccess);
  });
  team.awaitStage(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (int rank = 0; rank < ranks; ++rank) team.signal(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * timeout));
  for (int rank = 0; rank < ranks; ++rank) team.signal(rank, SIGCONT);
  team.join();
}

}  // namespace
}  // namespace tacc::test
