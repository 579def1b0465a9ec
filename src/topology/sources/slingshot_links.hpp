// The links between the switches of a Slingshot network, as `show fabric` of HPE's Slingshot topology tool lists them:
// a table with a row for each port of each switch that leads to another one.
//
//   |      xname      |  type  |      dst      | ... | status | ... |        mac        | ... |  speed  |
//   | x3001c0r41j31p1 | fabric | x3000c0r41j13 | ... |  True  | ... | 02:00:00:00:08:31 | ... | BS_200G |
//
// Columns are known by their names and may stand in any order. A port's address tells its group and switch, as those of
// cards do; `dst` is the jack at the other end, behind the name of its switch.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/sources/cray.hpp"

namespace tacc {

/// Bytes a second of what Slingshot's programs call a link's speed: letters and a number of Gbit/s, such as BS_200G or
/// ck400G. Nothing for other text.
std::optional<double> parseSlingshotSpeed(std::string_view text);

class SlingshotLinks {
 public:
  /// Whether a line is one of such a table.
  static bool isLine(std::string_view line);
  /// Takes a line. Throws Error (taccInvalidArgument) with what is wrong in it.
  void add(std::string_view line);
  bool isEmpty() const noexcept { return ports_.empty(); }

  /// The topology of hosts whose first card has an address: switches and groups, with what leaves each of those whose
  /// ports are listed, and the links between groups, as many as between the two with the fewest. Ports that are down do
  /// not count. Throws Error (taccInvalidArgument) for a host without such a card.
  Topology topologyOf(std::span<const HostClues> hosts) const;

 private:
  struct Port {
    std::string node, to;  // switches
    SlingshotPlace place;
    double bandwidth;
  };
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<Port> ports_;
};

}  // namespace tacc
