// From measurements to a topology with figures.
#include <algorithm>

#include "topology/draft.hpp"
#include "topology/probe_clusters.hpp"
#include "topology/probe_session.hpp"

namespace tacc {
namespace {

/// The value below which `share` of all lie.
std::optional<double> quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nullopt;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

struct Figures {
  std::vector<double> latencies, bandwidths;
  void add(const ProbeSample& sample) {
    if (sample.latency > 0) latencies.push_back(sample.latency);
    if (sample.bandwidth > 0) bandwidths.push_back(sample.bandwidth);
  }
};

}  // namespace

Topology ProbeSession::topology(const std::vector<std::string>& names) const {
  const std::vector<std::vector<std::uint32_t>> levels = findGroups(matrix_);
  TopologyDraft draft;
  draft.hosts = names;
  for (const std::vector<std::uint32_t>& groupOf : levels) {
    LevelDraft& level = draft.levels.emplace_back();
    level.level.kind = draft.levels.size() == 1 ? LevelKind::leaf : LevelKind::group;
    level.level.name = draft.levels.size() == 1 ? "measured group" : "measured group of groups";
    level.hasNames = false;
    for (const std::uint32_t group : groupOf) level.groupOf.push_back(std::to_string(group));
  }
  const auto meet = [&](ProbePair pair) {
    std::size_t level = 0;
    while (level < levels.size() && levels[level][pair.a] != levels[level][pair.b]) ++level;
    return level;
  };
  std::vector<Figures> alone(levels.size() + 1), loaded(levels.size() + 1);
  for (const AloneSample& sample : alone_) alone[meet(sample.pair)].add(sample.sample);
  for (const auto& [pair, sample] : matrix_.all()) loaded[meet(pair)].add(sample);
  for (std::size_t l = 0; l <= levels.size(); ++l) {
    Level& level = l < levels.size() ? draft.levels[l].level : draft.root;
    level.alpha = quantile(alone[l].latencies.empty() ? loaded[l].latencies : alone[l].latencies, 0.5);
    // Without measurements of one pair alone, the fastest come nearest to that; a few are too good to be true.
    level.bandwidth =
        alone[l].bandwidths.empty() ? quantile(loaded[l].bandwidths, 0.9) : quantile(alone[l].bandwidths, 0.5);
  }
  for (std::size_t l = 0; l < levels.size(); ++l) {
    std::vector<double> all;
    for (const Outward& outward : outward_) {
      const std::uint32_t group = outward.members.empty() ? 0 : levels[l][outward.members.front()];
      const auto inGroup = [&](std::uint32_t host) { return levels[l][host] == group; };
      const auto size = static_cast<std::size_t>(std::count(levels[l].begin(), levels[l].end(), group));
      // Half of a group must send for its uplink to be full, and no other group with it.
      if (outward.members.size() * 2 < size || outward.members.empty() || !(outward.bytesPerSecond > 0) ||
          !std::all_of(outward.members.begin(), outward.members.end(), inGroup)) {
        continue;
      }
      // What a group of a lower level sent says nothing of this one, unless they are the same hosts.
      if (l > 0 && std::all_of(outward.members.begin(), outward.members.end(), [&](std::uint32_t host) {
            return levels[l - 1][host] == levels[l - 1][outward.members.front()];
          })) {
        const auto inner = static_cast<std::size_t>(
            std::count(levels[l - 1].begin(), levels[l - 1].end(), levels[l - 1][outward.members.front()]));
        if (inner != size) continue;
      }
      draft.levels[l].uplinks[std::to_string(group)] = outward.bytesPerSecond;
      all.push_back(outward.bytesPerSecond);
    }
    draft.levels[l].level.uplink = quantile(all, 0.5);
    // What lies within the noise around the middle is the middle.
    std::erase_if(draft.levels[l].uplinks, [&](const auto& entry) {
      return std::max(entry.second / *draft.levels[l].level.uplink, *draft.levels[l].level.uplink / entry.second) <
             1.25;
    });
  }
  return build(std::move(draft));
}

}  // namespace tacc
