// Every collective, type, operation, number of ranks and odd size, with real data through real ranks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/registry.hpp"
#include "rank_harness.hpp"
#include "support/settings.hpp"
#include "trials.hpp"

namespace tacc::test {
namespace {

/// Sanitizers cost a factor of up to 100 where more ranks than cores wait for each other: fewer teams then.
std::vector<int> teamSizes() {
  if (isQuick()) return {1, 2, 3, 5};
  return {1, 2, 3, 4, 5, 6, 7, 8, 9};
}

std::vector<std::size_t> typeCounts() {
  if (isQuick()) return {37};
  return {1, 37, 9001};
}

using Parameters = std::tuple<RankKind, int>;

class Collectives : public testing::TestWithParam<Parameters> {
 protected:
  RankKind kind() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(Collectives, everyTypeAndOperation) {
  const auto trials = trialsOfTypes(ranks(), typeCounts());
  runRanks(kind(), ranks(), [&](taccComm_t comm, int rank) { runAll(comm, rank, ranks(), trials); });
}

TEST_P(Collectives, everyRootAndOddCount) {
  const auto trials = trialsOfRoots(ranks());
  runRanks(kind(), ranks(), [&](taccComm_t comm, int rank) { runAll(comm, rank, ranks(), trials); });
}

TEST_P(Collectives, severalChunks) {
  const auto trials = trialsOfElements(ranks(), isQuick() ? 150001 : 1200007);
  runRanks(kind(), ranks(), [&](taccComm_t comm, int rank) { runAll(comm, rank, ranks(), trials); });
}

TEST_P(Collectives, everyAlgorithmForced) {
  // So that the largest count goes in several chunks.
  setenv("TACC_CHUNK_SIZE", "64K", 1);
  for (const Algorithm& algorithm : algorithms()) {
    std::vector<Trial> trials;
    for (int c = 0; c < collectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (!algorithm.serves({collective, ranks(), 0})) continue;
      for (const auto& [type, op] : {std::pair{taccFloat32, taccAvg}, {taccFloat16, taccAvg}, {taccInt64, taccProd}})
        for (const std::size_t count : {std::size_t{1}, static_cast<std::size_t>(ranks()) + 1, std::size_t{50021}})
          for (const bool inPlace : {false, true})
            trials.push_back({collective, type,
                              !isReduction(collective)                ? 0
                              : isPrefix(collective) && op == taccAvg ? taccSum
                                                                      : op,
                              count, ranks() / 2, inPlace, op == taccProd});
    }
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    const std::string name(algorithm.name), expected(ranks() > 1 ? name : "");  // a rank alone runs none
    config.algorithm = name.c_str();
    if (kind() == RankKind::threads) setenv("TACC_ALGO", name.c_str(), 1);
    runRanks(
        kind(), ranks(), [&](taccComm_t comm, int rank) { runAll(comm, rank, ranks(), trials, expected); }, config);
    unsetenv("TACC_ALGO");
    ASSERT_FALSE(HasFailure()) << name;
  }
  unsetenv("TACC_CHUNK_SIZE");
}

// The variable is said of a whole program, which may make calls that the algorithm does not serve.
TEST(ForcedByTheEnvironment, whatTheAlgorithmDoesNotServeIsChosen) {
  constexpr int ranks = 3;
  for (const Algorithm& algorithm : algorithms()) {
    setenv("TACC_ALGO", std::string(algorithm.name).c_str(), 1);
    runRanks(RankKind::threads, ranks, [&](taccComm_t comm, int rank) {
      runAll(comm, rank, ranks, trialsOfElements(ranks, 20'011));
      std::vector<std::size_t> counts(ranks, 3000), places{0, 3000, 6000};
      std::vector<int> from(3000, rank), to(9000, -1);
      EXPECT_EQ(taccAllGatherV(from.data(), to.data(), counts.data(), places.data(), taccInt32, comm, nullptr),
                taccSuccess)
          << taccGetLastError(comm);
      EXPECT_TRUE(to[0] == 0 && to[4000] == 1 && to[8999] == 2) << algorithm.name;
      std::vector<int> sum(3000);
      EXPECT_EQ(taccAllReduce(from.data(), sum.data(), sum.size(), taccInt32, taccSum, comm, nullptr), taccSuccess);
      EXPECT_EQ(sum[2999], 3);
      EXPECT_EQ(taccCommLastAlgorithm(comm) == algorithm.name, algorithm.serves({Collective::allReduce, ranks, 0}));
    });
    unsetenv("TACC_ALGO");
    ASSERT_FALSE(HasFailure()) << algorithm.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         testing::Combine(testing::Values(RankKind::processes, RankKind::threads),
                                          testing::ValuesIn(teamSizes())),
                         [](const testing::TestParamInfo<Parameters>& suite) {
                           const bool processes = std::get<0>(suite.param) == RankKind::processes;
                           return (processes ? "processes" : "threads") + std::to_string(std::get<1>(suite.param));
                         });

}  // namespace
}  // namespace tacc::test
