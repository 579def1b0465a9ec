// Sunway TaihuLight: 256 nodes are a supernode, and a node's name is its number (vn000123).
#pragma once

#include <span>
#include <string>

#include "topology/model/topology.hpp"

namespace tacc {

inline constexpr std::uint64_t nodesOfSupernode = 256;

/// Whether a name is "vn" and digits.
bool isSunwayHost(std::string_view name) noexcept;

/// Groups hosts by number / 256. Empty unless all are Sunway hosts.
Topology topologyFromSunwayHosts(std::span<const std::string> hosts);

}  // namespace tacc
