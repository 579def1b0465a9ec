// Measures what memory costs between the ranks of a host that stand in several groups, when they join.
#pragma once

#include <array>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "selection/cost/node_machine.hpp"
#include "transports/shm/node_segment.hpp"

namespace tacc {

/// What one rank has measured at every tier; 0: nothing.
struct NodeSamples {
  static constexpr int mostTiers = 8;
  struct Tier {
    double latency;   // seconds until the other one saw a word
    double alone;     // bytes/s of its copy from another's memory, while no other rank copied
    double together;  // while all did
  };
  double ownCopy;                     // bytes/s
  std::array<Tier, mostTiers> tiers;  // as NodeMachine::tiers
};

/// Collective; `assumedFigures()` where there are more ranks than cores, whose times would tell of the scheduler. The
/// arenas of the segment are used, and hold nothing afterwards. Cost: some megabytes copied, and seven exchanges a
/// tier.
NodeFigures measureNode(Bootstrap& bootstrap, const NodeSegment& segment, const NodePlaces& places, int rank,
                        bool isOversubscribed);

/// What all ranks make of the samples of each, by rank. What nobody has measured is assumed.
NodeFigures figuresOf(const std::vector<NodeSamples>& samples, const NodePlaces& places);

/// What is known of `part`, whose rank r is rank `members[r]` of `whole`: at each of its tiers what the ranks that meet
/// there cost in the whole, at the outermost of the whole's tiers at which two of them meet.
NodeFigures figuresOfPart(const NodePlaces& whole, const NodeFigures& figures, const NodePlaces& part,
                          const std::vector<int>& members);

/// The place from which a place copies for tier `tier`: that of the next group inside the tier's with its own place in
/// the group; itself where there is none.
int partnerAt(const NodePlaces& places, int tier, int place);

}  // namespace tacc
