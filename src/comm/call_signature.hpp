// What a call shows to the other ranks, so that calls which do not fit are told.
#pragma once

#include <cstdint>

#include "comm/communicator.hpp"
#include "compute/reduce/reduce.hpp"
#include "engine/direct_update.hpp"
#include "engine/signature.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

inline std::uint64_t signatureOf(const Call& call) noexcept {
  const int op = call.streamed != nullptr ? call.streamed->code
                 : call.factor != nullptr ? preMulSumCode
                 : call.user != nullptr   ? (call.user->isCommutative ? userCode : orderedUserCode)
                                          : static_cast<int>(call.op);
  if (call.blocks != nullptr) {
    if (isReduction(call.collective)) return makeSignature(call.collective, call.type, op, unequalRoot, 0);
    return makeSignature(call.collective, call.type, unequalCode, isRooted(call.collective) ? call.root : 0, 0);
  }
  return makeSignature(call.collective, call.type, op, call.root, call.count);
}

inline std::uint64_t signatureOf(const DirectUpdate& update) noexcept {
  return makeSignature(Collective::allReduce, taccFloat32, update.code, 0, update.count);
}

}  // namespace tacc
