// The cards of Slingshot hosts, as `cxi_stat` lists them, each line behind its host's name: what `pdsh cxi_stat`
// prints.
//
//   nid000001: Device: cxi0
//   nid000001:     MAC: 02:00:00:00:07:ea
//   nid000001:         Link speed: BS_200G
//   nid000001:         Link state: up
//
// Lines of several hosts may be mixed, those of one stand in the order in which it printed them. All but these four are
// passed over. A speed is some letters and a number of Gbit/s: BS_200G, ck400G.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/sources/host_clues.hpp"

namespace tacc {

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
