// What a call asks of its plan beside its collective.
#pragma once

#include "algorithms/plan_demands.hpp"
#include "comm/communicator.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"

namespace tacc {

/// Whether contributions have to be combined one after the other in the order of the ranks.
inline bool needsRankOrder(const Call& call, bool isReproducible) noexcept {
  if (!isReduction(call.collective)) return false;
  // All plans of a scan combine lower ranks' contributions before those of higher ones.
  if (call.user != nullptr && !call.user->isCommutative && !isPrefix(call.collective)) return true;
  return isReproducible && (isFloating(call.type) || call.user != nullptr);
}

/// The demands of a call. Where its blocks have unequal lengths, all ranks know them. Equal blocks of 16-bit
/// numbers are widened instead.
inline PlanDemands demandsOf(const Call& call, bool isReproducible) noexcept {
  const bool isUnequal = call.blocks != nullptr;
  const bool halves = isReduction(call.collective) && isHalfWidth(call.type) && call.user == nullptr;
  return {
      .rankOrder = needsRankOrder(call, isReproducible), .namedBlocks = isUnequal, .oneRounding = isUnequal && halves};
}

}  // namespace tacc
