// Small allreduces of a group as one: their inputs are packed into one vector, reduced together and unpacked.
//
// Packing costs two copies; each call that is saved was one latency of the whole communicator, from about 1 us. At some
// 10 GB/s and more for copies in the cache this pays up to about 8 KiB a call, and with 64 KiB in all the packed vector
// stays in the second-level cache and each communicator's buffer stays small. Both limits are in bytes of the call,
// which are the same on all ranks, so all ranks fuse alike.
#pragma once

#include <cstddef>

#include "api/work.hpp"

namespace tacc {

inline constexpr std::size_t fusionPartBytes = 8 * 1024;
inline constexpr std::size_t fusionBytes = 64 * 1024;
inline constexpr std::size_t fusionParts = 256;  // bounds the search for calls that depend on each other

/// Whether `next`, which follows `previous` on the same communicator and stream, can join it: same type and operator,
/// small enough, and neither touches what the other writes.
bool canFuse(const Unit& previous, const Unit& next);

/// Makes `next` a part of `previous`.
void fuse(Unit& previous, const Unit& next);

/// Whether `next` writes what a part of `unit`, a call or a fused one, reads or writes, or the other way round.
bool dependOnEachOther(const Unit& unit, const Call& next) noexcept;

/// Runs a fused unit. The communicator keeps the buffer, which grows to the largest one. Ranks that put other parts
/// together, or in another order, get the usual error of calls that differ, unless the parts are of equal sizes.
void runFused(taccComm& comm, const Unit& unit);

}  // namespace tacc
