// The messages of a plan and the work at their ends: what a simulator replays, whichever it is.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

struct TrafficMessage {
  int sender = 0, receiver = 0;
  int pair = 0;      // of sender and receiver; those of one pair follow one another in the order of their numbers
  double bytes = 0;  // of one chunk
};

/// A step begins when its receives are there; its sends start when it is over.
struct TrafficStep {
  std::vector<int> receives, sends;  // messages
  double seconds = 0;                // of the rank's CPU
};

struct MessageGraph {
  std::vector<TrafficMessage> messages;
  std::vector<std::vector<TrafficStep>> steps;  // per rank
  std::size_t pairs = 0;

  /// For chunks of `chunkBytes` (split: of the vector; stack: of a block). `overhead`: seconds for a message between
  /// two ranks at either end; `gamma`: seconds for a byte that is combined with another, or copied in memory.
  MessageGraph(const Plan& plan, double chunkBytes, const std::function<double(int, int)>& overhead, double gamma);
  MessageGraph(const Plan& plan, double chunkBytes, double overhead, double gamma)
      : MessageGraph(
            plan, chunkBytes, [overhead](int, int) { return overhead; }, gamma) {}
};

}  // namespace tacc
