#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "draw.hpp"
#include "drawn_network.hpp"
#include "topology/model/draft.hpp"

namespace tacc::test {
namespace {

constexpr double mbit = 1e6 / 8;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class Oddity {
 public:
  Oddity(std::uint64_t number, int mostHosts) : draw_(number + 0x0dd), mostHosts_(mostHosts) {}

  OddNetwork finish() {
    link_ = draw_.oneOf({100, 200, 1000, 10'000, 25'000, 100'000, 400'000}) * mbit;
    latency_ = draw_.logUniform(1e-6, 1e-4);
    switch (draw_.below(7)) {
      case 0:
        drawGroups(veryUnequal());
        break;
      case 1:
        drawGroups(oneAlone());
        break;
      case 2:
        drawJoined();
        break;
      case 3:
        drawDeep();
        break;
      case 4:
        drawSites();
        break;
      case 5:
        drawGenerations();
        break;
      default:
        drawCards();
        break;
    }
    const auto hosts = static_cast<int>(draft_.hosts.size());
    OddNetwork odd{build(std::move(draft_)), std::vector<int>(at(hosts), 1)};
    if (draw_.chance(0.5)) {
      const bool isEqual = draw_.chance(0.4);
      const int most = std::clamp(2 * mostHosts_ / hosts, 2, 8), usual = draw_.between(2, most);
      for (int& ranks : odd.ranksOf) ranks = isEqual ? usual : draw_.between(1, most);
    }
    return odd;
  }

 private:
  std::vector<int> veryUnequal() {
    std::vector<int> sizes;
    for (int left = mostHosts_, groups = draw_.between(2, 6); groups > 0 && left > 0; --groups) {
      sizes.push_back(std::max(1, static_cast<int>(left * draw_.logUniform(0.03, 0.9))));
      left -= sizes.back();
    }
    if (sizes.size() == 1) sizes.push_back(1);
    return sizes;
  }

  std::vector<int> oneAlone() {
    const int groups = draw_.between(2, 5);
    std::vector<int> sizes(at(groups), draw_.between(2, std::max(2, mostHosts_ / groups)));
    sizes[at(draw_.below(groups))] = 1;
    return sizes;
  }

  /// Two levels: these groups, each behind its own uplink.
  void drawGroups(const std::vector<int>& sizes) {
    LevelDraft& level = addLevel(sizes, latency_, link_);
    const bool isUniform = draw_.chance(0.4);
    const double share = draw_.logUniform(1.0 / 32, 2);
    for (std::size_t g = 0; g < sizes.size(); ++g)
      level.uplinks[std::to_string(g)] = sizes[g] * link_ * (isUniform ? share : draw_.logUniform(1.0 / 32, 2));
    setRoot(latency_ * draw_.logUniform(1, 10), link_);
  }

  /// Places of a torus, or groups joined each to each, with unequal numbers of hosts.
  void drawJoined() {
    const bool isTorus = draw_.chance(0.6);
    std::vector<std::uint32_t> sides;
    int places = 1;
    for (int d = draw_.between(1, 3); isTorus && d > 0; --d) {
      const int side = draw_.between(2, 4);
      if (places * side * 2 > mostHosts_) break;
      sides.push_back(static_cast<std::uint32_t>(side));
      places *= side;
    }
    if (places == 1) {
      places = draw_.between(3, 6);
      if (isTorus) sides = {static_cast<std::uint32_t>(places)};
    }
    const bool isEqual = draw_.chance(0.4);
    const int most = std::max(2, mostHosts_ / places);
    std::vector<int> sizes(at(places), draw_.between(2, most));
    if (!isEqual)
      for (int& size : sizes) size = draw_.between(1, most);
    addLevel(sizes, latency_, link_);
    if (draw_.chance(0.5)) draft_.levels.back().level.uplink = link_ * draw_.logUniform(0.25, 4);
    setRoot(latency_ * draw_.logUniform(1, 4), link_);
    draft_.root.wiring = isTorus ? Wiring::torus : Wiring::allToAll;
    draft_.root.dimensions = sides;
    draft_.root.links = 1;
    draft_.root.linkBandwidth = link_ * draw_.logUniform(0.1, 4);
  }

  /// Four or five levels of two or three; all uplinks are wide but one in the middle.
  void drawDeep() {
    const int levels = draw_.between(3, 4);
    int hosts = 1;
    std::vector<int> fans;
    for (int l = 0; l <= levels; ++l) {
      fans.push_back(hosts * 3 * (1 << (levels - l)) <= mostHosts_ ? draw_.between(2, 3) : 2);
      if (hosts * fans.back() > mostHosts_) fans.back() = 1;
      hosts *= fans.back();
    }
    int each = hosts;  // of a group, from the outside
    std::vector<int> sizes;
    for (int l = 0; l < levels; ++l) sizes.push_back(each /= fans[at(l)]);
    const int odd = draw_.between(0, levels - 1);
    double alpha = latency_;
    addHosts(hosts);
    for (int l = levels - 1; l >= 0; --l) {
      LevelDraft& level = draft_.levels.emplace_back();
      level.level.alpha = alpha;
      level.level.bandwidth = link_;
      const int groups = hosts / sizes[at(l)];
      for (int h = 0; h < hosts; ++h) level.groupOf.push_back(std::to_string(h / sizes[at(l)]));
      level.level.uplink = sizes[at(l)] * link_ * draw_.logUniform(0.5, 1);
      if (l == odd)
        level.uplinks[std::to_string(draw_.below(groups))] = sizes[at(l)] * link_ * draw_.logUniform(0.01, 0.2);
      alpha *= draw_.logUniform(1, 3);
    }
    setRoot(alpha, link_);
  }

  /// Clusters far from one another.
  void drawSites() {
    const int sites = draw_.between(2, 4);
    std::vector<int> sizes(at(sites), draw_.between(1, mostHosts_ / sites));
    if (draw_.chance(0.5))
      for (int& size : sizes) size = draw_.between(1, mostHosts_ / sites);
    LevelDraft& level = addLevel(sizes, latency_, link_);
    const double far = link_ * draw_.logUniform(0.02, 1);
    for (int g = 0; g < sites; ++g) level.uplinks[std::to_string(g)] = far * draw_.logUniform(0.5, 2);
    setRoot(1e-2, far);
  }

  /// Groups of new and of old hosts, the links of the old ones a tenth or a 40th of the others.
  void drawGenerations() {
    std::vector<int> sizes = {draw_.between(1, mostHosts_ / 2), draw_.between(1, mostHosts_ / 2)};
    LevelDraft& level = addLevel(sizes, latency_, link_);
    const double old = link_ / draw_.oneOf({4, 10, 40});
    const bool isMixed = draw_.chance(0.5);  // old and new in the same groups
    for (int h = 0; h < sizes[0] + sizes[1]; ++h)
      if (isMixed ? draw_.chance(0.4) : h < sizes[0]) draft_.hostUplinks[draft_.hosts[at(h)]] = old;
    for (int g = 0; g < 2; ++g) level.uplinks[std::to_string(g)] = sizes[at(g)] * link_ * draw_.logUniform(1.0 / 16, 2);
    setRoot(latency_ * draw_.logUniform(1, 4), link_);
  }

  /// A stream goes over one card of several.
  void drawCards() {
    drawGroups(draw_.chance(0.5) ? veryUnequal() : std::vector<int>(4, draw_.between(1, mostHosts_ / 4)));
    const int cards = draw_.oneOf({2, 4, 8});
    draft_.node.rails = static_cast<std::uint32_t>(cards);
    for (LevelDraft& level : draft_.levels) level.level.bandwidth = link_ / cards;
    draft_.root.bandwidth = link_ / cards;
  }

  LevelDraft& addLevel(const std::vector<int>& sizes, double alpha, double stream) {
    int hosts = 0;
    LevelDraft& level = draft_.levels.emplace_back();
    level.level.alpha = alpha;
    level.level.bandwidth = stream;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      hosts += sizes[g];
      level.groupOf.insert(level.groupOf.end(), at(sizes[g]), std::to_string(g));
    }
    addHosts(hosts);
    return level;
  }

  void setRoot(double alpha, double stream) {
    draft_.root.alpha = alpha;
    draft_.root.bandwidth = stream;
  }

  void addHosts(int count) {
    draft_.node.uplink = link_;
    for (int h = 0; h < count; ++h) draft_.hosts.push_back(fmt::format("n{:03}", h));
  }

  Draw draw_;
  int mostHosts_;
  double link_ = 0, latency_ = 0;
  TopologyDraft draft_;
};

}  // namespace

OddNetwork drawOddNetwork(std::uint64_t number, int mostHosts) { return Oddity(number, mostHosts).finish(); }

}  // namespace tacc::test
