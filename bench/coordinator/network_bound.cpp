#include "coordinator/network_bound.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>

namespace tacc::bench {
namespace {

struct Behind {
  double mbit = 0;
  int ranks = 0;
  bool hasRoot = false;
};
using Level = std::map<std::string, Behind>;

/// Who is behind each link, at each distance from the hosts.
std::vector<Level> levelsOf(const tools::ClusterShape& shape, const std::vector<int>& hostsOfRanks, int root) {
  std::vector<Level> levels;
  for (size_t rank = 0; rank < hostsOfRanks.size(); ++rank) {
    const tools::ClusterShape::Host& host = shape.hosts().at(static_cast<size_t>(hostsOfRanks[rank] - 1));
    if (levels.size() < host.links.size()) levels.resize(host.links.size());
    for (size_t level = 0; level < host.links.size(); ++level) {
      Behind& behind = levels[level][host.links[level].name];
      behind.mbit = host.links[level].mbit;
      ++behind.ranks;
      behind.hasRoot = behind.hasRoot || static_cast<int>(rank) == root;
    }
  }
  return levels;
}

/// The part of the call's bytes that crosses a link, in the direction that has more; 0 where no bound is known.
double shareAcross(Kind kind, const Behind& behind, int ranks) {
  const auto isOneOf = [&](std::initializer_list<Kind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  const double inside = behind.ranks, outside = ranks - behind.ranks;
  if (outside == 0) return 0;
  if (isOneOf({Kind::allReduce, Kind::broadcast, Kind::reduce, Kind::scan, Kind::exscan})) return 1;
  if (isOneOf({Kind::allGather, Kind::reduceScatter})) return std::max(inside, outside) / ranks;
  if (kind == Kind::allToAll) return inside * outside / ranks;
  if (isOneOf({Kind::gather, Kind::scatter})) return (behind.hasRoot ? outside : inside) / ranks;
  return 0;
}

/// Each of g links carries as much of 2 n (g - 1) as its rate allows; 0 where one of them has none.
double sharedAllReduce(const Level& links, double megabits) {
  double sum = 0;
  for (const auto& [name, behind] : links) {
    if (behind.mbit == 0) return 0;
    sum += behind.mbit;
  }
  return links.size() < 2 ? 0 : 2 * static_cast<double>(links.size() - 1) * megabits / sum;
}

}  // namespace

double networkBound(const Collective& collective, const tools::ClusterShape& shape,
                    const std::vector<int>& hostsOfRanks, size_t bytes, int root) {
  const double megabits = static_cast<double>(bytes) * 8 * 1e-6;
  const int ranks = static_cast<int>(hostsOfRanks.size());
  double bound = 0;
  for (const Level& links : levelsOf(shape, hostsOfRanks, root)) {
    for (const auto& [name, behind] : links)
      if (behind.mbit > 0)
        bound = std::max(bound, shareAcross(collective.kind, behind, ranks) * megabits / behind.mbit);
    if (collective.kind == Kind::allReduce) bound = std::max(bound, sharedAllReduce(links, megabits));
  }
  return bound;
}

}  // namespace tacc::bench
