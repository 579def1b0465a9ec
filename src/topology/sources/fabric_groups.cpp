#include "topology/sources/fabric_groups.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tacc {

RailGroups::RailGroups(const Fabric& fabric, const std::vector<PluggedHost>& hosts) : fabric_(fabric), hosts_(hosts) {
  std::vector<Rails> rails;
  for (const PluggedHost& host : hosts) {
    Rails& own = rails.emplace_back();
    for (const Plug& plug : host.plugs) own.push_back(plug.at);
  }
  grouping_ = groupByRails(std::move(rails));
}

void RailGroups::join(Sets& switches) {
  grouping_ = joinRails(grouping_, [&](std::uint32_t at) { return switches.find(at); });
}

std::optional<std::vector<double>> RailGroups::uplinks(Sets& switches) const {
  std::vector<Rails> rails = grouping_.rails;  // by group: as the switches are joined now
  for (Rails& one : rails) {
    std::ranges::transform(one, one.begin(), [&](std::uint32_t at) { return switches.find(at); });
    std::ranges::sort(one);
  }
  std::unordered_map<std::uint32_t, std::map<std::uint32_t, double>> between;  // of each rail to each other
  std::unordered_map<std::uint32_t, double> leaving;
  for (const Fabric::Cable& cable : fabric_.cables) {
    if (fabric_.devices[cable.a].kind != Fabric::Kind::switching ||
        fabric_.devices[cable.b].kind != Fabric::Kind::switching)
      continue;
    const std::uint32_t a = switches.find(cable.a), b = switches.find(cable.b);
    if (a == b) continue;
    if (!(cable.bandwidth > 0)) return std::nullopt;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      between[from][to] += cable.bandwidth;
      leaving[from] += cable.bandwidth;
    }
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> cards;  // of a group in a rail
  std::unordered_map<std::uint32_t, double> allCards;               // of the groups that have this rail
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    for (const Plug& plug : hosts_[host].plugs) {
      const std::uint32_t rail = switches.find(plug.at), group = grouping_.groupOf[host];
      if (!std::binary_search(rails[group].begin(), rails[group].end(), rail)) continue;
      ++cards[{group, rail}];
      ++allCards[rail];
    }
  }
  std::vector<double> sums;
  for (std::uint32_t group = 0; group < rails.size(); ++group) {
    double& sum = sums.emplace_back(0);
    for (const std::uint32_t rail : rails[group]) {
      const auto out = leaving.find(rail);
      if (out == leaving.end()) continue;
      double own = out->second;
      const std::map<std::uint32_t, double>& others = between.at(rail);
      if (rails[group].size() < others.size()) {
        for (const std::uint32_t other : rails[group])
          if (const auto inside = others.find(other); inside != others.end()) own -= inside->second;
      } else {
        for (const auto& [other, bandwidth] : others)
          if (std::binary_search(rails[group].begin(), rails[group].end(), other)) own -= bandwidth;
      }
      const auto mine = cards.find({group, rail});
      if (mine != cards.end()) sum += own * (mine->second / allCards.at(rail));
    }
  }
  return sums;
}

}  // namespace tacc
