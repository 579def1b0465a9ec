#include "drawn_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "draw.hpp"
#include "topology/model/draft.hpp"

namespace tacc::test {
namespace {

constexpr double mbit = 1e6 / 8;

class Drawing {
 public:
  Drawing(std::uint64_t number, int mostHosts) : draw_(number), mostHosts_(mostHosts) {}

  Topology finish() {
    link_ = draw_.oneOf({100, 200, 1000, 10'000, 25'000, 100'000, 200'000, 400'000}) * mbit;
    latency_ = draw_.logUniform(1e-6, 1e-4);
    draft_.node.uplink = link_;
    const int kind = draw_.below(10);
    if (kind < 8) {
      drawTree(draw_.between(0, 3));
    } else {
      drawJoined(kind == 8);
    }
    drawSlowHosts();
    return build(std::move(draft_));
  }

 private:
  /// Hosts in groups, these in groups, and so on. Groups of equal size, or of any.
  void drawTree(int levels) {
    const bool isEqual = draw_.chance(0.6), isUniform = draw_.chance(0.6);
    std::vector<int> sizes = {draw_.between(2, levels == 0 ? mostHosts_ : 4)};  // of the outermost groups, in groups
    std::vector<std::vector<int>> members = {sizes};
    for (int l = 0; l < levels; ++l) {
      int count = 0;
      for (const int size : members.back()) count += size;
      const int most = std::max(1, mostHosts_ / count), least = std::min(2, most);
      const int usual = draw_.between(least, std::min(most, 8));
      std::vector<int>& inside = members.emplace_back();
      for (int g = 0; g < count; ++g)
        inside.push_back(isEqual ? usual : draw_.between(1, std::min(most, std::max(2, usual))));
    }
    int hosts = 0;
    for (const int size : members.back()) hosts += size;
    addHosts(hosts);
    // From the inside: members[levels] are hosts of each group of the first level, and so on.
    double alpha = latency_;
    std::vector<double> capacities(static_cast<std::size_t>(hosts), link_);
    std::vector<int> groupOf(static_cast<std::size_t>(hosts));
    for (int h = 0; h < hosts; ++h) groupOf[static_cast<std::size_t>(h)] = h;
    for (int l = levels; l > 0; --l) {
      LevelDraft& level = draft_.levels.emplace_back();
      level.level.alpha = alpha;
      level.level.bandwidth = link_;
      std::vector<int> parentOf;
      const std::vector<int>& parts = members[static_cast<std::size_t>(l)];
      for (std::size_t g = 0; g < parts.size(); ++g)
        parentOf.insert(parentOf.end(), static_cast<std::size_t>(parts[g]), static_cast<int>(g));
      const double ratio = draw_.logUniform(1.0 / 32, 2);
      std::vector<double> sums(parts.size(), 0.0);
      for (std::size_t m = 0; m < parentOf.size(); ++m) sums[static_cast<std::size_t>(parentOf[m])] += capacities[m];
      for (std::size_t g = 0; g < sums.size(); ++g) {
        // Of what the hosts behind it could send.
        sums[g] *= isUniform ? ratio : draw_.logUniform(std::max(1.0 / 32, ratio / 3), std::min(2.0, ratio * 3));
        level.uplinks[std::to_string(g)] = sums[g];
      }
      for (int& group : groupOf) group = parentOf[static_cast<std::size_t>(group)];
      for (const int group : groupOf) level.groupOf.push_back(std::to_string(group));
      std::vector<double> all(parts.size(), 0.0);
      for (std::size_t m = 0; m < parentOf.size(); ++m) all[static_cast<std::size_t>(parentOf[m])] += capacities[m];
      capacities = all;
      alpha = std::min(1e-3, alpha * draw_.logUniform(1, 4));
    }
    draft_.root.alpha = alpha;
    draft_.root.bandwidth = link_;
  }

  /// Routers in a torus, or groups each joined to each, with equally many hosts at all of them.
  void drawJoined(bool isTorus) {
    std::vector<std::uint32_t> sides;
    int places = 1;
    if (isTorus) {
      for (int d = draw_.between(1, 3); d > 0; --d) {
        const int side = draw_.between(2, std::clamp(mostHosts_ / places, 2, 5));
        if (places * side > mostHosts_) break;
        sides.push_back(static_cast<std::uint32_t>(side));
        places *= side;
      }
    } else {
      places = draw_.between(2, 6);
    }
    const int each = draw_.between(1, std::clamp(mostHosts_ / places, 1, isTorus ? 2 : 8));
    addHosts(places * each);
    if (each > 1) {
      LevelDraft& router = draft_.levels.emplace_back();
      router.level.alpha = latency_;
      router.level.bandwidth = link_;
      for (int h = 0; h < places * each; ++h) router.groupOf.push_back(std::to_string(h / each));
    }
    Level& root = draft_.root;
    root.alpha = latency_ * draw_.logUniform(1, 4);
    root.bandwidth = link_;
    root.wiring = isTorus ? Wiring::torus : Wiring::allToAll;
    root.dimensions = sides;
    root.links = 1;
    root.linkBandwidth = link_ * draw_.logUniform(0.25, 4);
  }

  void addHosts(int count) {
    for (int h = 0; h < count; ++h) draft_.hosts.push_back(fmt::format("n{:03}", h));
  }

  void drawSlowHosts() {
    if (!draw_.chance(0.2)) return;
    for (int slow = draw_.between(1, 2); slow > 0; --slow)
      draft_.hostUplinks[draft_.hosts[static_cast<std::size_t>(draw_.below(static_cast<int>(draft_.hosts.size())))]] =
          link_ / draw_.logUniform(1.5, 10);
  }

  Draw draw_;
  int mostHosts_;
  double link_ = 0, latency_ = 0;
  TopologyDraft draft_;
};

}  // namespace

Topology drawNetwork(std::uint64_t number, int mostHosts) { return Drawing(number, mostHosts).finish(); }

std::string describeNetwork(const Topology& network) {
  std::string text = fmt::format("{} hosts of {:.4g} Gbit/s", network.hosts(), *network.level(0).uplink * 8e-9);
  for (int l = 1; l < network.levels(); ++l) {
    text += fmt::format("; {:.3g} us", network.level(l).alpha.value_or(0) * 1e6);
    if (!network.level(l).dimensions.empty()) text += ", torus " + network.level(l).dimensionsText();
    if (network.level(l).wiring == Wiring::allToAll) text += ", each to each";
    if (l == network.root()) break;
    text += ", groups";
    for (std::uint32_t g = 0; g < network.groups(l); ++g) {
      text += fmt::format(" {}", network.hostsOf(l, g).size());
      if (const auto uplink = network.uplink(l, g)) text += fmt::format(" at {:.3g}", *uplink * 8e-9);
    }
  }
  return text;
}

}  // namespace tacc::test
