#include "topology/sources/host_cards.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace tacc {

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

void addCards(TopologyDraft& draft, const std::vector<std::vector<double>>& speeds) {
  std::vector<double> all, sums, cards;
  for (const std::vector<double>& own : speeds) {
    all.insert(all.end(), own.begin(), own.end());
    const bool isKnown = std::ranges::all_of(own, [](double speed) { return speed > 0; });
    sums.push_back(isKnown ? std::accumulate(own.begin(), own.end(), 0.0) : 0);
    cards.push_back(static_cast<double>(std::min<std::size_t>(own.size(), mostRails)));
  }
  draft.node.rails = static_cast<std::uint32_t>(mostCommon(cards).value_or(1));
  draft.node.uplink = mostCommon(sums);
  for (std::size_t host = 0; host < sums.size(); ++host)
    if (sums[host] > 0 && sums[host] != draft.node.uplink) draft.hostUplinks[draft.hosts[host]] = sums[host];
  draft.root.bandwidth = mostCommon(all);
  for (LevelDraft& level : draft.levels) level.level.bandwidth = draft.root.bandwidth;
}

}  // namespace tacc
