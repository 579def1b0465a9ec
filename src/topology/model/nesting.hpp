// Groups within groups over a row of leaves: every group is a run of leaves, so a tree of 40,960 leaves is a few
// arrays.
#pragma once

#include <cstdint>
#include <vector>

namespace tacc {

/// Leaves first to last - 1.
struct LeafRange {
  std::uint32_t first = 0, last = 0;
  std::uint32_t size() const noexcept { return last - first; }
  bool operator==(const LeafRange&) const = default;
};

/// Level 0 is the leaves themselves; each level above groups those of the level below.
class Nesting {
 public:
  explicit Nesting(std::uint32_t leaves = 0) : leaves_(leaves) {}

  /// Adds a level above the last. `starts`: the first leaf of each group, rising, from 0. False, and nothing is added,
  /// when a group of the last level would be cut.
  [[nodiscard]] bool add(std::vector<std::uint32_t> starts);

  std::uint32_t leaves() const noexcept { return leaves_; }
  int levels() const noexcept { return static_cast<int>(levels_.size()) + 1; }
  std::uint32_t groups(int level) const;
  LeafRange leavesOf(int level, std::uint32_t group) const;
  /// The group of `level` in which a leaf lies. Constant time.
  std::uint32_t groupOf(int level, std::uint32_t leaf) const;
  /// The lowest level at which two leaves lie in one group; 0 for a leaf and itself; levels() if they share none.
  int meet(std::uint32_t a, std::uint32_t b) const;

  bool operator==(const Nesting&) const = default;

 private:
  struct Level {
    std::vector<std::uint32_t> starts, groupOf;
    bool operator==(const Level&) const = default;
  };
  const Level& at(int level) const { return levels_[static_cast<std::size_t>(level) - 1]; }

  std::uint32_t leaves_;
  std::vector<Level> levels_;  // [l - 1] is level l
};

}  // namespace tacc
