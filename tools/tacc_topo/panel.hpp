// What the parts of a topology's picture have in common: where they draw, colours, how things are called, and which of
// many groups are drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "svg.hpp"
#include "topology/model/topology.hpp"

namespace tacc {

inline constexpr double panelMargin = 24;
/// No part is wider: so in a README, which shrinks wide pictures, words stay legible.
inline constexpr double panelWidth = 1150;

/// The picture while it is drawn.
struct Canvas {
  explicit Canvas(const Topology& topology);

  const Topology& topology;
  Svg svg;
  double widest = 0;  // bytes/s of the fastest uplink
  /// Groups (level, number) whose own uplink stands beside them.
  std::set<std::pair<int, std::uint32_t>> named;
};

/// Groups [first, last) of a level that lie side by side in one group of the next; some may be left out.
struct Stretch {
  std::uint32_t first = 0, last = 0;
  bool isDrawn = true;  // it is one group, and drawn; else these are counted only
  std::uint32_t size() const { return last - first; }
  bool operator==(const Stretch&) const = default;
};

/// The groups of `level` in [first, last), as at most `most` (at least 3) runs: all of them drawn, or the first, the
/// last, those with an uplink of their own as far as there is room, and more of the first; what lies between is
/// counted.
std::vector<Stretch> choose(const Topology& topology, int level, std::uint32_t first, std::uint32_t last,
                            std::size_t most);

/// The groups of the level below inside this group: their first, and one beyond the last. `level` is above 0.
std::pair<std::uint32_t, std::uint32_t> inside(const Topology& topology, int level, std::uint32_t group);

/// The groups' names where they have some, "rack 3" where they are numbered, the level's name for the root.
std::string groupLabel(const Topology& topology, int level, std::uint32_t group);

/// The names of the hosts of groups [first, last) of a level.
std::span<const std::string> namesOf(const Topology& topology, int level, std::uint32_t first, std::uint32_t last);

/// By depth below the root: calm, with enough contrast for black words, in print too.
std::string_view fillOf(const Topology& topology, int level);

/// The uplink that this group has and its level has not.
std::optional<double> ownUplink(const Topology& topology, int level, std::uint32_t group);
/// The colour for such an uplink: it stands out where the level has a usual one.
std::string_view unlikeInk(const Topology& topology, int level);
/// Whether some group of the level has one.
bool uplinksDiffer(const Topology& topology, int level);
/// "12.5 GB/s", "10 to 25 GB/s"; empty where it is not known for all of [first, last).
std::string uplinkText(const Topology& topology, int level, std::uint32_t first, std::uint32_t last);

/// How wide a line is drawn that carries so much: the area of a cable's cross-section, so to say.
double lineWidth(const Canvas& canvas, const std::optional<double>& bytesPerSecond);

/// A heading and, below it, a sentence (it may be empty). Returns where the part itself may begin.
double panelHead(Canvas& canvas, double top, std::string_view heading, std::string_view note);

}  // namespace tacc
