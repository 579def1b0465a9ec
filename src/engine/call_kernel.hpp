// What combines the contributions of a call.
#pragma once

#include "compute/reduce/reduce.hpp"
#include "core/call.hpp"

namespace tacc {

/// `sumFrom`: operations with this number or a higher one are sums (engine/signature.hpp).
inline ReduceKernel kernelOf(const Call& call, int sumFrom) {
  if (call.user != nullptr) return {*call.user, call.type};
  return reduceKernel(call.type, call.op == taccAvg || call.op >= sumFrom ? taccSum : call.op);
}

}  // namespace tacc
