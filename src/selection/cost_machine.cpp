#include "selection/cost_machine.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace tacc {

std::vector<int> groupsOfSize(int ranks, int size) {
  std::vector<int> begins;
  for (int r = 0; r < ranks; r += size) begins.push_back(r);
  return begins;
}

CostMap::CostMap(CostMachine machine) : machine_(std::move(machine)) {
  const auto reject = [](int l, const char* what) { fail(taccInvalidArgument, "cost model, level {}: {}", l, what); };
  if (machine_.levels.empty() || machine_.levels.back().begins.size() != 1)
    fail(taccInvalidArgument, "cost model: the outermost level must be one group of all ranks");
  double fastest = std::numeric_limits<double>::infinity();
  for (int l = 0; l < levels(); ++l) {
    const std::vector<int>& begins = level(l).begins;
    if (begins.empty() || begins[0] != 0 || begins.back() >= ranks()) reject(l, "its groups do not cover the ranks");
    if (std::ranges::adjacent_find(begins, std::greater_equal()) != begins.end()) reject(l, "a group is empty");
    if (!(level(l).alpha >= 0) || !(level(l).beta >= 0) || !(level(l).uplinkBytesPerSecond >= 0))
      reject(l, "latency, seconds per byte and capacity must not be negative");
    if (l > 0 && !std::ranges::includes(level(l - 1).begins, begins))
      reject(l, "cuts through a group of the level inside");
    std::vector<int> groups;
    for (int r = 0, g = 0; r < ranks(); ++r) {
      while (g + 1 < static_cast<int>(begins.size()) && begins[static_cast<std::size_t>(g) + 1] <= r) ++g;
      groups.push_back(g);
    }
    groupOf_.push_back(std::move(groups));
    wires_.push_back(countWires(l));
    if (level(l).beta > 0) fastest = std::min(fastest, level(l).beta);
  }
  port_ = machine_.portBytesPerSecond > 0 ? machine_.portBytesPerSecond : 1 / fastest;
  if (port_ == 0) port_ = std::numeric_limits<double>::infinity();
}

std::size_t CostMap::countWires(int l) const {
  const CostLevel& one = level(l);
  if (one.linkBytesPerSecond <= 0) return 0;
  const auto inside = static_cast<std::size_t>(members(l));
  if (one.dimensions.empty()) return inside * inside;
  std::size_t places = 1;
  for (const std::uint32_t side : one.dimensions) places *= side;
  if (one.places.size() != inside || std::ranges::any_of(one.places, [&](std::uint32_t at) { return at >= places; }))
    fail(taccInvalidArgument, "cost model, level {}: its {} members have {} places in a torus of {}", l, inside,
         one.places.size(), places);
  return static_cast<std::size_t>(groups(l)) * places * one.dimensions.size() * 2;
}

int CostMap::meet(int a, int b) const {
  int l = 0;
  while (groupOf(a, l) != groupOf(b, l)) ++l;
  return l;
}

}  // namespace tacc
