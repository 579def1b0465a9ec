#include "shrink_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace tacc::test {

int shrinkRounds(int otherwise) {
  if (const char* text = std::getenv("SHRINK_ROUNDS")) return std::atoi(text);
  return isQuick() ? otherwise / 3 : otherwise;
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void shrinkAndMeet(taccComm_t comm, int rank, const std::vector<int>& excluded, Report& report) {
  taccComm_t smaller = nullptr;
  report.start = now();
  report.result = taccCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), &smaller, nullptr, 0);
  report.end = now();
  report.setMessage(taccGetLastError(comm));
  if (report.result != taccSuccess) return;
  unsigned bit = 1U << rank, all = 0;
  // Who dies right after it has joined is missing here; the members are the same all the same.
  report.later = taccAllReduce(&bit, &all, 1, taccUint32, taccSum, smaller, nullptr);
  int count = 0;
  EXPECT_EQ(taccCommCount(smaller, &count), taccSuccess);
  if (report.later == taccSuccess) {
    EXPECT_EQ(__builtin_popcount(all), count);
  }
  report.value = report.later == taccSuccess ? all : 0;
  report.laterSeconds = count;
  EXPECT_EQ(taccCommDestroy(smaller), taccSuccess);
}

std::string expectStoppedRankLeftOut(int victim, const std::function<taccComm_t(const taccUniqueId&, int rank)>& make) {
  Team team(3, [&](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const comm = make(id, rank);
    ASSERT_NE(comm, nullptr);
    report.stage = 1;
    if (rank == victim) {
      while (report.stage < 3) nap(0.001);
    } else {
      nap(0.2);
      EXPECT_NE(taccBarrier(comm, nullptr), taccSuccess);
      nap(rank * 0.02);
    }
    shrinkAndMeet(comm, rank, {}, report);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.awaitStage(1);
  team.signal(victim, SIGSTOP);
  while (std::count_if(&team.report(0), &team.report(0) + 3, [](const Report& one) { return one.end > 0; }) < 2)
    nap(0.01);
  team.report(victim).stage = 3;
  team.signal(victim, SIGCONT);
  team.join();
  for (int rank = 0; rank < 3; ++rank) {
    const Report& report = team.report(rank);
    if (rank == victim) {
      EXPECT_NE(report.result, taccSuccess);
      continue;
    }
    EXPECT_EQ(report.result, taccSuccess) << "rank " << rank << " without " << victim << ": " << report.message;
    EXPECT_EQ(report.value, 7 - (1 << victim)) << "rank " << rank;
  }
  return team.report(victim).message;
}

void expectTogether(const Team& team, const std::string& what) {
  double members = 0, count = 0;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const Report& report = team.report(rank);
    if (report.laterSeconds == 0 || report.result != taccSuccess) continue;  // 0: killed before it told
    if (count == 0) count = report.laterSeconds;
    EXPECT_EQ(report.laterSeconds, count) << what << ", rank " << rank;
    if (report.value == 0) continue;
    if (members == 0) members = report.value;
    EXPECT_EQ(report.value, members) << what << ", rank " << rank;
  }
}

}  // namespace tacc::test
