// What a call shows to the other ranks, so that calls which do not fit are told.
#pragma once

#include <cstdint>

#include "comm/communicator.hpp"
#include "comm/direct_update.hpp"
#include "comm/streamed_sum.hpp"
#include "engine/signature.hpp"

namespace tacc {

inline std::uint64_t signatureOf(const Call& call) noexcept {
  const int op = call.streamed != nullptr ? call.streamed->code
                 : call.factor != nullptr ? preMulSumCode
                                          : static_cast<int>(call.op);
  return makeSignature(call.collective, call.type, op, call.root, call.count);
}

inline std::uint64_t signatureOf(const DirectUpdate& update) noexcept {
  return makeSignature(Collective::allReduce, taccFloat32, update.code, 0, update.count);
}

}  // namespace tacc
