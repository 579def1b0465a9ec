// Where the ranks of a host stand in it, by the cores that they may run on.
#pragma once

#include <sched.h>

#include <span>
#include <vector>

#include "topology/model/node_description.hpp"

namespace tacc {

/// Groups of ranks that share something inside the host: runs of places.
struct PlaceLevel {
  LevelKind kind = LevelKind::numa;
  std::vector<int> begins;  // the first place of every group
  friend bool operator==(const PlaceLevel&, const PlaceLevel&) = default;
};

/// A value; ranks that get equal arguments get equal places.
struct NodePlaces {
  std::vector<int> order;          // the rank at each place; ranks of a group are neighbours, in their own order
  std::vector<PlaceLevel> levels;  // innermost first, each of several groups, one of which has several ranks

  /// Nobody knows of any difference between the ranks.
  bool isFlat() const noexcept { return levels.empty(); }
  /// Whether the rank at each place has the place's number.
  bool isInOrder() const noexcept;
  friend bool operator==(const NodePlaces&, const NodePlaces&) = default;
};

/// `cores[r]`: those that rank r may run on. A rank belongs to a group if all of them do, as far as the description
/// knows them; a level at which some rank belongs to no group is left out, as ranks that may move are nowhere. So are
/// levels that part no ranks, that part all, and those with the groups of a level further out.
NodePlaces placesOf(const NodeDescription& node, std::span<const cpu_set_t> cores);

/// Whether ranks that may run on these cores can stand in several groups, one of which has several ranks: else
/// placesOf() finds nothing but placesUnknown(), whatever the host is.
bool mayStandApart(std::span<const cpu_set_t> cores) noexcept;

/// Every rank may be anywhere.
NodePlaces placesUnknown(int ranks);

}  // namespace tacc
