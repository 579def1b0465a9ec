// One algorithm for one call on one machine: what the cost model says, and what SimGrid finds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine.hpp"

namespace tacc::sim {

struct Trial {
  Machine* machine = nullptr;
  Collective collective = Collective::allReduce;
  double bytes = 0;  // split: of the vector; stack: of all blocks together
  const Algorithm* algorithm = nullptr;
};

struct Outcome {
  static constexpr int mostLevels = 40;
  bool isReplayed = false;      // else it would have been too much work
  double seconds = 0;           // by SimGrid
  double predicted = 0;         // by the cost model, cut alike
  double processorSeconds = 0;  // that it took to find out
  double messages = 0, chunks = 0, rounds = 0;
  double bytesAt[mostLevels] = {};  // sent between hosts that meet at each level of the topology
};

/// In this process, whose SimGrid it uses up. The work is that of the messages, in all chunks, times the partners of a
/// rank, since they share links with one another; what is more than `mostWork` is not replayed. A million takes some
/// seconds.
Outcome perform(const Trial& trial, double mostWork);

/// Each in a process of its own, `jobs` at a time. `done` is called as they end, in any order. What fails in one is an
/// Error that names its algorithm.
std::vector<Outcome> performAll(const std::vector<Trial>& trials, double mostWork, int jobs,
                                const std::function<void(std::size_t finished)>& done);

}  // namespace tacc::sim
