#include "algorithms/local_plan.hpp"

namespace tacc {

LocalPlan localPlanOf(const Plan& plan, int rank) {
  LocalPlan local{plan.request, plan.algorithm, rank, plan.blocks, plan.scratchBlocks, {}};
  for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) local.steps.append(step);
  return local;
}

}  // namespace tacc
