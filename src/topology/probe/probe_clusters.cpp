#include "topology/probe/probe_clusters.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace tacc {
namespace {

constexpr std::uint32_t mostToSmooth = 128;

/// How far apart hosts are: the logarithm of latency times seconds a byte; of what was measured.
struct Edge {
  std::uint32_t a, b;
  double distance;
};

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  return values[middle];
}

/// A figure that one pair lacks and others have is taken to be in the middle.
std::vector<Edge> edgesOf(const ProbeMatrix& matrix) {
  auto samples = matrix.all();
  if (!matrix.latenciesTell())
    for (auto& [pair, sample] : samples) sample.latency = 0;
  std::vector<double> latencies, slownesses;
  for (const auto& [pair, sample] : samples) {
    if (sample.latency > 0) latencies.push_back(std::log(sample.latency));
    if (sample.bandwidth > 0) slownesses.push_back(-std::log(sample.bandwidth));
  }
  const double latency = latencies.empty() ? 0 : median(latencies);
  const double slowness = slownesses.empty() ? 0 : median(slownesses);
  std::vector<Edge> edges;
  for (const auto& [pair, sample] : samples) {
    if (!(sample.latency > 0) && !(sample.bandwidth > 0)) continue;
    if (pair.b >= matrix.hosts() || pair.a == pair.b) continue;
    edges.push_back({pair.a, pair.b,
                     (sample.latency > 0 ? std::log(sample.latency) : latency) +
                         (sample.bandwidth > 0 ? -std::log(sample.bandwidth) : slowness)});
  }
  return edges;
}

/// In a tree, of the three distances between three hosts the two largest are equal. So where a third host is near to
/// one and far from the other, it votes that these two are far, whatever they measured: a lucky moment of an idle
/// uplink.
void smooth(std::vector<Edge>& edges, std::uint32_t hosts) {
  std::vector<double> distance(std::size_t{hosts} * hosts, std::nan(""));
  const auto at = [&](std::uint32_t a, std::uint32_t b) -> double& { return distance[std::size_t{a} * hosts + b]; };
  for (const Edge& edge : edges) at(edge.a, edge.b) = at(edge.b, edge.a) = edge.distance;
  for (Edge& edge : edges) {
    std::vector<double> votes = {edge.distance, edge.distance};
    for (std::uint32_t c = 0; c < hosts; ++c) {
      if (c == edge.a || c == edge.b) continue;
      const double toA = at(edge.a, c), toB = at(edge.b, c);
      const bool isNearToOne = std::min(toA, toB) <= edge.distance + levelGap;
      if (isNearToOne && std::max(toA, toB) > edge.distance + levelGap) votes.push_back(std::max(toA, toB));
    }
    edge.distance = median(std::move(votes));
  }
}

/// Joins the two clusters that are nearest on the average of all pairs measured between them, over and over.
class Linkage {
 public:
  Linkage(std::uint32_t hosts, const std::vector<Edge>& edges) : near_(hosts), cluster_(hosts) {
    std::iota(cluster_.begin(), cluster_.end(), 0u);
    for (const Edge& edge : edges) {
      near_[edge.a][edge.b] = near_[edge.b][edge.a] = {edge.distance, 1};
      offer(edge.a, edge.b);
    }
  }

  struct Join {
    std::uint32_t a, b;
    double height;  // never below those before it
  };

  std::vector<Join> run() {
    std::vector<Join> joins;
    double highest = -1e300;
    while (!queue_.empty()) {
      const Offer offer = queue_.top();
      queue_.pop();
      if (cluster_[offer.a] != offer.a || cluster_[offer.b] != offer.b) continue;
      const auto found = near_[offer.a].find(offer.b);
      if (found == near_[offer.a].end() || found->second.mean() != offer.mean) continue;
      highest = std::max(highest, offer.mean);
      joins.push_back({offer.a, offer.b, highest});
      join(offer.a, offer.b);
    }
    return joins;
  }

 private:
  struct Sum {
    double sum = 0;
    std::uint32_t count = 0;
    double mean() const { return sum / count; }
  };
  struct Offer {
    double mean;
    std::uint32_t a, b;
    bool operator<(const Offer& other) const {  // the nearest first, then by number, so that all ranks join alike
      return std::tie(mean, a, b) > std::tie(other.mean, other.a, other.b);
    }
  };

  void offer(std::uint32_t a, std::uint32_t b) { queue_.push({near_[a].at(b).mean(), std::min(a, b), std::max(a, b)}); }

  void join(std::uint32_t a, std::uint32_t b) {
    if (near_[a].size() < near_[b].size()) std::swap(a, b);
    cluster_[b] = a;
    near_[a].erase(b);
    near_[b].erase(a);
    for (const auto& [other, sum] : near_[b]) {
      Sum& mine = near_[a][other];
      mine.sum += sum.sum;
      mine.count += sum.count;
      near_[other].erase(b);
      near_[other][a] = mine;
      offer(a, other);
    }
    near_[b].clear();
  }

  std::vector<std::map<std::uint32_t, Sum>> near_;
  std::vector<std::uint32_t> cluster_;  // itself while it is one
  std::priority_queue<Offer> queue_;
};

/// The joins between two cuts, and the distances between the hosts that they brought together.
struct Stratum {
  std::size_t firstJoin = 0;
  double sum = 0, squares = 0;
  std::size_t count = 0;

  double mean() const { return sum / static_cast<double>(count); }
  double spread() const { return squares - sum * mean(); }  // the sum of squared deviations
  void add(const Stratum& other) {
    sum += other.sum;
    squares += other.squares;
    count += other.count;
  }
};

std::uint32_t find(std::vector<std::uint32_t>& parent, std::uint32_t one) {
  while (parent[one] != one) one = parent[one] = parent[parent[one]];
  return one;
}

std::vector<std::uint32_t> singletons(std::uint32_t hosts) {
  std::vector<std::uint32_t> parent(hosts);
  std::iota(parent.begin(), parent.end(), 0u);
  return parent;
}

/// A cut before each join that is much further than the one before it.
std::vector<Stratum> strataOf(std::uint32_t hosts, const std::vector<Linkage::Join>& joins,
                              const std::vector<Edge>& edges) {
  std::vector<Stratum> strata;
  std::vector<std::uint32_t> parent = singletons(hosts);
  std::vector<bool> isInside(edges.size());
  for (std::size_t j = 0; j < joins.size(); ++j) {
    if (j == 0 || joins[j].height - joins[j - 1].height > levelGap) strata.push_back({j});
    parent[find(parent, joins[j].b)] = find(parent, joins[j].a);
    const bool isLast = j + 1 == joins.size() || joins[j + 1].height - joins[j].height > levelGap;
    for (std::size_t e = 0; isLast && e < edges.size(); ++e) {
      if (isInside[e] || find(parent, edges[e].a) != find(parent, edges[e].b)) continue;
      isInside[e] = true;
      strata.back().add({0, edges[e].distance, edges[e].distance * edges[e].distance, 1});
    }
  }
  return strata;
}

/// Joins neighbours whose distances differ by no more than noise makes of one class: the halves of a normal
/// distribution are 2.6 of their own deviations apart.
void mergeStrata(std::vector<Stratum>& strata) {
  constexpr double deviations = 3;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = 1; s < strata.size(); ++s) {
      Stratum& below = strata[s - 1];
      const Stratum& above = strata[s];
      const double variance = (below.spread() + above.spread()) / static_cast<double>(below.count + above.count);
      if (above.mean() - below.mean() > std::max(levelGap, deviations * std::sqrt(std::max(variance, 0.0)))) continue;
      below.add(above);
      strata.erase(strata.begin() + static_cast<std::ptrdiff_t>(s));
      changed = true;
      break;
    }
  }
}

}  // namespace

std::vector<std::vector<std::uint32_t>> findGroups(const ProbeMatrix& matrix) {
  const std::uint32_t hosts = matrix.hosts();
  std::vector<Edge> edges = edgesOf(matrix);
  if (hosts <= mostToSmooth) smooth(edges, hosts);
  const std::vector<Linkage::Join> joins = Linkage(hosts, edges).run();
  std::vector<Stratum> strata = strataOf(hosts, joins, edges);
  mergeStrata(strata);

  std::vector<std::vector<std::uint32_t>> levels;
  std::vector<std::uint32_t> parent = singletons(hosts);
  for (std::size_t s = 0; s + 1 < strata.size(); ++s) {
    for (std::size_t j = strata[s].firstJoin; j < strata[s + 1].firstJoin; ++j) {
      parent[find(parent, joins[j].b)] = find(parent, joins[j].a);
    }
    std::vector<std::uint32_t>& level = levels.emplace_back();
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (std::uint32_t host = 0; host < hosts; ++host) {
      level.push_back(
          numbers.try_emplace(find(parent, host), static_cast<std::uint32_t>(numbers.size())).first->second);
    }
  }
  return levels;
}

}  // namespace tacc
