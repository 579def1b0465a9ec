// What a call would take inside a host: plays the plan's work round by round on the host's tiers.
#pragma once

#include <cstddef>

#include "selection/cost/node_machine.hpp"
#include "selection/cost/node_work.hpp"

namespace tacc {

/// How the engine cuts a call (engine/schedule.hpp).
struct NodeCall {
  double bytes = 0;  // split: of the vector; stack: of one block
  std::size_t stagingBytes = 512 * 1024;
  std::size_t arenaBytes = 2048 * 1024;
};

struct NodeCost {
  double seconds = 0;
  double alone = 0;  // of one chunk by itself
  double cores = 0;  // of the whole call: what the busiest rank's core does
  double waits = 0;  // of that, looking at clocks
  double links = 0;  // of the whole call, at the busiest border between groups, or memory domain
  int chunks = 1;
};

/// Whether the arena has room for a few lines of every slot.
bool fits(const NodeWork& work, const NodeCall& call);

/// Whether the call's buffers are more than the caches hold.
bool comesFromMemory(const NodeWork& work, const NodeMachine& machine, const NodeCall& call);

/// How many ticks after a chunk the next one starts.
int advanceOf(const NodeWork& work) noexcept;

/// Chunks of the call, as makeSchedule() cuts it.
int chunksOf(const NodeWork& work, const NodeCall& call);

/// A rank does the rounds of a chunk in order: it waits for the clocks that it needs, each a cache line that comes from
/// as far as its owner is, then its core reads and writes, at the speed of the tier at which it meets what it reads.
/// What the ranks of a group read from outside in one round shares the group's border, call buffers that exceed the
/// caches their domain's memory; a rank that takes part is done no earlier than its round's bytes fit through. Chunks
/// follow one another at the pace of the busiest core, border or memory. Nothing is cached for another reader: ranks
/// that read the same bytes from outside fetch them each. Cost: that of passing over the work twice.
NodeCost priceOnNode(const NodeWork& work, const NodeMachine& machine, const NodeCall& call);

/// The posts of one call in which everybody posts `posted` bytes and `reads` of them are read by everyone (eager): root
/// < 0: from everybody; `fromRoot`: from the root only; else the root from everybody.
struct EagerPosts {
  double posted = 0;
  double reads = 0;
  int root = -1;
  bool fromRoot = false;
};
double priceEager(const EagerPosts& posts, const NodeMachine& machine);

/// What a plan costs beside its work: everybody looks at everybody's call line, and the engine sets out.
double priceEntry(const NodeMachine& machine);

}  // namespace tacc
