// From measurements to a topology with figures.
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "topology/model/draft.hpp"
#include "topology/probe/probe_clusters.hpp"
#include "topology/probe/probe_session.hpp"

namespace tacc {
namespace {

using GroupOfHosts = std::vector<std::uint32_t>;  // by host

/// The value below which `share` of all lie.
std::optional<double> quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nullopt;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

/// The middle one, of two in the middle the higher.
std::optional<double> upperMedian(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Figures {
  std::vector<double> latencies, bandwidths;
  void add(const ProbeSample& sample) {
    if (sample.latency > 0) latencies.push_back(sample.latency);
    if (sample.bandwidth > 0) bandwidths.push_back(sample.bandwidth);
  }
};

std::size_t meet(const std::vector<GroupOfHosts>& levels, ProbePair pair) {
  std::size_t level = 0;
  while (level < levels.size() && levels[level][pair.a] != levels[level][pair.b]) ++level;
  return level;
}

/// What is usual of these; `differs(number, value)` is called for those that are clearly something else: what lies
/// within the noise around the middle is the middle.
template <class Differs>
std::optional<double> settle(const std::vector<std::optional<double>>& values, const Differs& differs,
                             double noise = levelGap) {
  std::vector<double> all;
  for (const auto& value : values)
    if (value) all.push_back(*value);
  const std::optional<double> usual = quantile(all, 0.5);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] && std::abs(std::log(*values[i] / *usual)) >= noise) differs(i, *values[i]);
  return usual;
}

}  // namespace

std::optional<double> ProbeSession::outwardOf(const GroupOfHosts& groupOf, std::uint32_t group,
                                              std::size_t* senders) const {
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
bool ProbeSession::matters(const std::vector<GroupOfHosts>& levels, std::size_t level) const {
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
  std::vector<GroupOfHosts> levels = knowsRounds() ? levels_ : findGroups(matrix_);
  for (std::size_t l = 0; l < levels.size() && !knowsRounds();) {
    if (matters(levels, l)) {
      ++l;
    } else {
      levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(l));
      l = 0;
    }
  }
  TopologyDraft draft;
  draft.hosts = names;
  for (const GroupOfHosts& groupOf : levels) {
    LevelDraft& level = draft.levels.emplace_back();
    level.level.kind = draft.levels.size() == 1 ? LevelKind::leaf : LevelKind::group;
    level.level.name = draft.levels.size() == 1 ? "measured group" : "measured group of groups";
    level.hasNames = false;
    for (const std::uint32_t group : groupOf) level.groupOf.push_back(std::to_string(group));
  }
  const std::vector<LevelFigures> figures = figuresOf(levels);
  for (std::size_t l = 0; l <= levels.size(); ++l) {
    Level& level = l < levels.size() ? draft.levels[l].level : draft.root;
    level.alpha = figures[l].alpha;
    level.bandwidth = figures[l].bandwidth;
  }
  for (std::size_t l = 0; l < levels.size(); ++l)
    draft.levels[l].level.uplink = settle(figures[l].uplinks, [&](std::size_t group, double uplink) {
      draft.levels[l].uplinks[std::to_string(group)] = uplink;
    });
  constexpr double noiseOfMany = 0.15;  // links that were fitted to all rates
  draft.node.uplink = settle(
      hostLinks(levels), [&](std::size_t host, double link) { draft.hostUplinks[names[host]] = link; },
      knowsRounds() ? noiseOfMany : levelGap);
  return build(std::move(draft));
}

std::map<HostSet, double> ProbeSession::sharedUplinks() const {
  std::map<HostSet, double> uplinks;
  if (shared_.groups.empty()) return uplinks;
  std::vector<MeasuredRound> rounds = surveyRounds_;
  rounds.insert(rounds.end(), outwardRounds_.begin(), outwardRounds_.end());
  const SharedLinks fitted = fitUplinks(shared_, rounds);
  for (std::size_t g = 0; g < fitted.groups.size(); ++g) uplinks[fitted.groups[g]] = fitted.uplinks[g];
  return uplinks;
}

void ProbeSession::settleUplinks(const std::vector<GroupOfHosts>& levels, std::size_t level,
                                 std::vector<LevelFigures>& figures) const {
  const std::map<HostSet, double> shared = sharedUplinks();
  std::vector<std::optional<double>>& uplinks = figures[level].uplinks;
  std::vector<HostSet> members(uplinks.size());
  for (std::uint32_t host = 0; host < hosts_; ++host) members[levels[level][host]] |= setOf(host);
  std::vector<double> narrow;
  for (const HostSet group : members)
    if (const auto known = shared.find(group); known != shared.end() && known->second > 0)
      narrow.push_back(known->second);
  const std::optional<double> usual = quantile(narrow, 0.5);
  for (std::size_t group = 0; group < uplinks.size(); ++group) {
    double parts = 0;
    std::set<std::uint32_t> counted;
    for (std::uint32_t host = 0; host < hosts_; ++host) {
      if (!has(members[group], host)) continue;
      if (level == 0)
        parts += shared_.hosts[host];
      else if (counted.insert(levels[level - 1][host]).second)
        parts += *figures[level - 1].uplinks[levels[level - 1][host]];
    }
    const auto known = shared.find(members[group]);
    if (known != shared.end() && known->second > 0)
      uplinks[group] = known->second;
    else if (counted.size() == 1 || std::has_single_bit(members[group]) || !usual)
      uplinks[group] = parts;
    else
      uplinks[group] = std::min(parts, std::max(*usual, uplinks[group].value_or(0)));
  }
}

double ProbeSession::slownessOf(ProbePair pair) const {
  constexpr double slowLink = 0.7;  // of the usual one
  const std::optional<double> usual = upperMedian(shared_.hosts);
  if (!usual) return 1;
  const double link = std::min(shared_.hosts[pair.a], shared_.hosts[pair.b]);
  return link > 0 && link < slowLink * *usual ? *usual / link : 1;
}

std::vector<ProbeSession::LevelFigures> ProbeSession::figuresOf(const std::vector<GroupOfHosts>& levels) const {
  std::vector<Figures> alone(levels.size() + 1), loaded(levels.size() + 1);
  for (const auto& [pair, sample] : alone_) alone[meet(levels, pair)].add({sample.latency, 0});
  for (const auto& [pair, streams] : streams_) {
    // What a slow host's link takes of a stream is that host's figure, and not the level's.
    for (const double stream : streams) alone[meet(levels, pair)].add({0, stream * slownessOf(pair)});
  }
  for (const auto& [pair, sample] : matrix_.all()) loaded[meet(levels, pair)].add(sample);
  std::vector<LevelFigures> figures(levels.size() + 1);
  for (std::size_t l = 0; l <= levels.size(); ++l) {
    figures[l].alpha = quantile(alone[l].latencies.empty() ? loaded[l].latencies : alone[l].latencies, 0.5);
    // Processors that others use take some of a stream, and what a bucket had saved up adds to it, so the one in the
    // middle counts, of two the slower. Without measurements of one pair alone, the fastest come nearest to that; a few
    // are too good to be true.
    figures[l].bandwidth = quantile(alone[l].bandwidths.empty() ? loaded[l].bandwidths : alone[l].bandwidths,
                                    alone[l].bandwidths.empty() ? 0.9 : 0.5);
    if (l == levels.size()) break;
    const std::uint32_t groups = *std::max_element(levels[l].begin(), levels[l].end()) + 1;
    for (std::uint32_t group = 0; group < groups; ++group)
      figures[l].uplinks.push_back(outwardOf(levels[l], group, nullptr));
    if (knowsRounds()) settleUplinks(levels, l, figures);
  }
  // Noise only adds to latencies, and those who meet further inside are no farther from each other.
  for (std::size_t l = levels.size(); l-- > 0;)
    if (figures[l].alpha && figures[l + 1].alpha) figures[l].alpha = std::min(*figures[l].alpha, *figures[l + 1].alpha);
  return figures;
}

/// A host's link carries at least what its best pair does. Those with hosts near them were all under load alike, so
/// they are compared by that; what a stream carries alone is then the measure of all.
std::vector<std::optional<double>> ProbeSession::hostLinks(const std::vector<GroupOfHosts>& levels) const {
  if (!shared_.hosts.empty()) return {shared_.hosts.begin(), shared_.hosts.end()};
  std::vector<double> alone(hosts_, 0.0), loaded(hosts_, 0.0);
  const auto raise = [](std::vector<double>& best, ProbePair pair, double bandwidth) {
    for (const std::uint32_t host : {pair.a, pair.b}) best[host] = std::max(best[host], bandwidth);
  };
  Figures near;
  for (const auto& [pair, sample] : alone_) {
    raise(alone, pair, sample.bandwidth);
    if (meet(levels, pair) == 0) near.add(sample);
  }
  for (const auto& [pair, sample] : matrix_.all())
    if (meet(levels, pair) == 0) raise(loaded, pair, sample.bandwidth);
  std::vector<double> usual;
  for (const double best : loaded)
    if (best > 0) usual.push_back(best);
  const std::optional<double> middle = quantile(usual, 0.5);
  const double scale = middle && !near.bandwidths.empty() ? *quantile(near.bandwidths, 0.5) / *middle : 1;
  std::vector<std::optional<double>> links(hosts_);
  for (std::uint32_t host = 0; host < hosts_; ++host) {
    const double best = std::max(alone[host], loaded[host] * scale);
    if (best > 0) links[host] = best;
  }
  return links;
}

Topology ProbeSession::complete(const Topology& known, const std::vector<std::uint32_t>& places) const {
  TopologyDraft draft = draftOf(known);
  const std::vector<LevelFigures> figures = figuresOf(levels_);
  for (std::size_t l = 0; l <= levels_.size(); ++l) {
    Level& level = l < levels_.size() ? draft.levels[l].level : draft.root;
    if (!level.alpha) level.alpha = figures[l].alpha;
    if (!level.bandwidth) level.bandwidth = figures[l].bandwidth;
    if (l == levels_.size() || level.uplink) continue;
    LevelDraft& groups = draft.levels[l];
    level.uplink = settle(figures[l].uplinks, [&](std::size_t group, double uplink) {
      const auto host = static_cast<std::size_t>(std::ranges::find(levels_[l], group) - levels_[l].begin());
      groups.uplinks.try_emplace(groups.groupOf[places[host]], uplink);
    });
  }
  if (!draft.node.uplink)
    draft.node.uplink = settle(hostLinks(levels_), [&](std::size_t host, double link) {
      draft.hostUplinks.try_emplace(known.host(places[host]), link);
    });
  return build(std::move(draft));
}

}  // namespace tacc
