#include "topology/probe/group_nesting.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace tacc {

bool isNestedOrApart(HostSet a, HostSet b) noexcept { return (a & b) == 0 || (a & ~b) == 0 || (b & ~a) == 0; }

HostSet parentOf(std::span<const HostSet> groups, HostSet all, HostSet group) noexcept {
  HostSet parent = all;
  for (const HostSet other : groups)
    if (other != group && (group & ~other) == 0 && std::popcount(other) < std::popcount(parent)) parent = other;
  return parent;
}

std::vector<HostSet> partsOf(std::span<const HostSet> groups, HostSet group) {
  std::vector<HostSet> parts;
  HostSet left = group;
  for (const HostSet other : groups) {
    const auto isInside = [&](HostSet outer) {
      return outer != other && outer != group && (other & ~outer) == 0 && (outer & ~group) == 0;
    };
    if (other == group || (other & ~group) != 0 || std::ranges::any_of(groups, isInside)) continue;
    parts.push_back(other);
    left &= ~other;
  }
  for (; left != 0; left &= left - 1) parts.push_back(left & ~(left - 1));
  return parts;
}

int heightOf(std::span<const HostSet> groups, HostSet group) {
  int height = 0;
  for (const HostSet part : partsOf(groups, group))
    if (std::popcount(part) > 1) height = std::max(height, heightOf(groups, part));
  return height + 1;
}

std::vector<std::vector<std::uint32_t>> levelsOf(std::uint32_t hosts, std::vector<HostSet> groups) {
  std::ranges::sort(groups, {}, [](HostSet set) { return std::popcount(set); });
  std::vector<std::size_t> heights;
  std::vector<std::vector<std::uint32_t>> levels;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::size_t height = 0;
    for (std::size_t inside = 0; inside < g; ++inside)
      if ((groups[inside] & ~groups[g]) == 0) height = std::max(height, heights[inside] + 1);
    heights.push_back(height);
    if (levels.size() <= height) levels.resize(height + 1);
  }
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::map<HostSet, std::uint32_t> numbers;
    for (std::uint32_t host = 0; host < hosts; ++host) {
      HostSet of = setOf(host);  // the largest group up to this height
      for (std::size_t g = 0; g < groups.size(); ++g)
        if (heights[g] <= level && has(groups[g], host)) of = groups[g];
      levels[level].push_back(numbers.try_emplace(of, static_cast<std::uint32_t>(numbers.size())).first->second);
    }
  }
  return levels;
}

}  // namespace tacc
