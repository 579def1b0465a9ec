#include "drawn_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "topology/model/draft.hpp"

namespace tacc::test {
namespace {

class Drawn {
 public:
  explicit Drawn(std::uint32_t seed) : random_(seed) {}

  Topology topology() {
    TopologyDraft draft;
    draft.name = pick<std::string>({"", "A < B & \"C\"", "Größe", std::string(300, 'w')});
    const int levels = below(5);
    std::vector<std::uint32_t> starts;  // of the groups of the level below, in groups of that
    std::uint32_t groups = 1;
    std::vector<std::vector<std::uint32_t>> sizes;  // from the outside: how many groups are in each group
    std::vector<Level> wirings;
    for (int l = 0; l <= levels; ++l) {
      std::vector<std::uint32_t> in(groups);
      Level& level = wirings.emplace_back();
      if (below(3) == 0 && groups < 100) {
        level.wiring = Wiring::torus;
        for (int d = 1 + below(below(6) == 0 ? 5 : 3); d > 0; --d) level.dimensions.push_back(1 + below(d > 2 ? 4 : 9));
        std::fill(in.begin(), in.end(),
                  std::accumulate(level.dimensions.begin(), level.dimensions.end(), 1u, std::multiplies<>()));
      } else {
        if (below(3) == 0) level.wiring = Wiring::allToAll;
        const std::uint32_t most = pick<std::uint32_t>({1, 2, 6, 12, 30, 300});
        for (std::uint32_t& one : in) one = 1 + below(static_cast<int>(groups > 1000 ? 2 : most));
      }
      if (level.wiring != Wiring::tree && below(2) == 0) {
        level.links = 1 + below(20);
        level.linkBandwidth = speed();
      }
      groups = std::accumulate(in.begin(), in.end(), 0u);
      sizes.push_back(in);
      if (groups > 20'000) break;
    }
    fill(draft, sizes, wirings, groups);
    return build(std::move(draft));
  }

 private:
  std::uint32_t below(int end) { return static_cast<std::uint32_t>(random_() % static_cast<std::uint32_t>(end)); }
  template <class T>
  T pick(std::vector<T> from) {
    return from[below(static_cast<int>(from.size()))];
  }
  double speed() { return pick<double>({12.5e9, 1e9, 333'333'333.3, 62.5e6}); }

  void figures(Level& level) {
    if (below(2) == 0) level.alpha = pick<double>({1e-6, 1.23456789e-5, 3e-3});
    if (below(2) == 0) level.bandwidth = speed();
    if (below(2) == 0) level.uplink = speed();
  }

  void fill(TopologyDraft& draft, const std::vector<std::vector<std::uint32_t>>& sizes, std::vector<Level> wirings,
            std::uint32_t hosts) {
    const std::string prefix = pick<std::string>({"n", "node", "compute-<rack>&", std::string(200, 'x')});
    for (std::uint32_t h = 0; h < hosts; ++h) draft.hosts.push_back(fmt::format("{}{:05}", prefix, h));
    std::vector<std::uint32_t> groupOf(hosts);  // by host, from the inside
    std::iota(groupOf.begin(), groupOf.end(), 0u);
    figures(draft.node);
    if (below(2) == 0) draft.node.rails = pick<std::uint32_t>({2, 8, 200});
    if (below(2) == 0) {
      for (std::uint32_t h = 0; h < hosts; h += 1 + below(static_cast<int>(hosts)))
        draft.hostUplinks[draft.hosts[h]] = speed();
    }
    for (std::size_t l = sizes.size(); l-- > 1;) {  // sizes[l] cuts the groups below into those of draft level
      std::vector<std::uint32_t> above;
      for (std::uint32_t g = 0; g < sizes[l].size(); ++g) above.insert(above.end(), sizes[l][g], g);
      LevelDraft& level = draft.levels.emplace_back();
      level.level = wirings[l];
      level.level.name = pick<std::string>({"rack", "leaf switch", "2 blocks", std::string(90, 'W')});
      level.hasNames = below(2) == 0;
      figures(level.level);
      const std::string name = pick<std::string>({"g", "", "Gruppe <ä> ", std::string(80, 'M')});
      for (std::uint32_t& group : groupOf) {
        group = above[group];
        level.groupOf.push_back(fmt::format("{}{}", name, group));
      }
      if (below(2) == 0) {
        for (std::uint32_t h = 0; h < hosts; h += 1 + below(static_cast<int>(hosts)))
          level.uplinks[level.groupOf[h]] = speed();
      }
    }
    draft.root = wirings[0];
    draft.root.name = pick<std::string>({"", "torus", "core & <spine>"});
    figures(draft.root);
    if (below(2) == 0) {
      draft.nodes = {node(), node()};
      for (std::uint32_t h = 0; h < hosts; ++h)
        draft.nodeOf.push_back(below(4) == 0 ? std::nullopt : std::optional<std::uint32_t>(below(2)));
    }
  }

  NodeDescription node() {
    NodeDescription node;
    const std::uint32_t cores = pick<std::uint32_t>({1, 3, 16, 68, 260, 2000}), threads = 1 + below(3);
    for (std::uint32_t c = 0; c < cores; ++c) {
      node.cores.emplace_back();
      for (std::uint32_t t = 0; t < threads; ++t) node.cores.back().push_back(c + t * cores);
    }
    node.nesting = Nesting(cores);
    std::uint32_t step = 1;
    for (const LevelKind kind : {LevelKind::cache, LevelKind::numa, LevelKind::socket}) {
      step *= 1 + below(20);
      std::vector<std::uint32_t> starts;
      for (std::uint32_t c = 0; c < cores; c += step) starts.push_back(c);
      if (node.nesting.add(starts)) node.levels.push_back({kind, kind == LevelKind::cache ? 33554432.0 : 0});
    }
    return node;
  }

  std::mt19937 random_;
};

}  // namespace

Topology drawnTopology(std::uint32_t seed) { return Drawn(seed).topology(); }

}  // namespace tacc::test
