// Which ranks play the same part in a plan on a machine, so that one of them can be played for all.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/exchanges.hpp"
#include "selection/cost/cost_machine.hpp"

namespace tacc {

struct RankClasses {
  std::vector<int> classOf;                // per rank
  std::vector<int> representatives;        // per class: its first rank
  std::vector<std::vector<int>> groupsOf;  // per level and group: which groups are alike, by number

  int count() const noexcept { return static_cast<int>(representatives.size()); }
};

/// Ranks are alike when all that they send and receive, and the links over which it goes, are: found by telling them
/// apart by what they have, then by whom they exchange with, until nothing more is told apart. Where that takes long,
/// or helps little, every rank is a separate class. Cost: ranks times phases, a few times; it is taken from `budget`,
/// in events of some 25 ns (cost_simulator.hpp), and nullopt says that this is too little.
std::optional<RankClasses> classesOf(const Exchanges& exchanges, const CostMap& map, double& budget);

/// Every rank by itself.
RankClasses separate(const CostMap& map);

}  // namespace tacc
