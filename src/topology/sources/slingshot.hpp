// What the programs of a Slingshot network print: its cards and its links.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/sources/cray.hpp"
#include "topology/sources/host_clues.hpp"

namespace tacc {

/// Bytes a second of what Slingshot's programs call a link's speed: letters and a number of Gbit/s, such as BS_200G or
/// ck400G. Nothing for other text.
std::optional<double> parseSlingshotSpeed(std::string_view text);

/// The links between the switches of a Slingshot network, as `show fabric` of HPE's Slingshot topology tool lists them:
/// a table with a row for each port of each switch that leads to another one.
///
///   |      xname      |  type  |      dst      | ... | status | ... |        mac        | ... |  speed  |
///   | x3001c0r41j31p1 | fabric | x3000c0r41j13 | ... |  True  | ... | 02:00:00:00:08:31 | ... | BS_200G |
///
/// Columns are known by their names and may stand in any order. A port's address tells its group and switch, as those
/// of cards do; `dst` is the jack at the other end, behind the name of its switch.
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

/// The cards of Slingshot hosts, as `cxi_stat` lists them, each line behind its host's name: what `pdsh cxi_stat`
/// prints.
///
///   nid000001: Device: cxi0
///   nid000001:     MAC: 02:00:00:00:07:ea
///   nid000001:         Link speed: BS_200G
///   nid000001:         Link state: up
///
/// Lines of several hosts may be mixed, those of one stand in the order in which it printed them. All but these four
/// are passed over. A speed is some letters and a number of Gbit/s: BS_200G, ck400G.
class CxiStat {
 public:
  /// Whether a line's words look like one of the list.
  static bool isLine(std::span<const std::string_view> words);
  /// Takes a line. Throws Error (taccInvalidArgument) with what is wrong in it.
  void add(std::span<const std::string_view> words);
  /// Adds the cards whose links are up to the hosts of these names, and hosts that are missing. Throws Error
  /// (taccInvalidArgument) for a host without any such card.
  void addTo(std::vector<HostClues>& hosts) const;

 private:
  struct Card {
    SlingshotCard card;
    bool isUp = true;
  };
  std::map<std::string, std::vector<Card>, std::less<>> cards_;  // by host
};

}  // namespace tacc
