// What a call is, in 64 bits: every rank posts it with its first line, so calls that do not fit are found before data
// moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/plan.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// Operation numbers beside the five basic ones, of calls that sum, and are not to be taken for a plain sum.
inline constexpr int preMulSumCode = 7;
inline constexpr int updateCode = 8;    // taccAllReduceUpdate
inline constexpr int exchangeCode = 9;  // of an EASGD exchange
inline constexpr int firstSumCode = preMulSumCode;

/// The low 36 bits of the count, 16 of the root (of allreduces that are put together: a digest of their sizes), 4 each
/// of collective, type and operation. Two calls with equal signatures may run together (a count differs from another by
/// less than 2^36 elements on any machine that exists).
constexpr std::uint64_t makeSignature(Collective collective, taccDataType_t type, int op, int root,
                                      std::size_t count) noexcept {
  return static_cast<std::uint64_t>(count) << 28 | (static_cast<std::uint64_t>(root) & 0xffff) << 12 |
         static_cast<std::uint64_t>(collective) << 8 | static_cast<std::uint64_t>(type) << 4 |
         static_cast<std::uint64_t>(op);
}

/// "allreduce(count 1000, float, sum)", "broadcast(count 5, int32, root 2)".
std::string describeSignature(std::uint64_t signature);

}  // namespace tacc
