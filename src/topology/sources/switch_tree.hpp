// Named switches with hosts and switches below them, as a topology. For sources that know a tree and no cables.
#pragma once

#include <string>
#include <vector>

#include "topology/model/topology.hpp"

namespace tacc {

struct SwitchEntry {
  std::string name;
  std::vector<std::string> hosts, children;  // names; children are other entries
  std::string where;                         // for messages: "topology.conf:12"
};

/// Levels by height: a switch whose children are at most h levels high is at level h + 1. One switch above all is the
/// root. Throws Error (taccInvalidArgument), naming the switch and `where`: an unknown or repeated switch, a loop, a
/// switch below two others (several that join the same switches, as spines do, count as one), a host
/// twice at one switch, or at one and at another above it, too many levels.
///
/// A host at several switches has rails; groups then are of hosts that are together in every rail (rails.hpp).
Topology topologyOfSwitches(const std::vector<SwitchEntry>& switches, const std::string& origin);

}  // namespace tacc
