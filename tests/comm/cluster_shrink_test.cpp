// Going on without ranks where cables are pulled out and put in again meanwhile: all that go on are together.
//
// SHRINK_ROUNDS: how many times (default 6; 2 with TACC_TEST_QUICK). TACC_TEST_SEED: which.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "shrink_team.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

constexpr double initTimeout = 3, callTimeout = 1, endSeconds = 60;

/// What happens to a cable.
struct Jerk {
  double moment;  // seconds after all have joined
  int host;
  bool isPulled;
};

struct Plan {
  std::vector<int> hosts;  // of each rank
  std::vector<Jerk> jerks;
  int killed;  // -1: nobody
  double killedAt;

  std::string describe() const {
    std::string text = fmt::format("{} ranks on {} hosts", hosts.size(), hosts.back());
    for (const Jerk& one : jerks)
      text += fmt::format(", {} {} at {:.2f}", one.isPulled ? "pull" : "plug", one.host, one.moment);
    return killed < 0 ? text : text + fmt::format(", rank {} killed at {:.2f}", killed, killedAt);
  }
};

Plan drawPlan(std::mt19937& draw, int mostHosts) {
  const auto between = [&](double least, double most) { return std::uniform_real_distribution(least, most)(draw); };
  const auto below = [&](int end) { return std::uniform_int_distribution(0, end - 1)(draw); };
  Plan plan;
  const int hosts = 2 + below(mostHosts - 1);
  for (int host = 1; host <= hosts; ++host)
    for (int rank = 0; rank <= below(2); ++rank) plan.hosts.push_back(host);
  for (int host = 1; host <= hosts; ++host) {
    if (below(3) != 0 && !plan.jerks.empty()) continue;
    // Before the others have missed it, while they agree, or for longer than they try.
    double moment = between(0, 1.5);
    for (int times = 1 + below(2); times > 0; --times) {
      plan.jerks.push_back({moment, host, true});
      moment += below(4) == 0 ? 3 * initTimeout : between(0.02, 4);
      plan.jerks.push_back({moment, host, false});
      moment += between(0.02, 1);
    }
  }
  std::ranges::stable_sort(plan.jerks, {}, &Jerk::moment);
  plan.killed = below(3) == 0 ? below(static_cast<int>(plan.hosts.size())) : -1;
  plan.killedAt = between(0, 3);
  return plan;
}

/// A rank stays until all have ended: where processes end, those who were cut off take them for dead, and are right.
void beRank(const taccUniqueId& id, int ranks, int rank, int killed, Report& report) {
  taccComm_t comm = joinTeam(id, ranks, rank, configOf(initTimeout, callTimeout));
  if (comm == nullptr) return;
  report.stage = 1;
  for (int call = 0; call < 200; ++call)
    if (taccBarrier(comm, nullptr) != taccSuccess)
      break;
    else
      nap(0.002);
  shrinkAndMeet(comm, rank, {}, report);
  report.stage = 2;
  const Report* const all = &report - rank;
  for (const double begin = now(); now() - begin < endSeconds / 2; nap(0.01)) {
    bool isOver = true;
    for (int one = 0; one < ranks; ++one) isOver = isOver && (one == killed || all[one].stage == 2);
    if (isOver) break;
  }
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

void runPlan(const VirtualCluster& cluster, const Plan& plan, Team& team) {
  const double begin = now();
  bool isKilled = plan.killed < 0;
  std::size_t next = 0;
  while (next < plan.jerks.size() || !isKilled) {
    const double time = now() - begin;
    if (!isKilled && time >= plan.killedAt) {
      team.signal(plan.killed, SIGKILL);
      isKilled = true;
    }
    if (next < plan.jerks.size() && time >= plan.jerks[next].moment) {
      const Jerk& one = plan.jerks[next++];
      one.isPulled ? cluster.unplug(one.host) : cluster.plug(one.host);
    }
    nap(0.002);
  }
}

TEST(ClusterShrink, isUniformWhateverCablesDoMeanwhile) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr int mostHosts = 4;
  const char* const seed = std::getenv("TACC_TEST_SEED");
  std::mt19937 draw(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 20261124U);
  const VirtualCluster cluster(1, mostHosts);
  int together = 0, alone = 0, refused = 0;
  for (int round = 0; round < shrinkRounds(6) && !HasFailure(); ++round) {
    const Plan plan = drawPlan(draw, mostHosts);
    const auto ranks = static_cast<int>(plan.hosts.size());
    Team team(cluster, plan.hosts,
              [&](const taccUniqueId& id, int rank, Report& report) { beRank(id, ranks, rank, plan.killed, report); });
    team.awaitStage(1);
    runPlan(cluster, plan, team);
    team.join(plan.killed, endSeconds);
    expectTogether(team, plan.describe());
    int succeeded = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == plan.killed) continue;
      const Report& report = team.report(rank);
      succeeded += report.result == taccSuccess;
      EXPECT_LT(report.end - report.start, 4 * initTimeout) << plan.describe() << ", rank " << rank;
    }
    (succeeded == 0 ? refused : succeeded == ranks ? together : alone) += 1;
  }
  std::printf("all went on in %d rounds, some in %d, none in %d\n", together, alone, refused);
  EXPECT_GT(together + alone, 0);
}

}  // namespace
}  // namespace tacc::test
