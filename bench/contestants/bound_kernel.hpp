#pragma once

#include <cstddef>
#include <span>

namespace tacc::bench {

/// The most ranks that reduceAndDistribute takes.
inline constexpr size_t mostBoundRanks = 1024;

/// True if this machine has stores that bypass the cache and this build can use them.
bool hasStreamingStores();

/// Adds `count` floats of all `ranks` sources and writes the sum to all targets, in one pass. `count` is a multiple of
/// 16 and every pointer is aligned to 64 bytes.
void reduceAndDistribute(const float* const* sources, float* const* targets, size_t ranks, size_t count,
                         bool streamingStores);

/// Floats to which a part's length is rounded.
inline constexpr size_t boundLanes = 16;

/// Reads `count` floats of every stream, and writes all of them again, in one pass: what an update of as many arrays
/// takes at least. `count` is a multiple of boundLanes, and every pointer is aligned to 64 bytes.
void moveTogether(std::span<float* const> streams, size_t count);

}  // namespace tacc::bench
