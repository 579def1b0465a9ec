// A network of switches and cables as it is plugged, and the levels that are found in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace tacc {

struct Fabric {
  struct Device {
    std::string id;    // unique, e.g. a GUID
    std::string name;  // as people call it; of a host: the host's name
    bool isSwitch = false;
  };
  struct Cable {
    std::uint32_t a = 0, b = 0;  // devices
    double bandwidth = 0;        // bytes/s each way; 0: unknown
  };
  std::vector<Device> devices;
  std::vector<Cable> cables;
};

inline constexpr std::size_t mostCables = std::size_t{1} << 23;

/// The switches that hosts are plugged into are leaves; a leaf's group has all leaves that share a host (rails). Above,
/// hosts are in one group of level h when they reach each other over switches that are less than h steps away from a
/// leaf: the pods of a fat tree. Uplinks are the sums of the cables that leave a group. Throws Error
/// (taccInvalidArgument) that names `origin` when no host is at a switch.
Topology topologyOfFabric(const Fabric& fabric, const std::string& origin);

}  // namespace tacc
