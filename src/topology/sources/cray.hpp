// Where a Cray host stands, read from names: the cname of XT, XE and XC machines, the xname of EX machines, and the
// addresses of Slingshot cards.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "topology/model/topology.hpp"
#include "topology/sources/host_clues.hpp"

namespace tacc {

/// c0-1c2s3n0: cabinet 0 of row 1, chassis 2, slot (blade) 3, node 0. On an XC a blade is one Aries router, and two
/// cabinets side by side are one group of the dragonfly.
struct Cname {
  std::uint32_t cabinet = 0, row = 0, chassis = 0, slot = 0, node = 0;
  auto operator<=>(const Cname&) const = default;
};
std::optional<Cname> parseCname(std::string_view text);
/// Names of its blade, its chassis and its pair of cabinets.
std::array<std::string, 3> groupsOfCname(const Cname& name);

/// x1000c0s1b0n0: cabinet, chassis, slot, board, node.
struct Xname {
  std::uint32_t cabinet = 0, chassis = 0, slot = 0, board = 0, node = 0;
};
std::optional<Xname> parseXname(std::string_view text);

/// The group and the switch in it that a Slingshot card is plugged into, out of its address 02:00:00:xx:xx:xx: 9 bits
/// group, 5 bits switch, 6 bits port. Nothing for other addresses.
struct SlingshotPlace {
  std::uint32_t group = 0, switchInGroup = 0, port = 0;
};
std::optional<SlingshotPlace> parseSlingshotMac(std::string_view text);
/// Names of its switch and its group.
std::array<std::string, 2> groupsOfSlingshot(const SlingshotPlace& place);

/// The topology of hosts that all have a cname, or else all an xname; empty otherwise. Throws Error
/// (taccInvalidArgument), naming the host, for a name that is none.
Topology topologyFromCrayNames(std::span<const HostClues> hosts);
/// The same from the address of each host's first Slingshot card; empty unless all hosts have one.
Topology topologyFromSlingshot(std::span<const HostClues> hosts);

}  // namespace tacc
