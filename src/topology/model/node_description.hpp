// What is inside one host: its cores, and the caches, NUMA nodes and sockets that they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/model/level.hpp"
#include "topology/model/nesting.hpp"

namespace tacc {

class Digest;

/// A tier between core and node.
struct InnerLevel {
  LevelKind kind = LevelKind::numa;  // cache, numa, die or socket
  double bytes = 0;                  // of one cache; 0: unknown, and for other kinds
  bool operator==(const InnerLevel&) const = default;
};

/// A value. Cores stand in the order of a walk: those that share more are nearer to each other.
struct NodeDescription {
  std::vector<std::vector<std::uint32_t>> cores;  // the system's numbers of each core's hardware threads
  std::vector<InnerLevel> levels;                 // from the inside; [i] is level i + 1 of the nesting
  Nesting nesting;                                // over the cores

  /// The core with this hardware thread.
  std::optional<std::uint32_t> coreOf(std::uint32_t cpu) const;
  /// How many there are of a kind; 1 where the kind is no level here.
  std::uint32_t count(LevelKind kind) const;
  /// "2 sockets, 4 numa, 16 cache (32 MiB), 64 cores, 128 threads".
  std::string summary() const;
  void addTo(Digest& digest) const;
  bool operator==(const NodeDescription&) const = default;
};

/// "0-63+64-127": cores 0 to 63, each with a second thread, 64 to 127. Threads of a core are joined by '+', ranges are
/// counted together.
std::string formatCpus(const std::vector<std::vector<std::uint32_t>>& cores);
/// Throws Error (taccInvalidArgument), which names `where`, for other text and for a cpu that stands twice.
std::vector<std::vector<std::uint32_t>> parseCpus(std::string_view text, std::string_view where);

/// "4*16" : four groups of 16 cores; "8,4*2" : one of 8 and four of 2. The starts of the groups.
std::string formatSizes(const Nesting& nesting, int level);
std::vector<std::uint32_t> parseSizes(std::string_view text, std::uint32_t cores, std::string_view where);

inline constexpr std::uint32_t mostCores = 65536;  // of one host

}  // namespace tacc
