// From measurements to a topology with figures.
#include <algorithm>
#include <cmath>

#include "topology/draft.hpp"
#include "topology/probe_clusters.hpp"
#include "topology/probe_session.hpp"

namespace tacc {
namespace {

using Groups = std::vector<std::uint32_t>;  // by host

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

std::size_t meet(const std::vector<Groups>& levels, ProbePair pair) {
  std::size_t level = 0;
  while (level < levels.size() && levels[level][pair.a] != levels[level][pair.b]) ++level;
  return level;
}

}  // namespace

std::optional<double> ProbeSession::outwardOf(const Groups& groupOf, std::uint32_t group, std::size_t* senders) const {
  const auto size = static_cast<std::size_t>(std::count(groupOf.begin(), groupOf.end(), group));
  for (const Outward& outward : outward_) {
    // Half of a group must send for its uplink to be full, and nobody else with it.
    if (outward.members.size() * 2 < size || outward.members.empty() || !(outward.bytesPerSecond > 0)) continue;
    if (outward.ofGroup != size) continue;
    if (std::any_of(outward.members.begin(), outward.members.end(),
                    [&](std::uint32_t host) { return groupOf[host] != group; })) {
      continue;
    }
    if (senders != nullptr) *senders = outward.members.size();
    return outward.bytesPerSecond;
  }
  return std::nullopt;
}

/// A level that is real costs something to cross: latency, bandwidth of one stream, or an uplink that all share. What
/// only looked like a level in the survey, because its hosts met with more or less load than others, does not.
bool ProbeSession::matters(const std::vector<Groups>& levels, std::size_t level) const {
  Figures inside, outside;
  for (const auto& [pair, sample] : alone_) {
    const std::size_t at = meet(levels, pair);
    if (at == level) inside.add(sample);
    if (at == level + 1) outside.add(sample);
  }
  const auto differs = [](std::vector<double> low, std::vector<double> high) {
    return !low.empty() && !high.empty() &&
           std::log(*quantile(std::move(high), 0.5) / *quantile(std::move(low), 0.5)) > levelGap;
  };
  if (outside.latencies.empty() && outside.bandwidths.empty()) return true;  // nobody looked
  // Groups of one host have nobody inside to compare with.
  if (inside.latencies.empty() && inside.bandwidths.empty()) return true;
  if (matrix_.latenciesTell() && differs(inside.latencies, outside.latencies)) return true;
  if (differs(outside.bandwidths, inside.bandwidths)) return true;
  // What a host sends while others send, too: virtual hosts share their processors.
  Figures loaded;
  for (const auto& [pair, sample] : matrix_.all())
    if (meet(levels, pair) == 0) loaded.add(sample);
  const double alone = quantile(outside.bandwidths, 0.5).value_or(0);
  const double stream = std::min(alone, quantile(loaded.bandwidths, 0.5).value_or(alone));
  const std::uint32_t groups = *std::max_element(levels[level].begin(), levels[level].end()) + 1;
  for (std::uint32_t group = 0; group < groups; ++group) {
    std::size_t senders = 0;
    const std::optional<double> sum = outwardOf(levels[level], group, &senders);
    if (!sum || senders < 2) continue;
    double parts = stream * static_cast<double>(senders);  // what could leave if the group were no limit
    if (level > 0) {
      double ofChildren = 0;
      std::vector<bool> isDone(hosts_);
      for (std::uint32_t host = 0; host < hosts_; ++host) {
        const std::uint32_t child = levels[level - 1][host];
        if (levels[level][host] != group || isDone[child]) continue;
        isDone[child] = true;
        ofChildren += outwardOf(levels[level - 1], child, nullptr).value_or(parts);
      }
      parts = std::min(parts, ofChildren);
    }
    // Above the first level, those who receive may be what limits, so less must leave before this group is to blame.
    if (*sum < parts * std::exp(level == 0 ? -levelGap : -2 * levelGap)) return true;
  }
  return false;
}

Topology ProbeSession::topology(const std::vector<std::string>& names) const {
  std::vector<Groups> levels = findGroups(matrix_);
  for (std::size_t l = 0; l < levels.size();) {
    if (matters(levels, l)) {
      ++l;
    } else {
      levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(l));
      l = 0;
    }
  }
  TopologyDraft draft;
  draft.hosts = names;
  for (const Groups& groupOf : levels) {
    LevelDraft& level = draft.levels.emplace_back();
    level.level.kind = draft.levels.size() == 1 ? LevelKind::leaf : LevelKind::group;
    level.level.name = draft.levels.size() == 1 ? "measured group" : "measured group of groups";
    level.hasNames = false;
    for (const std::uint32_t group : groupOf) level.groupOf.push_back(std::to_string(group));
  }
  std::vector<Figures> alone(levels.size() + 1), loaded(levels.size() + 1);
  for (const auto& [pair, sample] : alone_) alone[meet(levels, pair)].add(sample);
  for (const auto& [pair, sample] : matrix_.all()) loaded[meet(levels, pair)].add(sample);
  for (std::size_t l = 0; l <= levels.size(); ++l) {
    Level& level = l < levels.size() ? draft.levels[l].level : draft.root;
    level.alpha = quantile(alone[l].latencies.empty() ? loaded[l].latencies : alone[l].latencies, 0.5);
    // Without measurements of one pair alone, the fastest come nearest to that; a few are too good to be true.
    level.bandwidth =
        alone[l].bandwidths.empty() ? quantile(loaded[l].bandwidths, 0.9) : quantile(alone[l].bandwidths, 0.5);
  }
  for (std::size_t l = 0; l < levels.size(); ++l) {
    std::vector<double> all;
    for (std::uint32_t group = 0; group <= *std::max_element(levels[l].begin(), levels[l].end()); ++group) {
      const std::optional<double> sum = outwardOf(levels[l], group, nullptr);
      if (!sum) continue;
      draft.levels[l].uplinks[std::to_string(group)] = *sum;
      all.push_back(*sum);
    }
    std::optional<double>& usual = draft.levels[l].level.uplink;
    usual = quantile(all, 0.5);
    // What lies within the noise around the middle is the middle.
    std::erase_if(draft.levels[l].uplinks,
                  [&](const auto& entry) { return std::abs(std::log(entry.second / *usual)) < levelGap; });
  }
  return build(std::move(draft));
}

}  // namespace tacc
