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
inline constexpr int preMulSumCode = 24;
inline constexpr int updateCode = 25;       // taccAllReduceUpdate
inline constexpr int exchangeCode = 26;     // of an EASGD exchange
inline constexpr int userCode = 27;         // a commutative reduction of the program
inline constexpr int orderedUserCode = 28;  // one that is not
inline constexpr int unequalCode = 31;      // of calls that do not reduce: their blocks have counts of their own
inline constexpr int countBits = 33;        // of a signature, from its highest bit on
static_assert(taccNumOps <= preMulSumCode);
inline constexpr int firstSumCode = preMulSumCode;

/// The low 33 bits of the count, 16 of the root (of allreduces that are put together: a digest of their sizes; of a
/// reduce-scatter whose blocks have counts of their own: unequalRoot), 5 each of collective, type and operation. Two
/// calls with equal signatures may run together: counts that differ by a multiple of 2^33 elements do not meet in
/// practice.
constexpr std::uint64_t makeSignature(Collective collective, taccDataType_t type, int op, int root,
                                      std::size_t count) noexcept {
  return static_cast<std::uint64_t>(count) << (64 - countBits) | (static_cast<std::uint64_t>(root) & 0xffff) << 15 |
         static_cast<std::uint64_t>(collective) << 10 | static_cast<std::uint64_t>(type) << 5 |
         static_cast<std::uint64_t>(op);
}

constexpr std::size_t countIn(std::uint64_t signature) noexcept { return signature >> (64 - countBits); }
constexpr int rootIn(std::uint64_t signature) noexcept { return static_cast<int>(signature >> 15 & 0xffff); }
constexpr Collective collectiveIn(std::uint64_t signature) noexcept {
  return static_cast<Collective>(signature >> 10 & 0x1f);
}
constexpr taccDataType_t typeIn(std::uint64_t signature) noexcept {
  return static_cast<taccDataType_t>(signature >> 5 & 0x1f);
}
constexpr int operationIn(std::uint64_t signature) noexcept { return static_cast<int>(signature & 0x1f); }

/// In the place of a root that a reduce-scatter does not have: its blocks have counts of their own.
inline constexpr int unequalRoot = 0xffff;

/// "allreduce(count 1000, float, sum)", "broadcast(count 5, int32, root 2)". Of any 64 bits: a peer may have written
/// them.
std::string describeSignature(std::uint64_t signature);

}  // namespace tacc
