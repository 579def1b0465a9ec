// What calls of one communicator use again and again, so that a call that was made before allocates nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "elements.hpp"

namespace tacc::mpi {

/// Blocks of unequal lengths of one buffer.
struct UnequalScratch {
  std::vector<Elements> blocks;
  std::vector<std::size_t> counts, offsets;  // in bytes
};

struct Scratch {
  UnequalScratch send, receive;
  std::vector<std::size_t> counts;  // of a reduce-scatter
  std::vector<std::byte> block;     // its result in place, on the way to where MPI wants it

  /// `block` with room for `bytes`; never null.
  std::byte* blockOf(std::size_t bytes) {
    if (block.size() <= bytes) block.resize(bytes + 1);
    return block.data();
  }
};

}  // namespace tacc::mpi
