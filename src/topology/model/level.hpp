// One tier of a machine or a network: what it is, and what a message costs that crosses it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tacc {

/// From the inside to the outside. A leaf is a switch that hosts are plugged into, or a supernode; the root joins all.
enum class LevelKind : std::uint8_t { core, cache, numa, die, socket, node, leaf, group, root };
inline constexpr std::array<std::string_view, 9> levelKindNames = {"core", "cache", "numa",  "die", "socket",
                                                                   "node", "leaf",  "group", "root"};
constexpr std::string_view nameOf(LevelKind kind) noexcept { return levelKindNames[static_cast<std::size_t>(kind)]; }

/// How the groups inside one group of a level are joined. tree: through switches, so that only uplinks limit. torus:
/// each with its neighbours in a grid that is closed in every dimension. allToAll: each with each, as in a dragonfly.
enum class Wiring : std::uint8_t { tree, torus, allToAll };
inline constexpr std::array<std::string_view, 3> wiringNames = {"tree", "torus", "all-to-all"};
constexpr std::string_view nameOf(Wiring wiring) noexcept { return wiringNames[static_cast<std::size_t>(wiring)]; }

inline constexpr std::uint32_t mostRails = 1024;

/// A level of the network. What nobody has said is empty.
struct Level {
  LevelKind kind = LevelKind::leaf;
  std::string name;                 // as it is called here, e.g. "supernode"
  std::optional<double> alpha;      // seconds of a short message between hosts that meet at this level
  std::optional<double> bandwidth;  // bytes/s of one stream between such hosts, alone on the network
  std::optional<double> uplink;     // bytes/s, each way, that the members of one group share to the outside
  // Networks side by side over which hosts meet at this level, none touching another on the way, each host with a card
  // in every one; of the node: its cards. One stream goes through one of them, an uplink is that of all together.
  std::uint32_t rails = 1;

  Wiring wiring = Wiring::tree;
  std::vector<std::uint32_t> dimensions;  // torus: groups of the level below in each dimension, the last varies fastest
  std::uint32_t links = 0;                // torus: between neighbours; allToAll: between each two; tree: not used
  std::optional<double> linkBandwidth;    // bytes/s of one such link, each way

  /// Seconds a byte of one stream.
  std::optional<double> beta() const { return bandwidth ? std::optional(1 / *bandwidth) : std::nullopt; }
  /// "25x16x24".
  std::string dimensionsText(std::string_view between = "x") const {
    std::string text;
    for (const std::uint32_t extent : dimensions) {
      if (!text.empty()) text += between;
      text += std::to_string(extent);
    }
    return text;
  }
  bool operator==(const Level&) const = default;
};

}  // namespace tacc
