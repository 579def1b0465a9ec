#include "topology/fabric.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/error.hpp"
#include "topology/draft.hpp"
#include "topology/host_list.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t far = 0xffffffff;

/// Sets that can be joined.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t find(std::uint32_t one) {
    while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
    return one;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

/// The value that most have; of several such the least.
std::optional<double> mostCommon(const std::vector<double>& values) {
  std::map<double, std::size_t> counts;
  for (const double value : values) {
    if (value > 0) ++counts[value];
  }
  std::optional<double> best;
  std::size_t most = 0;
  for (const auto& [value, count] : counts) {
    if (count > most) best = value, most = count;
  }
  return best;
}

class Finder {
 public:
  Finder(const Fabric& fabric, const std::string& origin)
      : fabric_(fabric), origin_(origin), rank_(fabric.devices.size(), far), leaves_(fabric.devices.size()) {}

  Topology find() {
    findHosts();
    rankSwitches();
    LevelDraft level = levelOf(leaves_, "leaf switch");
    nameLeaves(level);
    draft_.levels.push_back(std::move(level));
    std::uint32_t highest = 0;
    for (const std::uint32_t rank : rank_) {
      if (rank != far) highest = std::max(highest, rank);
    }
    for (std::uint32_t rank = 0; rank <= std::min<std::uint32_t>(highest, mostLevels - 2); ++rank) addComponents(rank);
    nominalSpeeds();
    try {
      return build(std::move(draft_));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", origin_, error.what());
    }
  }

 private:
  bool isSwitch(std::uint32_t device) const { return fabric_.devices[device].isSwitch; }

  void findHosts() {
    std::unordered_map<std::string_view, std::uint32_t> hostOf;
    for (const Fabric::Cable& cable : fabric_.cables) {
      for (const auto& [at, other] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
        if (isSwitch(at) || !isSwitch(other)) continue;
        const auto [host, isNew] =
            hostOf.try_emplace(fabric_.devices[at].name, static_cast<std::uint32_t>(draft_.hosts.size()));
        if (isNew) {
          draft_.hosts.push_back(fabric_.devices[at].name);
          switchOf_.push_back(other);
          injection_.push_back(0);
        }
        leaves_.join(switchOf_[host->second], other);
        injection_[host->second] += cable.bandwidth;
        speeds_.push_back(cable.bandwidth);
        rank_[other] = 0;
      }
    }
    if (draft_.hosts.empty()) fail(taccInvalidArgument, "{}: no host is plugged into a switch", origin_);
  }

  /// How many switches away from the nearest leaf.
  void rankSwitches() {
    std::vector<std::vector<std::uint32_t>> neighbours(fabric_.devices.size());
    for (const Fabric::Cable& cable : fabric_.cables) {
      if (!isSwitch(cable.a) || !isSwitch(cable.b)) continue;
      neighbours[cable.a].push_back(cable.b);
      neighbours[cable.b].push_back(cable.a);
    }
    std::deque<std::uint32_t> next;
    for (std::uint32_t device = 0; device < rank_.size(); ++device) {
      if (rank_[device] == 0) next.push_back(device);
    }
    while (!next.empty()) {
      const std::uint32_t device = next.front();
      next.pop_front();
      for (const std::uint32_t other : neighbours[device]) {
        if (rank_[other] != far) continue;
        rank_[other] = rank_[device] + 1;
        next.push_back(other);
      }
    }
  }

  LevelDraft levelOf(Sets& sets, std::string_view name) {
    LevelDraft level;
    level.level.kind = draft_.levels.empty() ? LevelKind::leaf : LevelKind::group;
    level.level.name = name;
    level.hasNames = false;
    for (const std::uint32_t at : switchOf_) level.groupOf.push_back(std::to_string(sets.find(at)));
    std::map<std::string, double> sums;
    for (const std::string& group : level.groupOf) sums.try_emplace(group, 0);
    bool isKnown = true;
    for (const Fabric::Cable& cable : fabric_.cables) {
      if (!isSwitch(cable.a) || !isSwitch(cable.b)) continue;
      const std::uint32_t a = sets.find(cable.a), b = sets.find(cable.b);
      if (a == b) continue;
      for (const std::uint32_t end : {a, b}) {
        const auto sum = sums.find(std::to_string(end));
        if (sum != sums.end()) sum->second += cable.bandwidth;
      }
      isKnown = isKnown && cable.bandwidth > 0;
    }
    if (!isKnown) return level;
    std::vector<double> all;
    for (const auto& [group, sum] : sums) all.push_back(sum);
    level.level.uplink = mostCommon(all);
    for (const auto& [group, sum] : sums) {
      if (sum > 0 && sum != level.level.uplink) level.uplinks[group] = sum;
    }
    return level;
  }

  /// By their switches, with what makes them unique where names repeat: unmanaged switches all have their maker's name.
  void nameLeaves(LevelDraft& level) {
    std::map<std::string, std::vector<std::uint32_t>> members;
    for (std::uint32_t device = 0; device < rank_.size(); ++device) {
      if (rank_[device] == 0) members[std::to_string(leaves_.find(device))].push_back(device);
    }
    std::map<std::string, std::uint32_t> uses;
    for (std::uint32_t device = 0; device < rank_.size(); ++device) {
      if (rank_[device] == 0) ++uses[fabric_.devices[device].name];
    }
    std::map<std::string, std::string> nameOf;
    for (const auto& [group, switches] : members) {
      std::vector<std::string> names;
      for (const std::uint32_t device : switches) {
        const Fabric::Device& leaf = fabric_.devices[device];
        names.push_back(leaf.name.empty() ? leaf.id : uses[leaf.name] > 1 ? leaf.name + " " + leaf.id : leaf.name);
      }
      std::sort(names.begin(), names.end(), naturallyLess);
      std::string& name = nameOf[group];
      for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i) name += (i > 0 ? "+" : "") + names[i];
      if (names.size() > 8) name += "+...";
    }
    std::map<std::string, double> uplinks;
    for (const auto& [group, uplink] : level.uplinks) uplinks[nameOf[group]] = uplink;
    level.uplinks = std::move(uplinks);
    for (std::string& group : level.groupOf) group = nameOf[group];
    level.hasNames = true;
  }

  /// Hosts that reach each other over switches up to this rank, if that is a level of its own.
  void addComponents(std::uint32_t rank) {
    Sets sets = leaves_;
    for (const Fabric::Cable& cable : fabric_.cables) {
      if (isSwitch(cable.a) && isSwitch(cable.b) && rank_[cable.a] <= rank && rank_[cable.b] <= rank) {
        sets.join(cable.a, cable.b);
      }
    }
    const auto count = [&](auto group) {
      std::vector<std::uint32_t> all;
      for (const std::uint32_t at : switchOf_) all.push_back(group(at));
      std::sort(all.begin(), all.end());
      return static_cast<std::size_t>(std::unique(all.begin(), all.end()) - all.begin());
    };
    const std::size_t groups = count([&](std::uint32_t at) { return sets.find(at); });
    if (lastGroups_ == 0) lastGroups_ = count([&](std::uint32_t at) { return leaves_.find(at); });
    if (groups == 1 || groups == lastGroups_) return;  // the root, or what is there already
    lastGroups_ = groups;
    draft_.levels.push_back(levelOf(sets, draft_.levels.size() == 1 ? "pod" : "network"));
  }

  void nominalSpeeds() {
    draft_.node.uplink = mostCommon(injection_);
    for (std::size_t host = 0; host < injection_.size(); ++host)
      if (injection_[host] > 0 && injection_[host] != draft_.node.uplink)
        draft_.hostUplinks[draft_.hosts[host]] = injection_[host];
    const std::optional<double> speed = mostCommon(speeds_);
    for (LevelDraft& level : draft_.levels) level.level.bandwidth = speed;
    draft_.root.bandwidth = speed;
  }

  const Fabric& fabric_;
  const std::string& origin_;
  TopologyDraft draft_;
  std::vector<std::uint32_t> switchOf_;  // by host: one of its leaves
  std::vector<double> injection_;        // by host: the sum of its cables
  std::vector<double> speeds_;           // of cables to hosts
  std::vector<std::uint32_t> rank_;      // by device: steps from a leaf
  Sets leaves_;
  std::size_t lastGroups_ = 0;
};

}  // namespace

Topology topologyOfFabric(const Fabric& fabric, const std::string& origin) { return Finder(fabric, origin).find(); }

}  // namespace tacc
