#include "topology/model/rails.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "topology/model/host_list.hpp"
#include "topology/model/level.hpp"

namespace tacc {
namespace {

bool contains(const Rails& all, const Rails& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// Sets of rails that stand for groups. A set is looked for by the rail that fewest sets have, so it takes long only
/// where many sets have many rails in common.
class Chosen {
 public:
  explicit Chosen(const std::map<Rails, std::uint32_t>& sets) {
    for (const auto& [rails, hosts] : sets) {
      for (const std::uint32_t rail : rails) ++uses_[rail];
    }
  }

  void add(const Rails& rails) {
    const auto group = static_cast<std::uint32_t>(sets_.size());
    sets_.push_back(rails);
    for (const std::uint32_t rail : rails) with_[rail].push_back(group);
    withRarest_[rarestOf(rails)].push_back(group);
  }

  /// The first that has all these rails, or no others.
  std::optional<std::uint32_t> find(const Rails& rails) const {
    std::optional<std::uint32_t> found;
    const auto look = [&](const std::unordered_map<std::uint32_t, Rails>& index, std::uint32_t rail, bool isLarger) {
      const auto entry = index.find(rail);
      if (entry == index.end()) return;
      for (const std::uint32_t group : entry->second) {
        if (found && group >= *found) return;
        if (isLarger ? contains(sets_[group], rails) : contains(rails, sets_[group])) found = group;
      }
    };
    look(with_, rarestOf(rails), true);
    for (const std::uint32_t rail : rails) look(withRarest_, rail, false);
    return found;
  }

  std::vector<Rails> take() { return std::move(sets_); }

 private:
  std::uint32_t rarestOf(const Rails& rails) const {
    return *std::min_element(rails.begin(), rails.end(),
                             [this](std::uint32_t a, std::uint32_t b) { return uses_.at(a) < uses_.at(b); });
  }

  std::unordered_map<std::uint32_t, std::uint32_t> uses_;
  std::vector<Rails> sets_;
  std::unordered_map<std::uint32_t, Rails> with_, withRarest_;  // by rail: groups, rising
};

}  // namespace

RailGrouping groupByRails(std::vector<Rails> railsOf) {
  std::map<Rails, std::uint32_t> hosts;  // how many have them
  for (Rails& rails : railsOf) {
    std::sort(rails.begin(), rails.end());
    rails.erase(std::unique(rails.begin(), rails.end()), rails.end());
    ++hosts[rails];
  }
  std::vector<const std::pair<const Rails, std::uint32_t>*> order;
  for (const auto& entry : hosts) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second, a->first.size()) > std::pair(b->second, b->first.size());
  });
  Chosen chosen(hosts);
  std::map<Rails, std::uint32_t> groupFor;
  std::uint32_t groups = 0;
  for (const auto* entry : order) {
    const std::optional<std::uint32_t> known = chosen.find(entry->first);
    if (!known) chosen.add(entry->first);
    groupFor.emplace(entry->first, known ? *known : groups++);
  }
  RailGrouping grouping;
  for (const Rails& rails : railsOf) grouping.groupOf.push_back(groupFor.at(rails));
  grouping.rails = chosen.take();
  return grouping;
}

RailGrouping joinRails(const RailGrouping& grouping, const std::function<std::uint32_t(std::uint32_t)>& joined) {
  std::vector<Rails> railsOf;
  railsOf.reserve(grouping.groupOf.size());
  for (const std::uint32_t group : grouping.groupOf) {
    Rails& rails = railsOf.emplace_back(grouping.rails[group]);
    for (std::uint32_t& rail : rails) rail = joined(rail);
  }
  return groupByRails(std::move(railsOf));
}

std::uint32_t RailGrouping::usualRails() const {
  std::map<std::size_t, std::size_t> hostsWith;
  for (const std::uint32_t group : groupOf) ++hostsWith[rails[group].size()];
  const auto most = std::max_element(hostsWith.begin(), hostsWith.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == hostsWith.end() ? 1 : static_cast<std::uint32_t>(std::min<std::size_t>(most->first, mostRails));
}

std::vector<std::string> RailGrouping::names(const std::function<std::string(std::uint32_t)>& nameOf) const {
  constexpr std::size_t mostNames = 8;
  std::vector<std::string> names;
  std::map<std::string, std::uint32_t> times;
  for (const Rails& own : rails) {
    std::vector<std::string> parts;
    for (const std::uint32_t rail : own) parts.push_back(nameOf(rail));
    std::sort(parts.begin(), parts.end(), naturallyLess);
    std::string& name = names.emplace_back();
    for (std::size_t i = 0; i < std::min(parts.size(), mostNames); ++i) name += (i > 0 ? "+" : "") + parts[i];
    if (parts.size() > mostNames) name += "+...";
    const std::uint32_t before = times[name]++;
    if (before > 0) name += " (" + std::to_string(before + 1) + ")";
  }
  return names;
}

}  // namespace tacc
