// The alltoall of the hierarchical algorithm: inside the groups by where blocks go, then between the groups.
#pragma once

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {

/// Whether the innermost groups are of one size, several of them, and of several ranks.
bool servesHierarchicalAllToAll(const PlanRequest& request);

/// The steps of the writer's rank.
void writeHierarchicalAllToAll(const PlanRequest& request, PlanWriter& writer);

/// What that plan exchanges.
Exchanges exchangesOfHierarchicalAllToAll(const PlanRequest& request);

}  // namespace tacc
