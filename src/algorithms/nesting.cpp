#include "algorithms/nesting.hpp"

#include <algorithm>

namespace tacc {

std::vector<NestingLevel> nestingOf(const PlanRequest& request) {
  std::vector<std::vector<int>> groups = request.groups;
  groups.push_back({request.ranks});
  // Ranks that each participant of the level stands for, in order.
  std::vector<int> weights(static_cast<std::size_t>(request.ranks), 1);
  std::vector<NestingLevel> levels;
  for (const std::vector<int>& sizes : groups) {
    NestingLevel level;
    std::size_t next = 0;
    for (const int size : sizes) {
      int members = 0;
      for (int covered = 0; covered < size; ++members) covered += weights[next++];
      level.sizes.push_back(members);
    }
    level.isEven = std::ranges::all_of(level.sizes, [&](int n) { return n == level.sizes[0]; });
    if (level.isEven && level.sizes[0] == 1) continue;
    weights = sizes;
    levels.push_back(std::move(level));
  }
  return levels;
}

bool isEven(const std::vector<NestingLevel>& nesting) noexcept {
  return std::ranges::all_of(nesting, &NestingLevel::isEven);
}

}  // namespace tacc
