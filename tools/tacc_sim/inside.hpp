// Calls inside one described host: what the library would choose there, and what SimGrid finds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/plan.hpp"
#include "selection/cost/node_cost.hpp"
#include "topology/model/node_description.hpp"

namespace tacc::sim {

struct InsideQuestion {
  std::string host;  // its name, for the heading
  NodeDescription node;
  int ranks = 0;  // one a core, spread evenly over them; at most as many as there are cores
  std::vector<Collective> collectives;
  std::vector<double> sizes;            // bytes of the vector, or of all blocks together
  std::vector<std::string> algorithms;  // played in SimGrid; empty: those within four times of the least price
};

/// replayOnNode() in a process of its own. `name`: of the plan, for messages.
double playApart(const NodeWork& work, const NodeMachine& machine, const NodeCall& call, std::string_view name);

/// A table for each collective and size: every candidate with its price, and its time by SimGrid where it was played,
/// each in a process of its own. The figures of the host are assumed (assumedFigures).
std::string playInside(const InsideQuestion& question);

}  // namespace tacc::sim
