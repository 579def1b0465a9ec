// The links of a Cray XE or XK (Gemini, a torus) and of an XC (Aries, a dragonfly), as `rtr --interconnect` lists them:
// a line for each tile of each router, what it is cabled to, and over what.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/sources/cray.hpp"

namespace tacc {

/// c0-0c0s3g1: router 1 of a blade. An Aries is the only one of its blade.
struct CrayRouter {
  Cname blade;  // its node: 0
  std::uint32_t number = 0;
  auto operator<=>(const CrayRouter&) const = default;
};

class CrayLinks {
 public:
  /// Whether a line's words look like one of the list.
  static bool isLink(std::span<const std::string_view> words) { return words.size() > 2 && words[2] == "->"; }
  /// Takes a line. Throws Error (taccInvalidArgument) with what is wrong in it.
  void add(std::span<const std::string_view> words);
  bool isEmpty() const noexcept { return links_.empty(); }

  /// The topology of these hosts, all of which have a cname. Gemini: routers in a torus, which the routers with hosts
  /// must fill; Aries: blades, chassis and pairs of cabinets, with what leaves each of them. Throws Error
  /// (taccInvalidArgument).
  Topology topologyOf(std::span<const HostClues> hosts) const;

 private:
  using Coordinates = std::array<std::uint32_t, 3>;
  struct Link {
    CrayRouter from, to;
    std::string kind;  // Gemini: the direction, "X+"; Aries: the color
    double bandwidth;
  };
  Topology torusOf(std::span<const HostClues> hosts) const;
  Topology dragonflyOf(std::span<const HostClues> hosts) const;

  bool isGemini_ = false;
  std::vector<Link> links_;
  std::map<CrayRouter, Coordinates> places_;
};

}  // namespace tacc
