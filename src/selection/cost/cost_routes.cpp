// The part of CostLoad that knows which messages share a link, and which ranks are followed of very many.
#include <algorithm>

#include "selection/cost/cost_load.hpp"

namespace tacc {
namespace {

/// Routes that are looked at of all that lead from members to members.
constexpr std::size_t sampledRoutes = std::size_t{1} << 18;
/// Of many ranks runs of this number are followed where no level has as many groups.
constexpr int runLength = 512, fewGroups = 8;

}  // namespace

/// Whole groups of the outermost level that has several, spread over the machine; of one without, runs of ranks.
void CostLoad::chooseSample(int mostRanks) {
  followed_ = everybody_;
  const int p = map_.ranks(), levels = map_.levels();
  for (int l = 0; l < levels; ++l)
    if (map_.wires(l) > 0) return;  // which messages share a link is not alike in all groups
  if (p <= mostRanks) return;
  std::vector<int> begins = groupsOfSize(p, runLength);
  for (int l = 0; l + 1 < levels; ++l)
    if (map_.groups(l) >= fewGroups) begins = map_.level(l).begins;
  const int groups = static_cast<int>(begins.size());
  const int count = std::clamp(static_cast<int>(static_cast<std::int64_t>(mostRanks) * groups / p), 2, groups);
  begins.push_back(p);
  std::vector<int> chosen;
  for (int i = 0; i < count; ++i)
    chosen.push_back(static_cast<int>(static_cast<std::int64_t>(i) * (groups - 1) / (count - 1)));
  followed_.clear();
  isFollowed_.assign(at(p), false);
  for (const int group : chosen) {
    for (int r = begins[at(group)]; r < begins[at(group) + 1]; ++r) {
      followed_.push_back(r);
      isFollowed_[at(r)] = true;
    }
  }
  for (int l = 0; l + 1 < levels; ++l) {
    std::vector<double>& shares = followedShare_.emplace_back(at(map_.groups(l)), 0.0);
    for (const int r : followed_) shares[at(map_.groupOf(r, l))] += 1;
    for (int g = 0; g < map_.groups(l); ++g) shares[at(g)] /= map_.endOf(g, l) - map_.beginOf(g, l);
  }
}

void CostLoad::findRoutes(const To& to, double bytes, const std::vector<int>& ranks) {
  const bool isPart = ranks.size() < everybody_.size();
  std::vector<std::vector<int>> crossWire;
  for (int l = 0; l < map_.levels(); ++l) crossWire.emplace_back(map_.wires(l), 0);
  for (const int r : ranks) {
    Route& route = routes_[at(r)];
    route.to = to(r);
    if (route.to == r) continue;
    route.meet = map_.meet(r, route.to);
    out_[at(r)] += bytes;
    for (int l = 0; l < route.meet; ++l) {
      ++crossOut_[at(l)][at(map_.groupOf(r, l))];
      if (!isPart) ++crossIn_[at(l)][at(map_.groupOf(route.to, l))];
    }
    map_.alongWires(route.meet, r, route.to, [&](std::size_t wire) {
      ++crossWire[at(route.meet)][wire];
      wire_[at(route.meet)][wire] += bytes;
    });
  }
  findReceivers(bytes, ranks);
  // Of those that are followed as much comes in as goes out.
  const auto crossing = [&](const std::vector<std::vector<int>>& cross, int l, int g) {
    const double messages = (isPart ? crossOut_ : cross)[at(l)][at(g)];
    return isPart && messages > 0 ? messages / followedShare_[at(l)][at(g)] : messages;
  };
  for (const int r : ranks) {
    Route& route = routes_[at(r)];
    if (route.to == r) continue;
    route.perByte = std::max({1 / map_.port(r), 1 / map_.port(route.to), map_.level(route.meet).beta});
    for (int l = 0; l < route.meet; ++l) {
      const int from = map_.groupOf(r, l), into = map_.groupOf(route.to, l);
      route.perByte = std::max({route.perByte, crossing(crossOut_, l, from) * perByteOf(l, from),
                                crossing(crossIn_, l, into) * perByteOf(l, into)});
    }
    int shared = 0;
    map_.alongWires(route.meet, r, route.to,
                    [&](std::size_t wire) { shared = std::max(shared, crossWire[at(route.meet)][wire]); });
    if (shared > 0) route.perByte = std::max(route.perByte, shared / map_.level(route.meet).linkBytesPerSecond);
  }
  // The load of the groups, and counts of nothing for the next exchange.
  for (const int r : ranks) {
    const Route& route = routes_[at(r)];
    if (route.to == r) continue;
    for (int l = 0; l < route.meet; ++l) {
      const int from = map_.groupOf(r, l), into = map_.groupOf(route.to, l);
      for (const int group : {from, into}) {
        groupOut_[at(l)][at(group)] += bytes * crossing(crossOut_, l, group);
        groupIn_[at(l)][at(group)] += bytes * crossing(crossIn_, l, group);
        crossOut_[at(l)][at(group)] = crossIn_[at(l)][at(group)] = 0;
      }
    }
  }
}

/// A message to a rank that is not followed stands for the one that comes to its sender.
void CostLoad::findReceivers(double bytes, const std::vector<int>& ranks) {
  const bool isPart = ranks.size() < everybody_.size();
  std::vector<bool> isReached(isPart ? everybody_.size() : 0, false);
  for (const int r : ranks)
    if (isPart && routes_[at(r)].to != r && isFollowed(routes_[at(r)].to)) isReached[at(routes_[at(r)].to)] = true;
  for (const int r : ranks) {
    Route& route = routes_[at(r)];
    const bool isKnown = !isPart || isFollowed(route.to);
    route.receiver = isKnown ? route.to : isReached[at(r)] || r == source_ ? -1 : r;
    if (route.to != r && route.receiver >= 0) in_[at(route.receiver)] += bytes;
  }
}

std::vector<double> CostLoad::everyRoute(const EveryToEvery& phase, int level) const {
  std::vector<double> messages(map_.wires(level), 0.0);
  const int members = map_.members(level);
  const auto first = [&](int member) { return level == 0 ? member : map_.beginOf(member, level - 1); };
  const auto end = [&](int member) { return level == 0 ? member + 1 : map_.endOf(member, level - 1); };
  const auto pairsOf = [&](int from, int to) {
    if (phase.groupSize == 0) return static_cast<double>(end(from) - first(from)) * (end(to) - first(to));
    double pairs = 0;
    for (int r = first(from); r < end(from); ++r) pairs += phase.peersIn(r, first(to), end(to));
    return pairs;
  };
  const int stride = static_cast<int>(std::max<std::size_t>(1, at(members) * at(members) / sampledRoutes));
  for (int from = 0; from < members; from += stride) {
    for (int to = 0; to < members; ++to) {
      if (to == from || map_.groupOf(first(to), level) != map_.groupOf(first(from), level)) continue;
      const double pairs = pairsOf(from, to) * stride;
      if (pairs == 0) continue;
      map_.alongWires(level, first(from), first(to), [&](std::size_t wire) { messages[wire] += pairs; });
    }
  }
  return messages;
}

}  // namespace tacc
