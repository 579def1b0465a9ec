// Chooses the chunk size and the interleaving of chunks for a call.
#pragma once

#include <cstddef>

#include "engine/partition.hpp"
#include "engine/shm/program.hpp"

namespace tacc {

struct ScheduleLimits {
  std::size_t arenaBytes;      // for all slots of a rank
  std::size_t chunkBytes;      // wanted volume of a rank's slots per chunk: what stays in its cache
  std::size_t aheadBytes = 0;  // of all copies of a rank's slots: by how much it may be ahead of who reads them
};

/// `count` elements of `elementBytes` (as in the call). Programs without slots and scratch run as one chunk. Throws
/// Error if the arena is too small for the program, or there are more chunks than clocks count.
Schedule makeSchedule(const Program& program, std::size_t count, std::size_t elementBytes,
                      const ScheduleLimits& limits);

}  // namespace tacc
