// Every collective among ranks on several virtual hosts: shared memory inside, a network between.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "algorithms/registry.hpp"
#include "rank_harness.hpp"
#include "support/host_ranks_test.hpp"
#include "trials.hpp"

namespace tacc::test {
namespace {

class HostCollectives : public HostRanksTest {
 protected:
  void run(const std::vector<Trial>& trials, const taccConfig_t& config = TACC_CONFIG_INITIALIZER) {
    const VirtualCluster& cluster = fourHosts();
    runOnHosts(
        cluster, hosts(), [&](taccComm_t comm, int rank) { runAll(comm, rank, ranks(), trials); }, config);
  }
};

TEST_P(HostCollectives, everyTypeAndOperation) { run(trialsOfTypes(ranks(), {37, 9001})); }

TEST_P(HostCollectives, everyRootAndOddCount) { run(trialsOfRoots(ranks())); }

TEST_P(HostCollectives, severalChunks) { run(trialsOfElements(ranks(), 1200007)); }

/// What every algorithm makes of one element and of several chunks, in place and not.
std::vector<Trial> trialsOfAlgorithm(const Algorithm& algorithm, const std::vector<int>& hosts) {
  const int ranks = static_cast<int>(hosts.size()), hostCount = *std::max_element(hosts.begin(), hosts.end());
  std::vector<Trial> trials;
  for (int c = 0; c < collectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    // It must serve the hosts' leaders and all ranks: a call may be made of either.
    if (!algorithm.serves({collective, hostCount, 0}) || !algorithm.serves({collective, ranks, 0})) continue;
    for (const std::size_t count : {std::size_t{1}, std::size_t{50021}})
      for (const bool inPlace : {false, true})
        trials.push_back({collective, taccFloat32, isReduction(collective) && !isPrefix(collective) ? taccAvg : taccSum,
                          count, ranks / 2, inPlace, false});
  }
  return trials;
}

// Communicators of all ranks, one after the other: processes of their own would mostly be starting.
TEST_P(HostCollectives, everyAlgorithmForced) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    for (const Algorithm& algorithm : algorithms()) {
      const std::string name(algorithm.name);
      taccConfig_t config = TACC_CONFIG_INITIALIZER;
      config.algorithm = name.c_str();
      taccComm_t forced = nullptr;
      expectSuccess(taccCommSplit(comm, 0, rank, &forced, &config), comm);
      ASSERT_NE(forced, nullptr) << name;
      runAll(forced, rank, ranks(), trialsOfAlgorithm(algorithm, hosts()), name);
      expectSuccess(taccCommDestroy(forced), comm);
      ASSERT_FALSE(HasFailure()) << name;
    }
  });
}

TEST_P(HostCollectives, splitMakesACommunicatorOfEachColor) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    // Every third rank stays out, the rest is dealt into two colors, in reverse order.
    const int color = rank % 3 == 2 ? TACC_SPLIT_NOCOLOR : rank % 2;
    taccComm_t part = nullptr;
    expectSuccess(taccCommSplit(comm, color, -rank, &part, nullptr), comm);
    if (color < 0) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    std::vector<int> members;
    for (int r = ranks() - 1; r >= 0; --r)
      if (r % 3 != 2 && r % 2 == color) members.push_back(r);
    int count = 0, place = -1;
    expectSuccess(taccCommCount(part, &count), part);
    expectSuccess(taccCommUserRank(part, &place), part);
    ASSERT_EQ(static_cast<std::size_t>(count), members.size());
    EXPECT_EQ(members[static_cast<std::size_t>(place)], rank);
    std::vector<int> gathered(members.size());
    expectSuccess(taccAllGather(&rank, gathered.data(), 1, taccInt32, part, nullptr), part);
    EXPECT_EQ(gathered, members);
    expectSuccess(taccCommDestroy(part), part);
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, HostCollectives, usualLayouts(), layoutName);

}  // namespace
}  // namespace tacc::test
