// A plan whose ranks stand in another order than the plan's groups do.
#pragma once

#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// The plan in which rank order[i] does what rank i does in `plan`; order names every rank once. Blocks that belong to
/// ranks are those of the new ranks, so the collective is the same, from root order[plan.request.root]. Its request has
/// no groups and no dimensions, which were those of the old ranks. In a stack, steps over several blocks become steps
/// over one each. Reductions keep the order of their sources, which is then not that of the ranks.
Plan relabelled(const Plan& plan, const std::vector<int>& order);

}  // namespace tacc
