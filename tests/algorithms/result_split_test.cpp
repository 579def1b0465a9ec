// The two parts of an allreduce, one after the other, are that allreduce: for every algorithm, layout and number of
// ranks.
#include "algorithms/result_split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/registry.hpp"
#include "algorithms/verifier.hpp"
#include "interpreter.hpp"

namespace tacc {
namespace {

/// Runs the parts as one plan, the second behind the first.
class EveryAllReduceSplits : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAllReduceSplits, PartsAreThePlan) {
  for (int p = 2; p <= 24; ++p) {
    for (const PlanRequest& request : test::requestsServed(*GetParam(), p)) {
      if (request.collective != Collective::allReduce) continue;
      Plan plan = makePlan(*GetParam(), request);
      const std::string what = test::describe(plan);
      const int rounds = std::exchange(plan.rounds, 0);
      for (int rank = 0; rank < p; ++rank) {
        const ResultSplit split = splitAtResults(localPlanOf(plan, rank));
        std::vector<Step>& steps = plan.ranks[static_cast<std::size_t>(rank)].steps;
        const std::size_t before = steps.size();
        steps.clear();
        std::vector<int> timesComplete(static_cast<std::size_t>(plan.blocks), 0);
        split.sums.steps.forEach([&](const Step& step) {
          steps.push_back(step);
          // Nothing but contributions and sums of them.
          if (step.sources.size() == 1) {
            EXPECT_NE(step.sources[0].kind, Operand::Kind::peer) << what;
          }
        });
        split.results.steps.forEach([&](const Step& step) {
          EXPECT_EQ(step.sources.size(), 1u) << what;
          steps.push_back(step);
          steps.back().round += rounds;
        });
        EXPECT_GE(steps.size(), before) << what;
        if (!steps.empty()) plan.rounds = std::max(plan.rounds, steps.back().round + 1);
        for (const ResultSplit::Blocks& blocks : split.complete)
          for (int b = blocks.first; b < blocks.first + blocks.count; ++b) ++timesComplete[static_cast<std::size_t>(b)];
        for (const int times : timesComplete) EXPECT_LE(times, 1) << what << ", rank " << rank;
      }
      ASSERT_NO_THROW((void)verify(plan)) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAllReduceSplits, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms())
                             for (const PlanRequest& layout : test::layoutsOf(8)) {
                               PlanRequest request = layout;
                               request.ranks = 8;
                               if (!algorithm.serves(request)) continue;
                               all.push_back(&algorithm);
                               break;
                             }
                           return all;
                         }()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace tacc
