// Nested groups as hierarchical plans walk through them.
#pragma once

#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// One level of groups, counted in those who take part in it: all ranks at the innermost level; then, where the groups
/// of a level are of equal size, each rank with those of the same place in the other groups (a lane), else one leader a
/// group.
struct NestingLevel {
  std::vector<int> sizes;
  bool isEven = true;
};

/// Levels whose groups have one member are left out. The last level is one group of all who are left, unless that is
/// one.
std::vector<NestingLevel> nestingOf(const PlanRequest& request);

/// Even at every level.
bool isEven(const std::vector<NestingLevel>& nesting) noexcept;

}  // namespace tacc
