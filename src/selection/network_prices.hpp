// Which algorithm would take the shortest time between hosts, and what is wrong with the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/registry.hpp"
#include "selection/cost/cost_machine.hpp"

namespace tacc {

struct NetworkQuestion {
  PlanRequest request;
  double bytes = 0;               // split: of the vector; stack: of one block
  int window = 4;                 // chunks under way together
  double messageBytes = 0;        // of a block of a chunk, as the call will be cut; 0: as is best for each algorithm
  double leastChunk = 16 * 1024;  // bytes; what is cut as is best is not cut into smaller chunks
  /// Where it is quick enough, plans of the candidates that come into question are played message by message. Only with
  /// messageBytes.
  bool isPlayed = false;
};

struct NetworkCandidate {
  const Algorithm* algorithm = nullptr;
  bool isPossible = false;  // it serves the request and has a price
  double chunkBytes = 0;    // with which it was priced
  double seconds = 0;
  double alone = 0;       // of one chunk by itself, latencies and all
  double busiest = 0;     // of the whole call, at the busiest port, uplink or CPU: no cutting gets below
  bool isPlayed = false;  // seconds: found by playing the plan
  std::string reason;     // one phrase: why it comes before the others, or why not
};

/// All algorithms: the possible ones by predicted time, then the others, each as in the registry. A pure function of
/// its arguments: ranks that agree on them choose alike. At 40,960 ranks on three levels it takes less
/// than a fifth of a second, cut as is best twice as long.
std::vector<NetworkCandidate> priceNetworkAlgorithms(const NetworkQuestion& question, const CostMap& map);

/// Gives candidates that are in order their reasons, as above.
void giveReasons(std::vector<NetworkCandidate>& candidates, const PlanRequest& request);

/// The seconds of one algorithm that serves the request, by what it exchanges alone.
double quickPrice(const Algorithm& algorithm, const NetworkQuestion& question, const CostMap& map);

}  // namespace tacc
