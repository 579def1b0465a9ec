// What a source writes down: hosts, and for every level the name of each host's group. build() checks it and brings it
// into the one order that all hosts agree on, whatever order the source found things in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/model/topology.hpp"

namespace tacc {

struct LevelDraft {
  Level level;
  std::vector<std::string> groupOf;       // by host: the name of its group, unique in this level
  std::map<std::string, double> uplinks;  // bytes/s of groups that differ from level.uplink
  bool hasNames = true;                   // the groups' names mean something to people
};

struct TopologyDraft {
  std::string name;
  std::vector<std::string> hosts;
  Level node, root;                                // kinds need not be set
  std::map<std::string, double> hostUplinks = {};  // bytes/s of hosts that differ from node.uplink
  std::vector<LevelDraft> levels;                  // between node and root, from the inside
  std::vector<NodeDescription> nodes;
  std::vector<std::optional<std::uint32_t>> nodeOf;  // by host, into nodes; empty: no host is described
};

inline constexpr std::size_t mostLevels = 32;

/// The topology. Hosts and groups are sorted by name (node2 before node10), so that the order in which a source met
/// them does not matter; where a level is a torus, the given order is its coordinates and stays. Throws Error
/// (taccInvalidArgument): a host that stands twice; a group that lies in two groups of a higher level; figures that are
/// not above 0; dimensions that do not fit.
Topology build(TopologyDraft draft);

/// The draft that builds this topology.
TopologyDraft draftOf(const Topology& topology);

}  // namespace tacc
