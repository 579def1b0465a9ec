#include "topology/model/node_places.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace tacc {
namespace {

/// The groups of a rank, outermost first; nothing at levels at which it belongs to none.
using Groups = std::vector<std::optional<std::uint32_t>>;

Groups groupsOf(const NodeDescription& node, const cpu_set_t& cores) {
  Groups groups(node.levels.size());
  bool isFirst = true;
  for (std::uint32_t core = 0; core < node.cores.size(); ++core) {
    const bool isOwn = std::ranges::any_of(
        node.cores[core], [&](std::uint32_t cpu) { return cpu < CPU_SETSIZE && CPU_ISSET(cpu, &cores); });
    if (!isOwn) continue;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::uint32_t group = node.nesting.groupOf(static_cast<int>(groups.size() - i), core);
      if (isFirst)
        groups[i] = group;
      else if (groups[i] != group)
        groups[i].reset();
    }
    isFirst = false;
  }
  return groups;
}

}  // namespace

bool NodePlaces::isInOrder() const noexcept { return std::ranges::is_sorted(order); }

bool mayStandApart(std::span<const cpu_set_t> cores) noexcept {
  constexpr std::size_t leastRanks = 3;  // two groups, and two ranks in one of them
  return cores.size() >= leastRanks &&
         std::ranges::any_of(cores, [&](const cpu_set_t& one) { return CPU_EQUAL(&one, &cores.front()) == 0; });
}

NodePlaces placesUnknown(int ranks) {
  NodePlaces places;
  places.order.resize(static_cast<std::size_t>(ranks));
  std::iota(places.order.begin(), places.order.end(), 0);
  return places;
}

NodePlaces placesOf(const NodeDescription& node, std::span<const cpu_set_t> cores) {
  NodePlaces places = placesUnknown(static_cast<int>(cores.size()));
  std::vector<Groups> groups;
  for (const cpu_set_t& one : cores) groups.push_back(groupsOf(node, one));
  std::vector<std::size_t> known;  // levels at which everybody is somewhere, outermost first
  for (std::size_t i = 0; i < node.levels.size(); ++i)
    if (std::ranges::all_of(groups, [i](const Groups& one) { return one[i].has_value(); })) known.push_back(i);
  const auto groupsAt = [&](int rank) -> const Groups& { return groups[static_cast<std::size_t>(rank)]; };
  std::ranges::stable_sort(places.order, [&](int a, int b) {
    for (const std::size_t i : known)
      if (groupsAt(a)[i] != groupsAt(b)[i]) return *groupsAt(a)[i] < *groupsAt(b)[i];
    return false;
  });
  for (const std::size_t i : known) {
    PlaceLevel level{node.levels[node.levels.size() - 1 - i].kind, {}};
    for (std::size_t place = 0; place < cores.size(); ++place)
      if (place == 0 || groupsAt(places.order[place])[i] != groupsAt(places.order[place - 1])[i])
        level.begins.push_back(static_cast<int>(place));
    const bool parts = level.begins.size() > 1 && level.begins.size() < cores.size();
    const bool isNew = places.levels.empty() || places.levels.front().begins != level.begins;
    if (parts && isNew) places.levels.insert(places.levels.begin(), std::move(level));
  }
  if (places.isFlat()) return placesUnknown(static_cast<int>(cores.size()));
  return places;
}

}  // namespace tacc
