// The inside of a host as the cost model sees it: tiers of groups of ranks, and what memory costs across each.
#pragma once

#include <string>
#include <vector>

#include "core/index.hpp"
#include "topology/model/level.hpp"
#include "topology/model/node_places.hpp"

namespace tacc {

/// What is known of the route between ranks that meet at one tier.
struct TierFigures {
  double latency = 0;  // seconds until a rank sees what another one has just written
  double copy = 0;     // bytes/s at which a core copies from another's memory into its own
  double uplink = 0;   // bytes/s that all ranks of a group read from outside it together; 0: no limit
  friend bool operator==(const TierFigures&, const TierFigures&) = default;
};

/// The figures of one host, agreed by its ranks.
struct NodeFigures {
  std::vector<TierFigures> tiers;  // as NodeMachine::tiers
  double ownCopy = 0;              // bytes/s at which a core copies in its own memory
  double memory = 0;               // bytes/s that one memory domain reads and writes; 0: no limit
  bool isMeasured = false;         // by these ranks; else assumed
};

/// Two ranks that share a group here, but not further inside, meet at this tier.
struct NodeTier {
  LevelKind kind = LevelKind::node;
  std::vector<int> begins;  // the first place of every group; of the last tier: one group
  TierFigures figures;
};

/// Places are those of NodePlaces: plans number the ranks by them.
class NodeMachine {
 public:
  /// `figures.tiers`: one more than the levels of the places, for the whole host.
  NodeMachine(const NodePlaces& places, const NodeFigures& figures, double cacheBytes);

  int ranks() const noexcept { return ranks_; }
  const std::vector<NodeTier>& tiers() const noexcept { return tiers_; }
  /// Nobody knows of any difference between the ranks.
  bool isFlat() const noexcept { return tiers_.size() == 1; }
  /// The tier at which two places meet; -1 for a place and itself.
  int meet(int a, int b) const noexcept;
  int groupOf(int tier, int place) const { return groupOf_[at(tier)][at(place)]; }
  int groups(int tier) const { return static_cast<int>(tiers_[at(tier)].begins.size()); }
  /// The memory in which a place's buffers lie.
  int domainOf(int place) const { return domainTier_ < 0 ? 0 : groupOf(domainTier_, place); }
  int domains() const { return domainTier_ < 0 ? 1 : groups(domainTier_); }
  double memory() const noexcept { return memory_; }
  /// Call buffers that are longer come from memory and go there.
  double cacheBytes() const noexcept { return cacheBytes_; }
  /// Seconds a byte for a core to read from a place that it meets at `tier` (-1: its own), and to write its own.
  double readSeconds(int tier) const { return readSeconds_[at(tier + 1)]; }
  double writeSeconds() const noexcept { return readSeconds_[0]; }
  double latency(int tier) const { return tiers_[at(tier)].figures.latency; }

  /// A line for each tier, innermost first.
  std::string describe() const;

 private:
  int ranks_;
  std::vector<NodeTier> tiers_;
  std::vector<std::vector<int>> groupOf_;  // [tier][place]
  std::vector<double> readSeconds_;
  double memory_, cacheBytes_, ownCopy_;
  int domainTier_ = -1;
  bool isMeasured_;
};

/// Figures where nothing was measured. Assumed: a core copies 10 GB/s in its own memory and sees a line after 100 ns;
/// each kind of border makes that three quarters and one and a half; what the ranks of a group read from outside is at
/// most what a quarter of them could read, four at the least, as links between sockets carry that of some cores.
NodeFigures assumedFigures(const NodePlaces& places);

}  // namespace tacc
