#include "topology/probe/probe_session.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "topology/probe/group_nesting.hpp"
#include "topology/probe/probe_clusters.hpp"

namespace tacc {
namespace {

/// The same everywhere: std::shuffle and std::random are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>((state_ >> 32) * limit >> 32);
  }
  std::vector<std::uint32_t> order(std::uint32_t count) {
    std::vector<std::uint32_t> result(count);
    std::iota(result.begin(), result.end(), 0u);
    for (std::uint32_t i = count; i > 1; --i) std::swap(result[i - 1], result[below(i)]);
    return result;
  }

 private:
  std::uint64_t state_;
};

/// Round `round` of a tournament in which each meets each: the last stands still, the others go round it.
std::vector<ProbePair> tournament(const std::vector<std::uint32_t>& players, std::uint32_t round) {
  const auto count = static_cast<std::uint32_t>(players.size());
  const std::uint32_t places = count + count % 2, ring = places - 1;
  std::vector<ProbePair> pairs;
  for (std::uint32_t i = 0; i < places / 2; ++i) {
    const std::uint32_t x = i == 0 ? ring : (round + i) % ring, y = (round + ring - i) % ring;
    if (x < count && y < count) pairs.push_back({players[x], players[y]});
  }
  return pairs;
}

std::vector<std::vector<std::uint32_t>> membersOf(const std::vector<std::uint32_t>& groupOf) {
  std::vector<std::vector<std::uint32_t>> members(
      groupOf.empty() ? 0 : *std::max_element(groupOf.begin(), groupOf.end()) + 1);
  for (std::uint32_t host = 0; host < groupOf.size(); ++host) members[groupOf[host]].push_back(host);
  return members;
}

}  // namespace

ProbeSession::ProbeSession(std::uint32_t hosts, ProbeLimits limits, ProbeSpeeds speeds)
    : hosts_(hosts), limits_(limits), lengths_(speeds), matrix_(hosts) {}

ProbeSession::ProbeSession(const Topology& known, const std::vector<std::uint32_t>& places, ProbeLimits limits,
                           ProbeSpeeds speeds)
    : ProbeSession(static_cast<std::uint32_t>(places.size()), limits, speeds) {
  for (int l = 1; l < known.root(); ++l) {
    std::map<std::uint32_t, std::uint32_t> numberOf;  // of the groups that have hosts here
    std::vector<std::uint32_t>& groups = levels_.emplace_back();
    for (const std::uint32_t place : places)
      groups.push_back(
          numberOf.try_emplace(known.groupOf(l, place), static_cast<std::uint32_t>(numberOf.size())).first->second);
  }
  isPlanned_ = true;
  planInside();
  planAlone();
  planOutward();
  std::reverse(planned_.begin(), planned_.end());
}

/// Neighbours in all innermost groups at once, each time others.
void ProbeSession::planInside() {
  const std::vector<std::uint32_t> together(hosts_, 0u);
  for (std::uint32_t round = 0; round < limits_.insideRounds; ++round) {
    ProbeRound inside;
    for (const std::vector<std::uint32_t>& group : membersOf(levels_.empty() ? together : levels_.front())) {
      const auto count = static_cast<std::uint32_t>(group.size());
      if (round + 1 >= count + count % 2) continue;
      const std::vector<ProbePair> pairs = tournament(group, round);
      inside.pairs.insert(inside.pairs.end(), pairs.begin(), pairs.end());
    }
    if (!inside.pairs.empty()) planTwice(inside);
  }
}

ProbeRound ProbeSession::surveyRound() const {
  const std::uint32_t ring = hosts_ + hosts_ % 2 - 1;
  if (hosts_ <= limits_.fullSurvey) {
    return {ProbeKind::survey, tournament(Random(surveyed_ / ring + 1).order(hosts_), surveyed_ % ring)};
  }
  ProbeRound round;
  // First neighbours in the order of names, at distances 1, 2, 4, ...: they are often together. Then strangers.
  const std::uint32_t distance = surveyed_ / 2 < 16 ? 1u << (surveyed_ / 2) : hosts_;
  if (distance < hosts_ / 2) {
    for (std::uint32_t host = 0; host + distance < hosts_; ++host) {
      if (host / distance % 2 == surveyed_ % 2) round.pairs.push_back({host, host + distance});
    }
    return round;
  }
  const std::vector<std::uint32_t> order = Random(surveyed_).order(hosts_);
  for (std::uint32_t i = 0; i + 1 < hosts_; i += 2) round.pairs.push_back({order[i], order[i + 1]});
  return round;
}

/// Between groups that have not met: are they one?
std::optional<ProbeRound> ProbeSession::askingRound() {
  if (asked_ >= limits_.askedRounds) return std::nullopt;
  ++asked_;
  const std::vector<std::vector<std::uint32_t>> levels = findGroups(matrix_);
  if (levels.empty()) return std::nullopt;
  const std::vector<std::uint32_t>& groupOf = levels.front();
  const std::vector<std::vector<std::uint32_t>> members = membersOf(groupOf);
  std::set<std::pair<std::uint32_t, std::uint32_t>> met;
  for (const auto& [pair, sample] : matrix_.all()) met.insert(std::minmax(groupOf[pair.a], groupOf[pair.b]));
  Random random(asked_);
  std::vector<std::uint32_t> used(members.size());  // members of each group that are in this round
  ProbeRound round;
  const std::vector<std::uint32_t> order = random.order(static_cast<std::uint32_t>(members.size()));
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size() && used[order[i]] < members[order[i]].size(); ++j) {
      const std::uint32_t a = order[i], b = order[j];
      if (used[b] >= members[b].size() || met.contains(std::minmax(a, b))) continue;
      round.pairs.push_back({members[a][used[a]++], members[b][used[b]++]});
    }
  }
  if (round.pairs.empty()) return std::nullopt;
  return round;
}

std::vector<std::uint32_t> ProbeSession::fastOf(std::vector<std::uint32_t> hosts) const {
  std::erase_if(hosts, [&](std::uint32_t host) { return slownessOf({host, host}) > 1; });
  return hosts;
}

/// Pairs that meet at each level, of several groups; where there are too few, the same ones again. A slow host's link
/// would be taken for what a stream carries at the level, so slow hosts are asked only where there are no others.
void ProbeSession::planAlone() {
  std::vector<std::vector<std::uint32_t>> all = levels_;
  all.emplace_back(hosts_, 0u);  // the root
  for (std::size_t l = 0; l < all.size(); ++l) {
    std::vector<ProbePair> pairs;
    const auto addPairsOf = [&](const std::vector<std::uint32_t>& group) {
      // The ends of a group are in different groups of the level below, if any of its hosts are.
      for (std::size_t i = 0; i < group.size() / 2 && pairs.size() < limits_.alonePairs; ++i) {
        const auto meetsHere = [&](std::uint32_t b) {
          return group[i] != b && (l == 0 || all[l - 1][group[i]] != all[l - 1][b]);
        };
        const auto partner = std::find_if(group.rbegin(), group.rend(), meetsHere);
        if (partner != group.rend()) pairs.push_back({group[i], *partner});
      }
    };
    const std::vector<std::vector<std::uint32_t>> groups = membersOf(all[l]);
    for (const std::vector<std::uint32_t>& group : groups) addPairsOf(fastOf(group));
    if (pairs.empty()) std::ranges::for_each(groups, addPairsOf);
    for (std::uint32_t i = 0; i < limits_.alonePairs && !pairs.empty(); ++i) {
      planTwice({ProbeKind::alone, {pairs[i % pairs.size()]}});
    }
  }
}

/// All members of a group send to hosts outside at once, each to another: to those that are nearest, so that what they
/// pass is this group's uplink and no other's.
void ProbeSession::planOutward() {
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const std::vector<std::vector<std::uint32_t>> groups = membersOf(levels_[l]);
    for (std::size_t g = 0; g < std::min<std::size_t>(groups.size(), limits_.outwardGroups); ++g) {
      const std::vector<std::uint32_t>& members = groups[g];
      std::vector<std::uint32_t> outside;  // one of each other group, then the second of each, ...
      for (std::size_t above = l + 1; above <= levels_.size() && outside.size() < members.size(); ++above) {
        const auto areTogether = [&](std::size_t level, std::uint32_t host) {
          return level >= levels_.size() || levels_[level][host] == levels_[level][members.front()];
        };
        for (std::size_t place = 0; outside.size() < members.size(); ++place) {
          bool wasOne = false;
          for (std::size_t other = 1; other < groups.size(); ++other) {
            const std::vector<std::uint32_t>& candidates = groups[(g + other) % groups.size()];
            if (place >= candidates.size()) continue;
            wasOne = true;
            const std::uint32_t host = candidates[place];
            if (areTogether(above, host) && (above == l + 1 || !areTogether(above - 1, host))) outside.push_back(host);
          }
          if (!wasOne) break;
        }
      }
      ProbeRound round{ProbeKind::outward, {}, {}, members.size()};
      for (std::size_t i = 0; i < std::min(outside.size(), members.size()); ++i)
        round.pairs.push_back({members[i], outside[i]});
      planTwice(round);
    }
  }
}

/// What else the hosts do can only take from a figure that is measured alone: the better of two comes nearer to it.
void ProbeSession::planTwice(const ProbeRound& round) { planned_.insert(planned_.end(), 2, round); }

std::optional<ProbeRound> ProbeSession::next() {
  std::optional<ProbeRound> round = nextRound();
  if (round) round->bytes = lengths_.of(round->pairs, round->kind == ProbeKind::alone);
  return round;
}

std::optional<ProbeRound> ProbeSession::nextRound() {
  if (hosts_ < 2) return std::nullopt;
  if (!isPlanned_) {
    const bool isFull = hosts_ <= limits_.fullSurvey;
    const std::uint32_t rounds = isFull ? (hosts_ + hosts_ % 2 - 1) * limits_.repeats : limits_.sampledRounds;
    if (surveyed_ < rounds) return surveyRound();
    if (!isFull) {
      if (auto round = askingRound()) return round;
    }
    isPlanned_ = true;
    findLevels();
    planAlone();
    planOutward();
    std::reverse(planned_.begin(), planned_.end());
  }
  if (planned_.empty()) return std::nullopt;
  ProbeRound round = std::move(planned_.back());
  planned_.pop_back();
  return round;
}

void ProbeSession::findLevels() {
  if (!knowsRounds()) {
    levels_ = findGroups(matrix_);
    return;
  }
  shared_ = findSharedGroups(matrix_, surveyRounds_).links;
  levels_ = levelsOf(hosts_, shared_.groups);
}

void ProbeSession::record(const ProbeRound& round, std::span<const ProbeSample> samples) {
  if (samples.size() != round.pairs.size()) {
    fail(taccInternalError, "a round of {} pairs has {} samples", round.pairs.size(), samples.size());
  }
  for (std::size_t i = 0; i < samples.size(); ++i) lengths_.saw(round.pairs[i], samples[i].bandwidth);
  if (hosts_ <= std::min(limits_.fullSurvey, mostSetHosts) && round.kind != ProbeKind::alone) {
    MeasuredRound measured{round.pairs, {}, {round.bytes.begin(), round.bytes.end()}};
    for (const ProbeSample& sample : samples) measured.rates.push_back(sample.bandwidth);
    if (round.kind == ProbeKind::outward)
      outwardRounds_.push_back(std::move(measured));
    else if (!isPlanned_)
      surveyRounds_.push_back(std::move(measured));
  }
  if (round.kind == ProbeKind::outward) {
    std::vector<std::uint32_t> members;
    double sum = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      members.push_back(round.pairs[i].a);
      sum += samples[i].bandwidth;
    }
    addOutward(std::move(members), sum, round.ofGroup);
    return;
  }
  for (std::size_t i = 0; i < samples.size(); ++i) addPair(round.pairs[i], samples[i], round.kind == ProbeKind::alone);
  if (round.kind == ProbeKind::survey && asked_ == 0) ++surveyed_;
}

void ProbeSession::addPair(ProbePair pair, ProbeSample sample, bool alone) {
  if (!alone) {
    matrix_.add(pair, sample);
    return;
  }
  ProbeSample& best = alone_[pair];
  if (sample.latency > 0 && (best.latency == 0 || sample.latency < best.latency)) best.latency = sample.latency;
  best.bandwidth = std::max(best.bandwidth, sample.bandwidth);
  if (sample.bandwidth > 0) streams_[pair].push_back(sample.bandwidth);
}

void ProbeSession::addOutward(std::vector<std::uint32_t> members, double bytesPerSecond, std::size_t ofGroup) {
  const auto known = std::ranges::find(outward_, members, &Outward::members);
  if (known == outward_.end())
    outward_.push_back({std::move(members), bytesPerSecond, ofGroup});
  else
    known->bytesPerSecond = std::max(known->bytesPerSecond, bytesPerSecond);
}

}  // namespace tacc
