// Plans that combine in the order of the ranks, and those whose row says that they do it in one pass.
#include "algorithms/rank_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "algorithms/verifier.hpp"
#include "interpreter.hpp"

namespace tacc::test {
namespace {

/// Whose contributions a step combines, in their order; empty: not everything in it comes straight from who gives it.
std::vector<int> summandsOf(const Plan& plan, int rank, const Step& step) {
  std::vector<int> ranks;
  for (const Operand& operand : step.sources) {
    if (operand.kind == Operand::Kind::input) {
      ranks.push_back(rank);
      continue;
    }
    if (operand.kind != Operand::Kind::peer) return {};
    ranks.push_back(operand.index);
    for (const Step& sent : plan.ranks[static_cast<std::size_t>(operand.index)].steps)
      if (std::ranges::find(sent.destinations, peer(rank)) != sent.destinations.end() &&
          (sent.sources.size() != 1 || sent.sources[0].kind != Operand::Kind::input))
        return {};
  }
  return ranks;
}

TEST(RankOrder, WhoSumsInOnePassTakesAllContributionsInTheirOrder) {
  int plans = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.sumsInOnePass) continue;
    for (int p = 2; p <= 12; ++p)
      for (const PlanRequest& request : requestsServed(algorithm, p)) {
        if (!isReduction(request.collective)) continue;
        ++plans;
        const Plan plan = makePlan(algorithm, request);
        EXPECT_TRUE(combinesInRankOrder(algorithm, request)) << describe(plan);
        for (int rank = 0; rank < p; ++rank)
          for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) {
            if (step.sources.size() < 2) continue;
            const int summands = request.collective == Collective::scan     ? rank + 1
                                 : request.collective == Collective::exscan ? rank
                                                                            : p;
            std::vector<int> wanted(static_cast<std::size_t>(summands));
            for (int from = 0; from < summands; ++from) wanted[static_cast<std::size_t>(from)] = from;
            EXPECT_EQ(summandsOf(plan, rank, step), wanted) << describe(plan) << ", rank " << rank;
          }
      }
  }
  EXPECT_GE(plans, 11);
}

/// Of every reduction one serves, so that there always is a plan to fall back on.
TEST(RankOrder, SomebodySumsInOnePass) {
  for (const Collective collective : {Collective::allReduce, Collective::reduce, Collective::reduceScatter})
    for (const int p : {2, 3, 64, 1000})
      EXPECT_TRUE(std::ranges::any_of(algorithms(), [&](const Algorithm& algorithm) {
        return algorithm.sumsInOnePass && algorithm.serves({collective, p, p - 1});
      })) << nameOf(collective);
}

TEST(RankOrder, OfPrefixesSomethingDoesForEveryNumberOfRanks) {
  for (const Collective collective : {Collective::scan, Collective::exscan})
    for (const int p : {2, 3, 8, 65, 300})
      EXPECT_TRUE(std::ranges::any_of(algorithms(),
                                      [&](const Algorithm& algorithm) {
                                        const PlanRequest request{collective, p, 0};
                                        return algorithm.serves(request) && combinesInRankOrder(algorithm, request);
                                      }))
          << nameOf(collective) << " of " << p;
}

/// Above the largest plans that are proven: those that are taken to be in order are so, all of them, for every kind of
/// root.
TEST(RankOrder, OfManyRanksSmallerPlansTell) {
  for (const int p : {257, 300})
    for (const Collective collective : {Collective::allReduce, Collective::reduce, Collective::reduceScatter}) {
      std::vector<int> roots{0};
      if (isRooted(collective)) roots = {0, 1, p / 2, p - 2, p - 1};
      for (const int root : roots) {
        const PlanRequest request{collective, p, root};
        std::vector<std::uint64_t> orders;
        bool hasOnePass = false;
        for (const Algorithm& algorithm : algorithms()) {
          if (!algorithm.serves(request) || !combinesInRankOrder(algorithm, request)) continue;
          orders.push_back(verify(makePlan(algorithm, request)).reductionOrder);
          hasOnePass = hasOnePass || algorithm.sumsInOnePass;
          EXPECT_EQ(orders.back(), orders.front()) << algorithm.name << ", root " << root << " of " << p;
        }
        EXPECT_TRUE(hasOnePass) << nameOf(collective) << " of " << p << ", root " << root;
      }
    }
}

TEST(RankOrder, TreesHaveAnOrderOfTheirOwn) {
  EXPECT_FALSE(combinesInRankOrder(*findAlgorithm("ring"), {Collective::allReduce, 5, 0}));
  EXPECT_FALSE(combinesInRankOrder(*findAlgorithm("recursive_doubling"), {Collective::scan, 8, 0}));
  EXPECT_TRUE(combinesInRankOrder(*findAlgorithm("twoshot"), {Collective::allReduce, 5, 0}));
  EXPECT_TRUE(combinesInRankOrder(*findAlgorithm("ring"), {Collective::allGather, 5, 0})) << "nothing is combined";
}

}  // namespace
}  // namespace tacc::test
