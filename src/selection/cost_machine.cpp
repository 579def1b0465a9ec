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
    if (level(l).beta > 0) fastest = std::min(fastest, level(l).beta);
  }
  port_ = machine_.portBytesPerSecond > 0 ? machine_.portBytesPerSecond : 1 / fastest;
  if (port_ == 0) port_ = std::numeric_limits<double>::infinity();
}

int CostMap::meet(int a, int b) const {
  int l = 0;
  while (groupOf(a, l) != groupOf(b, l)) ++l;
  return l;
}

}  // namespace tacc
