// Plays a call inside a host in SimGrid: every rank a core that reads and writes, borders of groups and memories links.
#pragma once

#include "selection/cost/node_cost.hpp"

namespace tacc::sim {

/// Seconds until every rank is done, as the executor goes through the ticks of the call's schedule: a rank waits for
/// the clocks that a round needs, one after the other, and then reads what it needs, one owner after the other. Uses up
/// this process's SimGrid.
double replayOnNode(const NodeWork& work, const NodeMachine& machine, const NodeCall& call);

}  // namespace tacc::sim
