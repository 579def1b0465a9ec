// What a plan becomes for one rank among ranks that only messages connect.
//
// The steps stay as they are, in order. What is added is all that is known before the call: which message each send and
// receive is, where a received message lands (straight in the output, or in a slot until its step combines it), when a
// landing place is free to be written, and which sends must be over before a step overwrites what they send.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// Memory of one rank during a call. A block of a split vector has the same index in all kinds but the slots.
struct NetworkPlace {
  enum class Kind : std::uint8_t {
    input,
    output,
    scratch,
    arrived,  // receive number `index`, wherever it landed
    slot,     // outgoing slot number `index`
  };
  Kind kind;
  std::int32_t index;
};

struct NetworkReceive {
  std::int32_t peer;    // a rank of the plan
  std::int32_t number;  // of its first block among the blocks that come from `peer` in one chunk
  std::int32_t block;   // as in Step
  std::int32_t blockCount;
  bool isDirect;  // lands in `to`, else in incoming slot `to.index`
  NetworkPlace to;
  std::int32_t postBefore;  // may be posted once the steps before this one are done
  bool isCombined = false;  // with others, by its step; nothing else reads it
};

struct NetworkSend {
  std::int32_t peer;
  std::int32_t number;  // as of a receive
  std::int32_t block;
  std::int32_t blockCount;
  NetworkPlace from;
};

struct NetworkStep {
  std::int32_t block;
  std::int32_t blockCount;
  std::vector<NetworkPlace> sources;
  std::vector<NetworkPlace> destinations;  // own memory, also the slot that sends read; empty: nothing to compute
  std::vector<std::int32_t> receives;      // to be complete before
  std::vector<std::int32_t> sends;         // to be started after
  std::vector<std::int32_t> afterSends;    // sends of earlier steps that read what this one writes
  std::vector<std::uint8_t> completes;     // per block: the result holds all contributions
};

struct NetworkProgram {
  std::string algorithm;
  Partition partition = Partition::split;
  int blocks = 1;
  int scratchBlocks = 0;
  int incomingSlots = 0;  // in blocks
  int outgoingSlots = 0;
  bool roundsOnce = true;  // as in Program
  std::vector<NetworkStep> steps;
  std::vector<NetworkReceive> receives;  // in the order of their steps
  std::vector<NetworkSend> sends;
  std::vector<std::int32_t> blocksFrom;  // per rank of the plan: blocks that come from it in one chunk
  std::vector<std::int32_t> blocksTo;
};

/// Lowers `plan` for `rank`. `inPlace`: input and output are the same memory, as the plan's collective defines it.
NetworkProgram lowerForNetwork(const Plan& plan, int rank, bool inPlace);

}  // namespace tacc
