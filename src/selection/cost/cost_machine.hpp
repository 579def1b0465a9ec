// A machine as the cost model sees it: levels of groups of ranks, and what messages cost at each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "topology/model/torus.hpp"

namespace tacc {

/// What each of some links carries, bytes per second in each direction; 0: it is never the limit.
class Capacities {
 public:
  // Conversions on purpose: a machine is written down as a list of figures.
  Capacities(double ofAll = 0) : ofAll_(ofAll) {}  // NOLINT(google-explicit-constructor)
  /// The capacities of one link after the other.
  Capacities(std::vector<double> ofEach) : each_(std::move(ofEach)) {}  // NOLINT(google-explicit-constructor)

  double of(int link) const { return each_.empty() ? ofAll_ : each_[static_cast<std::size_t>(link)]; }
  /// That of the slowest link that is ever a limit; 0: none is.
  double least() const noexcept;
  /// That of the fastest link; 0 where one is never a limit.
  double most() const noexcept;
  bool limit() const noexcept { return least() > 0; }
  /// Whether there is a figure for each of `links` links, or one for all; none is negative.
  bool fit(int links) const noexcept;
  void divideBy(double factor) noexcept;

 private:
  double ofAll_ = 0;
  std::vector<double> each_;  // empty: all are alike
};

/// One level. Two ranks that share a group here but not further inside meet at this level. Links are full duplex.
struct CostLevel {
  std::vector<int> begins;  // first rank of every group; groups are consecutive ranks, begins[0] is 0
  double alpha = 0;         // seconds of a short message between ranks that meet here
  double beta = 0;          // seconds per byte of one stream between them
  Capacities uplinks = 0;   // of each group's link to what is outside

  // What joins the members of a group (the groups one level inside; innermost: ranks), where that is not a switch.
  std::vector<std::uint32_t> dimensions = {};  // sides of a torus; empty: each is joined to each
  std::vector<std::uint32_t> places = {};      // of a torus: where each member is, the last coordinate running fastest
  double linkBytesPerSecond = 0;               // of one link, each direction; 0: links are never the limit

  double overhead =
      -1;  // seconds of CPU per message between ranks that meet here, at either end; negative: the machine's
};

struct CostMachine {
  int ranks = 1;
  std::vector<CostLevel> levels;  // innermost first; the last one is a single group of all ranks
  Capacities ports = 0;           // of each rank; 0: as fast as the fastest stream
  double gamma = 0;               // seconds per byte that is combined or copied in memory
  double overhead = 0;            // seconds of CPU per message, at either end
  double crowding = 1;  // for how many each other message on a link counts, where they are played; 1: for itself
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
  /// Seconds of CPU per message between ranks that meet at level `l`, at either end.
  double overhead(int l) const { return level(l).overhead < 0 ? machine_.overhead : level(l).overhead; }
  /// Members of the groups of a level, and which of them a rank is in.
  int members(int l) const { return l == 0 ? ranks() : groups(l - 1); }
  int memberOf(int rank, int l) const { return l == 0 ? rank : groupOf(rank, l - 1); }
  /// Links between the members of a level's groups, numbered from 0; none where they are never the limit.
  std::size_t wires(int l) const { return wires_[static_cast<std::size_t>(l)]; }
  /// Calls visit(number of the link) for each that a message crosses between two ranks which meet at `l`.
  template <class Visit>
  void alongWires(int l, int from, int to, const Visit& visit) const {
    if (wires(l) == 0) return;
    const auto a = static_cast<std::size_t>(memberOf(from, l)), b = static_cast<std::size_t>(memberOf(to, l));
    const CostLevel& level = this->level(l);
    if (level.dimensions.empty()) return visit(a * static_cast<std::size_t>(members(l)) + b);
    const std::size_t first =
        wires(l) / static_cast<std::size_t>(groups(l)) * static_cast<std::size_t>(groupOf(from, l));
    alongTorus(level.dimensions, level.places[a], level.places[b],
               [&](const TorusHop& hop) { visit(first + numberOf(hop, level.dimensions.size())); });
  }
  /// Bytes per second of a rank's port, and of the slowest of all.
  double port(int rank) const noexcept { return ports_.of(rank) > 0 ? ports_.of(rank) : fastest_; }
  double port() const noexcept { return leastPort_; }
  /// What a stream of every rank gets where all of them send over the narrowest link at the same time.
  double leastShare() const;

 private:
  std::size_t countWires(int l) const;

  CostMachine machine_;
  std::vector<std::vector<int>> groupOf_;  // per level and rank
  std::vector<std::size_t> wires_;         // per level
  Capacities ports_;
  double fastest_, leastPort_;
};

}  // namespace tacc
