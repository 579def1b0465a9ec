#pragma once

#include <cstddef>

namespace tacc::bench {

/// reduceAndDistribute takes at most so many ranks.
inline constexpr size_t mostBoundRanks = 1024;

/// True if this machine has stores that bypass the cache and this build can use them.
bool hasStreamingStores();

/// Adds `count` floats of all `ranks` sources and writes the sum to all targets, in one pass. `count` is a multiple of
/// 16 and every pointer is aligned to 64 bytes.
void reduceAndDistribute(const float* const* sources, float* const* targets, size_t ranks, size_t count,
                         bool streamingStores);

}  // namespace tacc::bench
