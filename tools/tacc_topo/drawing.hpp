// A topology as a picture: one SVG file that needs nothing else.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace tacc {

/// Levels from the root at the top to hosts at the bottom. Wide topologies are shortened: of many equal groups the
/// first and the last are drawn, and what stands for the rest says how many there are.
std::string drawing(const Topology& topology);

}  // namespace tacc
