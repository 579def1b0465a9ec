// A topology as JSON: everything written out, for other programs.
#pragma once

#include <string>

#include "topology/model/topology.hpp"

namespace tacc {

/// "rails": the cards of a host. "hosts": each with its name and what its cards carry together. "levels", from the
/// inside to the outside: figures, rails, how the groups of the level below are joined, and the groups, each with its
/// hosts and its uplink. Seconds and bytes per second; null where nobody said.
std::string topologyToJson(const Topology& topology);

}  // namespace tacc
