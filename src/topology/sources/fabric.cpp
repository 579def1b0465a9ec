#include "topology/sources/fabric.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/fabric_groups.hpp"
#include "topology/sources/host_cards.hpp"

namespace tacc {
namespace {

/// The same in the one order that does not depend on where a source began: sums and choices come out alike.
Fabric sorted(const Fabric& fabric) {
  std::vector<std::uint32_t> order(fabric.devices.size()), placeOf(fabric.devices.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return fabric.devices[a].id < fabric.devices[b].id; });
  Fabric result;
  for (const std::uint32_t device : order) {
    placeOf[device] = static_cast<std::uint32_t>(result.devices.size());
    result.devices.push_back(fabric.devices[device]);
  }
  for (const Fabric::Cable& cable : fabric.cables) {
    const auto [a, b] = std::minmax(placeOf[cable.a], placeOf[cable.b]);
    result.cables.push_back({a, b, cable.bandwidth});
  }
  std::sort(result.cables.begin(), result.cables.end(), [](const Fabric::Cable& x, const Fabric::Cable& y) {
    return std::tie(x.a, x.b, x.bandwidth) < std::tie(y.a, y.b, y.bandwidth);
  });
  return result;
}

class Finder {
 public:
  Finder(const Fabric& fabric, const std::string& origin)
      : fabric_(sorted(fabric)), origin_(origin), hosts_(hostsOf(fabric_)), switches_(fabric.devices.size()) {
    if (hosts_.empty()) fail(taccInvalidArgument, "{}: no host is plugged into a switch", origin_);
    for (const PluggedHost& host : hosts_) draft_.hosts.push_back(host.name);
  }

  Topology find() {
    RailGroups groups(fabric_, hosts_);
    draft_.levels.push_back(leafLevel(groups));
    addHigherLevels(groups);
    nominalSpeeds();
    try {
      return build(std::move(draft_));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", origin_, error.what());
    }
  }

 private:
  bool isSwitch(std::uint32_t device) const { return fabric_.devices[device].kind == Fabric::Kind::switching; }

  /// `names`: of the groups, each another one.
  LevelDraft levelOf(const RailGroups& groups, std::string_view name, const std::vector<std::string>& names) {
    LevelDraft level;
    level.level.kind = draft_.levels.empty() ? LevelKind::leaf : LevelKind::group;
    level.level.name = name;
    level.level.rails = groups.grouping().usualRails();
    for (const std::uint32_t group : groups.grouping().groupOf) level.groupOf.push_back(names[group]);
    const std::optional<std::vector<double>> uplinks = groups.uplinks(switches_);
    if (!uplinks) return level;
    std::vector<double> ofHosts;  // so that groups of many hosts weigh more
    for (const std::uint32_t group : groups.grouping().groupOf) ofHosts.push_back((*uplinks)[group]);
    level.level.uplink = mostCommon(ofHosts);
    for (std::size_t group = 0; group < uplinks->size(); ++group) {
      const double uplink = (*uplinks)[group];
      if (uplink > 0 && uplink != level.level.uplink) level.uplinks[names[group]] = uplink;
    }
    return level;
  }

  /// By their switches, with what makes them unique where names repeat: unmanaged switches all have their maker's name.
  LevelDraft leafLevel(const RailGroups& groups) {
    std::map<std::string, std::set<std::uint32_t>> uses;
    for (const Rails& rails : groups.grouping().rails) {
      for (const std::uint32_t leaf : rails) uses[fabric_.devices[leaf].name].insert(leaf);
    }
    const std::vector<std::string> names = groups.grouping().names([&](std::uint32_t at) {
      const Fabric::Device& leaf = fabric_.devices[at];
      return leaf.name.empty() ? leaf.id : uses[leaf.name].size() > 1 ? leaf.name + " " + leaf.id : leaf.name;
    });
    return levelOf(groups, "leaf switch", names);
  }

  /// Hosts that reach each other over switches up to each step from the leaves, where that is a level of its own.
  void addHigherLevels(RailGroups& groups) {
    const std::vector<std::uint32_t> steps = stepsFromLeaves(fabric_, hosts_);
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> links;  // by the step of the higher end
    for (const Fabric::Cable& cable : fabric_.cables) {
      if (!isSwitch(cable.a) || !isSwitch(cable.b)) continue;
      const std::uint32_t higher = std::max(steps[cable.a], steps[cable.b]);
      if (higher == unreached) continue;
      const std::size_t at = std::min<std::size_t>(higher, mostLevels - 2);
      if (links.size() <= at) links.resize(at + 1);
      links[at].emplace_back(cable.a, cable.b);
    }
    std::size_t last = groups.groups();
    draft_.root.rails = groups.grouping().usualRails();
    for (const auto& joining : links) {
      if (last == 1) return;
      for (const auto& [a, b] : joining) switches_.join(a, b);
      groups.join(switches_);
      draft_.root.rails = groups.grouping().usualRails();
      if (groups.groups() == last) continue;  // what is there already
      last = groups.groups();
      if (last == 1) return;  // the root
      std::vector<std::string> numbers;
      for (std::size_t group = 0; group < groups.groups(); ++group) numbers.push_back(std::to_string(group));
      LevelDraft level = levelOf(groups, draft_.levels.size() == 1 ? "pod" : "network", numbers);
      level.hasNames = false;
      draft_.levels.push_back(std::move(level));
    }
  }

  void nominalSpeeds() {
    std::vector<std::vector<double>> speeds;
    for (const PluggedHost& host : hosts_) {
      std::vector<double>& own = speeds.emplace_back();
      for (const Plug& plug : host.plugs) own.push_back(plug.bandwidth);
    }
    addCards(draft_, speeds);
  }

  const Fabric fabric_;
  const std::string& origin_;
  std::vector<PluggedHost> hosts_;
  Sets switches_;  // joined so far
  TopologyDraft draft_;
};

}  // namespace

Topology topologyOfFabric(const Fabric& fabric, const std::string& origin) { return Finder(fabric, origin).find(); }

}  // namespace tacc
