// Networks as sites have them, drawn at random: trees of one to four levels, tori and groups that are joined each to
// each; equal and unequal groups, hosts and uplinks; links from 100 Mbit/s to 400 Gbit/s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/model/topology.hpp"

namespace tacc::test {

/// The same number gives the same network on every machine. 2 to `mostHosts` hosts, which the topology has in its
/// order.
Topology drawNetwork(std::uint64_t number, int mostHosts);

/// What the first kind leaves out, and a job on it. Groups of very unequal sizes; groups one of which is a single host;
/// tori and joined groups with unequal numbers of hosts at their places; four or five levels with one narrow uplink in
/// the middle; sites that are joined by links of 10 ms; hosts of several generations; several cards. On half of them
/// the hosts have several ranks each, on some unequal numbers.
struct OddNetwork {
  Topology topology;
  std::vector<int> ranksOf;  // by host
};
OddNetwork drawOddNetwork(std::uint64_t number, int mostHosts);

/// Hosts alike but for one to three whose own links carry a twelfth to six tenths of the others'; at times a whole
/// group is so. One group or up to four, equal or not, with uplinks from a half of what their hosts send to twice that.
Topology drawNarrowHosts(std::uint64_t number, int mostHosts);

/// One line: levels, hosts, rates.
std::string describeNetwork(const Topology& network);

}  // namespace tacc::test
