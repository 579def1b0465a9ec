// Networks as sites have them, drawn at random: trees of one to four levels, tori and groups that are joined each to
// each; equal and unequal groups, hosts and uplinks; links from 100 Mbit/s to 400 Gbit/s.
#pragma once

#include <cstdint>
#include <string>

#include "topology/topology.hpp"

namespace tacc::test {

/// The same number gives the same network on every machine. 2 to `mostHosts` hosts, which the topology has in its
/// order.
Topology drawNetwork(std::uint64_t number, int mostHosts);

/// One line: levels, hosts, rates.
std::string describeNetwork(const Topology& network);

}  // namespace tacc::test
