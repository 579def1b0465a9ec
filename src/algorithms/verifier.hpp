// Proves a plan: see verify().
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/plan.hpp"

namespace tacc {

/// What the proof found out besides "right".
struct Certificate {
  std::uint64_t reductionOrder = 0;  // digest of the order in which every output block's contributions are combined
  std::uint64_t messages = 0;        // over all ranks
  std::uint64_t maxBlocksSent = 0;   // by one rank, counted once per destination peer
  std::uint64_t maxBlocksReceived = 0;
};

/// Proves, on all ranks together: block indices in range; sends and receives match in number, order and blocks; every message
/// is received in a later round than it is sent (so no deadlock, with rendezvous too); no two unordered steps touch the
/// same block with a write among them; every output block holds exactly the contributions that the collective asks for,
/// each once; nothing is read before it is written. `inPlace` proves it with the collective's in-place aliasing.
/// Throws Error (taccInvalidArgument) with a sentence that names rank, round, step and block.
Certificate verify(const Plan& plan, bool inPlace = false);

}  // namespace tacc
