// The steps of one rank in little memory are the steps that were given.
#include "algorithms/local_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "algorithms/registry.hpp"

namespace tacc {
namespace {

std::vector<Step> stepsIn(const StepList& list) {
  std::vector<Step> steps;
  list.forEach([&](const Step& step) { steps.push_back(step); });
  return steps;
}

/// Runs of drawn lengths, whose steps go on alike or nearly so, between others.
std::vector<Step> drawSteps(std::mt19937& random) {
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const auto drawOperand = [&] { return Operand{static_cast<Operand::Kind>(draw(4)), draw(50)}; };
  std::vector<Step> steps;
  const int runs = draw(6);
  for (int run = 0; run < runs; ++run) {
    Step step{draw(3), draw(9), 1 + draw(2), {drawOperand()}, {drawOperand()}, draw(4) == 0};
    if (draw(2) == 0) step.sources.push_back(drawOperand());
    if (draw(3) == 0) step.destinations.clear();
    if (draw(3) == 0) step.destinations.push_back(drawOperand());
    const int round = draw(2), block = draw(3) - 1, operand = draw(3) - 1;
    for (int i = draw(6); i >= 0; --i) {
      steps.push_back(step);
      step.round += round;
      step.block += block;
      for (Operand& o : step.sources) o.index += operand;
      for (Operand& o : step.destinations) o.index += draw(8) == 0 ? 1 : operand;
      if (draw(10) == 0) step.completes = !step.completes;
      if (draw(10) == 0) ++step.blockCount;
      if (draw(10) == 0) step.sources.front().kind = drawOperand().kind;
    }
  }
  return steps;
}

TEST(StepList, GivesBackWhatItWasGiven) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::vector<Step> steps = drawSteps(random);
    StepList list;
    int last = -1;
    for (const Step& step : steps) {
      list.append(step);
      last = std::max(last, step.round);
    }
    ASSERT_EQ(stepsIn(list), steps) << "draw " << i;
    ASSERT_EQ(list.size(), steps.size());
    ASSERT_EQ(list.lastRound(), last);
    ASSERT_EQ(list.isInOrder(), std::ranges::is_sorted(steps, {}, &Step::round));
  }
}

/// A plan that was put together is cut into the parts that its ranks would have written.
TEST(LocalPlan, IsAPartOfTheWhole) {
  for (const Algorithm& algorithm : algorithms()) {
    const PlanRequest request{Collective::allReduce, 6, 0, {{2, 4}}, {}};
    if (!algorithm.serves(request)) continue;
    const Plan plan = makePlan(algorithm, request);
    for (int rank = 0; rank < 6; ++rank) {
      const LocalPlan own = makeLocalPlan(algorithm, request, rank), cut = localPlanOf(plan, rank);
      EXPECT_EQ(stepsIn(own.steps), stepsIn(cut.steps)) << algorithm.name;
      EXPECT_EQ(own.blocks, cut.blocks);
      EXPECT_LE(own.scratchBlocks, cut.scratchBlocks);
      EXPECT_EQ(cut.rank, rank);
    }
  }
}

}  // namespace
}  // namespace tacc
