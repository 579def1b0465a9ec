#include "topology/sources/switch_tree.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/rails.hpp"

namespace tacc {
namespace {

constexpr std::size_t noSwitch = static_cast<std::size_t>(-1);

class SwitchTree {
 public:
  SwitchTree(const std::vector<SwitchEntry>& switches, const std::string& origin)
      : switches_(switches), origin_(origin), parent_(switches.size(), noSwitch), height_(switches.size(), 1) {}

  Topology make() {
    index();
    mergeSpines();
    connect();
    measure();
    return toTopology();
  }

 private:
  void index() {
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const auto [other, isNew] = byName_.try_emplace(switches_[i].name, i);
      if (!isNew) {
        fail(taccInvalidArgument, "{}: the switch {} stands in {} already", switches_[i].where,
             shownText(switches_[i].name), switches_[other->second].where);
      }
    }
  }

  std::size_t find(const std::string& name, const SwitchEntry& from) const {
    const auto found = byName_.find(name);
    if (found != byName_.end()) return found->second;
    std::vector<std::string_view> names;  // a few are enough for a hint
    for (std::size_t i = 0; i < std::min<std::size_t>(switches_.size(), 1000); ++i) names.push_back(switches_[i].name);
    const std::string_view meant = nearest(name, names);
    fail(taccInvalidArgument, "{}: there is no switch {}{}", from.where, shownText(name),
         meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant));
  }

  /// Spines join the same switches: for the tree they are one.
  void mergeSpines() {
    std::map<std::vector<std::size_t>, std::size_t> known;
    children_.resize(switches_.size());
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      for (const std::string& child : switches_[i].children) children_[i].push_back(find(child, switches_[i]));
      std::sort(children_[i].begin(), children_[i].end());
      if (children_[i].empty() || !switches_[i].hosts.empty()) continue;
      if (!known.try_emplace(children_[i], i).second) children_[i].clear();
    }
  }

  void connect() {
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      for (const std::size_t child : children_[i]) {
        if (parent_[child] != noSwitch) {
          fail(taccInvalidArgument, "{}: the switch {} is below {} and below {}; in a tree it is below one",
               switches_[i].where, switches_[child].name, switches_[parent_[child]].name, switches_[i].name);
        }
        parent_[child] = i;
      }
    }
  }

  /// Heights, from below. Who has more switches above than there are levels is in a loop or in no network that exists.
  void measure() {
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      std::size_t above = i;
      for (int height = 1; parent_[above] != noSwitch; ++height) {
        above = parent_[above];
        if (above == i || height > static_cast<int>(mostLevels)) {
          fail(taccInvalidArgument, "{}: the switch {} is {}", switches_[i].where, switches_[i].name,
               above == i ? "below itself: the switches form a loop"
                          : fmt::format("below more than {} others, or below a loop", mostLevels));
        }
        height_[above] = std::max(height_[above], height + 1);
      }
    }
  }

  Topology toTopology() {
    TopologyDraft draft;
    std::vector<Rails> switchesOf;  // by host
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      for (const std::string& host : switches_[i].hosts) {
        const auto [known, isNew] = seen.try_emplace(host, draft.hosts.size());
        if (isNew) {
          draft.hosts.push_back(host);
          switchesOf.emplace_back();
        }
        switchesOf[known->second].push_back(static_cast<std::uint32_t>(i));
      }
    }
    for (std::size_t host = 0; host < draft.hosts.size(); ++host) checkRails(draft.hosts[host], switchesOf[host]);
    if (draft.hosts.empty()) fail(taccInvalidArgument, "{}: no switch has hosts", origin_);

    int highest = 1;
    for (const Rails& own : switchesOf) {
      for (std::size_t above : own) {
        while (parent_[above] != noSwitch) above = parent_[above];
        highest = std::max(highest, height_[above]);
      }
    }
    RailGrouping groups = groupByRails(std::move(switchesOf));
    draft.node.rails = groups.usualRails();
    std::size_t last = 0;  // groups of the level before; 1: all meet there already
    for (int level = 1; level <= highest; ++level) {
      std::unordered_map<std::string, std::uint32_t> first;  // by name of a group: a switch in it
      groups =
          joinRails(groups, [&](std::uint32_t at) { return first.try_emplace(groupAt(at, level), at).first->second; });
      const std::vector<std::string> names = groups.names([&](std::uint32_t at) { return groupAt(at, level); });
      if (last != 1) draft.root.rails = groups.usualRails();
      last = names.size();
      if (level == highest && names.size() == 1) {
        draft.root.name = names.front();
        break;
      }
      LevelDraft& to = draft.levels.emplace_back();
      to.level.kind = level == 1 ? LevelKind::leaf : LevelKind::group;
      to.level.name = level == 1 ? "leaf switch" : level == 2 ? "switch" : fmt::format("switch level {}", level);
      to.level.rails = groups.usualRails();
      to.groupOf.reserve(draft.hosts.size());
      for (const std::uint32_t group : groups.groupOf) to.groupOf.push_back(names[group]);
    }
    try {
      return build(std::move(draft));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", origin_, error.what());
    }
  }

  /// A host at two switches has a card at each: two rails. They are different ones, and none is above another.
  void checkRails(const std::string& host, const Rails& own) const {
    if (own.size() < 2) return;
    std::unordered_map<std::size_t, std::size_t> uses;
    for (const std::uint32_t at : own) ++uses[at];
    const auto reject = [&](std::size_t at, std::size_t other) {
      fail(taccInvalidArgument, "{}: the host {} is at {} already ({})", switches_[at].where, host,
           switches_[other].name, switches_[other].where);
    };
    for (const std::uint32_t at : own) {
      if (uses.at(at) > 1) reject(at, at);
      for (std::size_t above = parent_[at]; above != noSwitch; above = parent_[above])
        if (uses.contains(above)) reject(std::max<std::size_t>(at, above), std::min<std::size_t>(at, above));
    }
  }

  /// The switch above `at` of this height; where one is skipped, the highest below it. Hosts at a switch that is higher
  /// than a leaf are a group of their own below it.
  std::string groupAt(std::size_t at, int level) const {
    if (height_[at] > level) return switches_[at].name + " (own hosts)";
    while (parent_[at] != noSwitch && height_[parent_[at]] <= level) at = parent_[at];
    return switches_[at].name;
  }

  const std::vector<SwitchEntry>& switches_;
  const std::string& origin_;
  std::unordered_map<std::string_view, std::size_t> byName_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> parent_;
  std::vector<int> height_;
};

}  // namespace

Topology topologyOfSwitches(const std::vector<SwitchEntry>& switches, const std::string& origin) {
  return SwitchTree(switches, origin).make();
}

}  // namespace tacc
