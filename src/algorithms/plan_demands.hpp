// What a call asks of its plan beside its collective, and whether an algorithm's plan grants it.
#pragma once

#include <compare>

#include "algorithms/registry.hpp"

namespace tacc {

struct PlanDemands {
  /// Elements are combined in one pass in the order of the ranks, so that results have the same bits however they are
  /// made (rank_order.hpp).
  bool rankOrder = false;
  /// Every step of every rank says whose block it handles, so that blocks may have unequal lengths (block_names.hpp).
  /// Asked of the whole plan, so that all ranks find the same: of a tree, leaves handle single blocks, and others
  /// whole stacks.
  bool namedBlocks = false;
  /// A sum is made in one pass by the rank that gets it, so that numbers of 16 bits are rounded once.
  bool oneRounding = false;
  /// Every block goes straight from where it is to where it is wanted: a rank knows the lengths of none but its own.
  bool straightBlocks = false;

  auto operator<=>(const PlanDemands&) const = default;
};

/// Whether the algorithm serves the request with a plan that meets the demands. Above 256 ranks plans of 256 and 255
/// stand for it, and one that follows a layout names no blocks and has no order. Cost: that of proofs; callers keep
/// the answer.
bool meets(const Algorithm& algorithm, const PlanRequest& request, const PlanDemands& demands);

/// Fails (taccInvalidUsage): the algorithm was forced and does not meet the demands. Lists those that do.
[[noreturn]] void failOnDemands(const Algorithm& algorithm, const PlanRequest& request, const PlanDemands& demands);

}  // namespace tacc
