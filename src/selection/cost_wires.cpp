// The part of CostLoad that knows the links inside groups when everybody sends to everybody.
#include <algorithm>

#include "selection/cost_load.hpp"

namespace tacc {
namespace {

/// Ways that are looked at of all that lead from members to members.
constexpr std::size_t sampledWays = std::size_t{1} << 18;

}  // namespace

std::vector<double> CostLoad::everyWay(int level) const {
  std::vector<double> messages(map_.wires(level), 0.0);
  const int members = map_.members(level);
  const auto first = [&](int member) { return level == 0 ? member : map_.beginOf(member, level - 1); };
  const auto size = [&](int member) {
    return level == 0 ? 1.0 : static_cast<double>(map_.endOf(member, level - 1) - map_.beginOf(member, level - 1));
  };
  const int stride = static_cast<int>(std::max<std::size_t>(1, at(members) * at(members) / sampledWays));
  for (int from = 0; from < members; from += stride) {
    for (int to = 0; to < members; ++to) {
      if (to == from || map_.groupOf(first(to), level) != map_.groupOf(first(from), level)) continue;
      const double pairs = size(from) * size(to) * stride;
      map_.alongWires(level, first(from), first(to), [&](std::size_t wire) { messages[wire] += pairs; });
    }
  }
  return messages;
}

}  // namespace tacc
