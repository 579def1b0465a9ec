// What combines the contributions of a call.
#pragma once

#include "comm/communicator.hpp"
#include "compute/reduce/reduce.hpp"

namespace tacc {

/// `sumFrom`: operations with this number or a higher one are sums (engine/signature.hpp).
inline ReduceKernel kernelOf(const Call& call, int sumFrom) {
  if (call.user != nullptr) return {*call.user, call.type};
  return reduceKernel(call.type, call.op == taccAvg || call.op >= sumFrom ? taccSum : call.op);
}

/// Whether contributions have to be combined one after the other in the order of the ranks.
inline bool needsRankOrder(const Call& call, bool isReproducible) noexcept {
  if (!isReduction(call.collective)) return false;
  // Of a scan all plans combine lower ranks' contributions before those of higher ones.
  if (call.user != nullptr && !call.user->isCommutative && !isPrefix(call.collective)) return true;
  return isReproducible && (isFloating(call.type) || call.user != nullptr);
}

}  // namespace tacc
