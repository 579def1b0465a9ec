// What a plan does to the memory of a host: who reads how much of whose memory in which round, and waits for whom.
#pragma once

#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// Counted in blocks of the plan.
struct NodeRead {
  int owner = 0;  // in whose memory it lies
  double blocks = 0;
  bool isOfCall = false;  // in a buffer of the call; else in a slot or in scratch
};

/// What a rank does in one round.
struct NodeTurn {
  int round = 0;
  std::vector<int> senders;     // whose clocks it waits for
  std::vector<int> sendRounds;  // of each, the last round that must be over
  std::vector<NodeRead> reads;  // one an owner and kind of memory
  double writes = 0;            // of slots and scratch
  double writesOfCall = 0;      // of the call's buffers
};

/// As the engine lowers the plan (engine/shm/program.hpp): staged in slots, or, `isDirect`, by reference wherever what
/// is sent lies in a buffer of the call as it is.
struct NodeWork {
  int blocks = 1;  // split: of the vector; stack: 1
  int rounds = 0;
  int volume = 0;                            // blocks of slots, or of scratch, on the rank that needs the most
  int slotReach = 0;                         // the most rounds between a slot's writing and its last reading
  std::vector<std::vector<NodeTurn>> ranks;  // in order of rounds; rounds without work are left out

  NodeWork(const Plan& plan, bool isDirect);
};

}  // namespace tacc
