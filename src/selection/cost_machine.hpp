// A machine as the cost model sees it: levels of groups of ranks, and what messages cost at each.
#pragma once

#include <cstddef>
#include <vector>

namespace tacc {

/// One level. Two ranks that share a group here but not further inside meet at this level. Links are full duplex.
struct CostLevel {
  std::vector<int> begins;          // first rank of every group; groups are consecutive ranks, begins[0] is 0
  double alpha = 0;                 // seconds of a short message between ranks that meet here
  double beta = 0;                  // seconds per byte of one stream between them
  double uplinkBytesPerSecond = 0;  // of each group's link to what is outside, each direction; 0: never the limit
};

struct CostMachine {
  int ranks = 1;
  std::vector<CostLevel> levels;  // innermost first; the last one is a single group of all ranks
  double portBytesPerSecond = 0;  // of one rank, each direction; 0: as fast as the fastest stream
  double gamma = 0;               // seconds per byte that is combined or copied in memory
  double overhead = 0;            // seconds of CPU per message, at either end
};

/// A level of groups of `size` ranks; the last one may be smaller.
std::vector<int> groupsOfSize(int ranks, int size);

/// Answers about the machine, prepared once: a lookup is constant in the number of ranks.
class CostMap {
 public:
  /// Throws taccInvalidArgument, with a sentence that names the level, if the levels are not nested groups of the
  /// ranks.
  explicit CostMap(CostMachine machine);

  const CostMachine& machine() const noexcept { return machine_; }
  int ranks() const noexcept { return machine_.ranks; }
  int levels() const noexcept { return static_cast<int>(machine_.levels.size()); }
  const CostLevel& level(int l) const { return machine_.levels[static_cast<std::size_t>(l)]; }
  int groups(int l) const { return static_cast<int>(level(l).begins.size()); }
  int groupOf(int rank, int l) const { return groupOf_[static_cast<std::size_t>(l)][static_cast<std::size_t>(rank)]; }
  int beginOf(int group, int l) const { return level(l).begins[static_cast<std::size_t>(group)]; }
  int endOf(int group, int l) const { return group + 1 < groups(l) ? beginOf(group + 1, l) : ranks(); }
  /// The level at which two ranks meet.
  int meet(int a, int b) const;
  double port() const noexcept { return port_; }  // bytes per second

 private:
  CostMachine machine_;
  std::vector<std::vector<int>> groupOf_;  // per level and rank
  double port_;
};

}  // namespace tacc
