// A topology as JSON: everything written out, for other programs.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace tacc {

/// "hosts": each with its name and its own link. "levels", from the inside to the outside: figures, how the groups of
/// the level below are joined, and the groups, each with its hosts and its uplink. Seconds and bytes per second; null
/// where nobody said.
std::string topologyToJson(const Topology& topology);

}  // namespace tacc
