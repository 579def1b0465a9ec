// A plan in SimGrid: a machine of hosts and links, and an actor for every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/plan.hpp"
#include "links.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/cost_simulator.hpp"

namespace tacc::sim {

/// On which host of the topology each rank is, and what messages and bytes cost there.
struct Stage {
  const Topology& topology;
  NetworkSpeed speed;                // for what the topology does not say
  std::vector<std::uint32_t> hosts;  // of ranks
  double gamma = 0;                  // seconds per byte that is combined or copied
  double overhead = 0;               // seconds of CPU per message, at either end
  // Between ranks of one host, through its memory; CPU as above.
  NetworkSpeed memory{};
  double memoryOverhead = 0;
  double port = 0;  // bytes/s of all that a rank sends, and of all that it receives; 0: as its host's card allows
};

/// Seconds of simulated time until the last rank is done. Once in a process, since SimGrid's engine is one a process.
///
/// A rank does what the library does (engine/net/network_run.hpp): it goes through the steps of each chunk in order,
/// several chunks under way together, the oldest first on the CPU; messages of a pair of ranks follow one another.
/// SimGrid shares the links among all that is on its way. The latency is waited for at the receiver, so that the next
/// message of the pair follows at once.
double replay(const Plan& plan, const Stage& stage, const CostCall& call);

}  // namespace tacc::sim
