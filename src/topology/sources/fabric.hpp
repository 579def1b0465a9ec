// A network of switches and cables as it is plugged, and the levels that are found in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/model/topology.hpp"

namespace tacc {

struct Fabric {
  /// inside: a part of a switch that looks like a card, as what reduces messages for SHARP.
  enum class Kind : std::uint8_t { card, switching, inside };
  struct Device {
    std::string id;    // unique, e.g. a GUID
    std::string name;  // as people call it; of a card: its host; empty: it does not say
    Kind kind = Kind::card;
    std::string system = {};  // what its host or chassis is known by, e.g. a GUID; empty: unknown
  };
  struct Cable {
    std::uint32_t a = 0, b = 0;  // devices
    double bandwidth = 0;        // bytes/s each way; 0: unknown
  };
  std::vector<Device> devices;
  std::vector<Cable> cables;
};

inline constexpr std::size_t mostCables = std::size_t{1} << 23;

/// Hosts are cards of one name; a card without one is in the host of that name which alone has cards of its system,
/// else its system is a host with a name made of the system's.
///
/// Hosts are together in the first level when their cards are in the same leaf switches: several are rails. Above, in
/// level h, when they reach each other over switches that are less than h steps away from a leaf, as in the pods of a
/// fat tree, in every rail: where rails group hosts differently, a group is what no rail parts. A host that lacks cards
/// of a group's rails is in that group if it has others of it; of several such, in the largest. A switch with few hosts
/// that would join what is apart without it, such as a core switch with a login host, is no leaf: its hosts are a
/// group of their own up to the level that the switch joins.
///
/// The uplink of a group is the sum of the cables that leave it, over all its rails; of those of a leaf that groups
/// share, the part that it has of the cards there. Throws Error (taccInvalidArgument) that names `origin` when no host
/// is at a switch.
Topology topologyOfFabric(const Fabric& fabric, const std::string& origin);

}  // namespace tacc
