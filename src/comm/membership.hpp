// How a rank came into a node's communicator: the memory it shares with the others, and what it knows of them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/communicator.hpp"
#include "core/environment.hpp"
#include "engine/shm/buffer_exchange.hpp"
#include "selection/cost/node_machine.hpp"
#include "topology/model/node_places.hpp"
#include "transports/shm/area_pages.hpp"
#include "transports/shm/hand_round.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/presence.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

struct Membership {
  NodeSegment segment;
  std::shared_ptr<void> memory;          // keeps the segment's memory
  std::unique_ptr<HandRound> handRound;  // null among threads
  std::shared_ptr<Presence> presence;    // null among threads, and for a single rank
  std::vector<int> processes;            // by rank
  MemoryAccess access;
  WaitPolicy policy;
  RankNames names;                                // where the node is a part of a larger communicator
  AreaPages pages;                                // of this rank
  NodePlaces places;                              // equal on all ranks
  NodeFigures figures;                            // of the places' tiers; equal on all ranks
  std::shared_ptr<const NodeDescription> inside;  // by which the places were found; equal on all ranks
  bool isInsideKnown = false;                     // it was asked for: null then means that nobody knows
  std::size_t cacheBytes = std::size_t{1} << 20;  // of a core, as rank 0 says
};

/// The sizes of the shared memory for `ranks` ranks. `isPart`: of a communicator over several hosts.
NodeGeometry chooseGeometry(int ranks, const Environment& environment, bool isPart = false);

/// Shares memory with the other processes of the host, which have met in `bootstrap` and need it no more. All agree on
/// the geometry, or all fail.
Membership joinNode(Bootstrap& bootstrap, int ranks, int rank, const Environment& environment, bool isPart = false);

/// The memberships of ranks that are threads of this process.
std::vector<Membership> makeThreadNode(int ranks, const Environment& environment);

}  // namespace tacc
