// Topologies drawn at random: trees, tori and all-to-all groups in each other, with names and figures of all kinds.
#pragma once

#include <cstdint>

#include "topology/model/topology.hpp"

namespace tacc::test {

/// The same for the same seed; up to some ten thousand hosts.
Topology drawnTopology(std::uint32_t seed);

}  // namespace tacc::test
