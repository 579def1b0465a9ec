// A topology as a picture: one SVG file that needs nothing else.
#pragma once

#include <string>

#include "topology/model/topology.hpp"

namespace tacc {

/// A table of the levels; the network from the outside to the inside, one part for each way in which groups are joined;
/// uplinks that differ; the inside of each kind of host. However large the topology is, the picture stays readable and
/// below 1 MB: of many groups some are drawn, and what stands for the others says how many they are.
std::string drawing(const Topology& topology);

}  // namespace tacc
