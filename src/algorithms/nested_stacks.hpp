// Reduce-scatter and allgather over nested groups of equal size, along rings.
#pragma once

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {

/// The part of the writer's rank: reduce-scatter inside the innermost groups first, then in lanes; allgather the other
/// way round. What one rank hands to the next in a step are the blocks of one lane, which do not lie side by side: a
/// message for each. The groups must be of equal size at every level, and there must be 2 ranks at least.
void writeNestedStacks(const PlanRequest& request, PlanWriter& writer);
Exchanges exchangesOfNestedStacks(const PlanRequest& request);

}  // namespace tacc
