#include "selection/cost/cost_machine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace tacc {

double Capacities::least() const noexcept {
  double least = each_.empty() ? ofAll_ : 0;
  for (const double one : each_)
    if (one > 0 && (least == 0 || one < least)) least = one;
  return least;
}

double Capacities::most() const noexcept {
  if (each_.empty()) return ofAll_;
  return std::ranges::min(each_) > 0 ? std::ranges::max(each_) : 0;
}

bool Capacities::fit(int links) const noexcept {
  return ofAll_ >= 0 && (each_.empty() || each_.size() == static_cast<std::size_t>(links)) &&
         std::ranges::all_of(each_, [](double one) { return one >= 0; });
}

void Capacities::divideBy(double factor) noexcept {
  ofAll_ /= factor;
  for (double& one : each_) one /= factor;
}

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
    if (!(level(l).alpha >= 0) || !(level(l).beta >= 0) || !level(l).uplinks.fit(static_cast<int>(begins.size())))
      reject(l, "latency, seconds per byte and capacity must not be negative, and every group has an uplink");
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
  if (!machine_.ports.fit(ranks())) fail(taccInvalidArgument, "cost model: the ports do not fit the ranks");
  ports_ = machine_.ports;
  fastest_ = std::isinf(fastest) ? fastest : 1 / fastest;
  leastPort_ = fastest_;
  for (int r = 0; r < ranks(); ++r) leastPort_ = r == 0 ? port(r) : std::min(leastPort_, port(r));
}

double CostMap::leastShare() const {
  double share = port();
  for (int l = 0; l + 1 < levels(); ++l)
    for (int g = 0; g < groups(l); ++g)
      if (const double uplink = level(l).uplinks.of(g); uplink > 0)
        share = std::min(share, uplink / (endOf(g, l) - beginOf(g, l)));
  return share;
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
