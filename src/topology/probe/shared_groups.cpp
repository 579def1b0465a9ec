#include "topology/probe/shared_groups.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "topology/probe/group_nesting.hpp"
#include "topology/probe/host_distances.hpp"
#include "topology/probe/probe_clusters.hpp"
#include "topology/probe/rate_fitting.hpp"

namespace tacc {
namespace {

constexpr double leastNoise = 0.03;
/// What a group must explain, in errors of one rate; chance lets the best of many candidates explain some.
constexpr double evidenceOfGroup = 15;
/// What its uplink must take of the rates that it limits, the mean of the logarithms.
constexpr double leastEffect = 0.12;
constexpr double deviationsOfGroup = 4;
constexpr int fittingSteps = 4, lastFittingSteps = 8;

class Search {
 public:
  Search(const ProbeMatrix& matrix, std::span<const MeasuredRound> rounds)
      : matrix_(matrix),
        hosts_(matrix.hosts()),
        all_(hosts_ == mostSetHosts ? ~HostSet{0} : setOf(hosts_) - 1),
        fitting_(rounds),
        latencies_(hosts_),
        slownesses_(hosts_) {}

  FoundGroups run() {
    FoundGroups found;
    if (fitting_.counted() == 0) return found;
    links_.hosts = hostLinks();
    measureDistances();
    claimByRates();
    claimByLatencies();
    addCounterparts();
    found.noise = fitting_.error(links_) / static_cast<double>(fitting_.counted());
    found.links = std::move(links_);
    return found;
  }

 private:
  /// A host carries what it and the best of its partners got again and again. The best of many is lucky: of hosts that
  /// are alike, what all got with their best partners.
  std::vector<double> hostLinks() const {
    std::map<ProbePair, std::vector<double>> rates;
    for (const RateFitting::Evidence& one : fitting_.evidence())
      for (std::size_t i = 0; i < one.counts.size(); ++i)
        if (one.counts[i]) rates[orderedPair(one.round->pairs[i])].push_back(one.round->rates[i]);
    std::vector<double> links(hosts_, 0.0);
    for (auto& [pair, all] : rates) {
      const double usual = medianOf(all);
      for (const std::uint32_t host : {pair.a, pair.b}) links[host] = std::max(links[host], usual);
    }
    const auto areAlike = [](double a, double b) { return std::abs(std::log(a / b)) < levelGap; };
    for (int step = 0; step < 3; ++step) {
      const std::vector<double> before = links;
      for (std::uint32_t host = 0; host < hosts_; ++host) {
        std::vector<double> best;
        for (const auto& [pair, all] : rates) {
          const bool isIts = pair.a == host || pair.b == host;
          const double wider = std::max(before[pair.a], before[pair.b]);
          if (!areAlike(std::min(before[pair.a], before[pair.b]), before[host])) continue;
          if (!isIts && !areAlike(wider, before[host])) continue;
          for (const double rate : all)
            if (areAlike(rate, before[host])) best.push_back(rate);
        }
        if (!best.empty()) links[host] = medianOf(best);
      }
    }
    const double most = *std::ranges::max_element(links);
    for (double& link : links)
      if (link == 0) link = most;  // nobody measured it
    return links;
  }

  void measureDistances() {
    latenciesTell_ = matrix_.latenciesTell();
    for (const auto& [pair, sample] : matrix_.all())
      if (latenciesTell_ && sample.latency > 0) latencies_.add(pair, std::log(sample.latency));
    addSlownesses(slownesses_);
    propose(slownesses_);
    proposeAll();
    if (!latenciesTell_) return;
    propose(latencies_);
    HostDistances both = latencies_;
    addSlownesses(both);
    propose(both);
  }

  void addSlownesses(HostDistances& distances) {
    fitting_.each(links_, [&](const RateFitting::Evidence& one, std::size_t i, const PredictedRate& predicted) {
      distances.add(one.round->pairs[i], std::log(predicted.rate / one.round->rates[i]));
    });
  }

  void propose(const HostDistances& distances) {
    // What a group lets through is also what all others together let through: the smaller side stands for both.
    for (const HostSet set : distances.clusters())
      candidates_.insert(std::popcount(set) * 2 > static_cast<int>(hosts_) ? all_ & ~set : set);
  }

  /// Of few hosts every set: the means of few pairs are too noisy for candidates.
  void proposeAll() {
    constexpr std::uint32_t fewHosts = 10;
    if (hosts_ > fewHosts) return;
    for (HostSet set = 1; set < all_; ++set)
      if (std::popcount(set) * 2 <= static_cast<int>(hosts_)) candidates_.insert(set);
  }

  double noiseOf(double error) const { return std::max(leastNoise, error / static_cast<double>(fitting_.counted())); }

  /// With the group, and without those that it cuts through.
  SharedLinks with(HostSet group) const {
    SharedLinks links{links_.hosts, {}, {}};
    for (std::size_t g = 0; g < links_.groups.size(); ++g) {
      if (!isNestedOrApart(links_.groups[g], group)) continue;
      links.groups.push_back(links_.groups[g]);
      links.uplinks.push_back(links_.uplinks[g]);
    }
    links.groups.push_back(group);
    links.uplinks.push_back(fitting_.usualCrossing(group));
    return links;
  }

  SharedLinks without(std::size_t group) const {
    SharedLinks links = links_;
    links.groups.erase(links.groups.begin() + static_cast<std::ptrdiff_t>(group));
    links.uplinks.erase(links.uplinks.begin() + static_cast<std::ptrdiff_t>(group));
    return links;
  }

  /// The better of a group and of what is left without it, which is the same for hosts that are in neither.
  struct Trial {
    double error;
    SharedLinks links;
  };
  Trial tryGroup(HostSet group) {
    const auto cuts = [&](HostSet set) {
      return std::ranges::count_if(links_.groups, [&](HostSet other) { return !isNestedOrApart(other, set); });
    };
    if (cuts(all_ & ~group) < cuts(group)) group = all_ & ~group;
    Trial trial{0, with(group)};
    fitting_.fit(trial.links, fittingSteps);
    trial.error = fitting_.error(trial.links);
    return trial;
  }

  bool isClaimed(HostSet group) const {
    return std::ranges::find(links_.groups, group) != links_.groups.end() ||
           std::ranges::find(links_.groups, all_ & ~group) != links_.groups.end();
  }

  /// The group that explains most first. What a candidate explained when it was tried last is taken for the most that
  /// it explains now, so few are tried again after each that is claimed.
  void claimByRates() {
    double error = fitting_.error(links_);
    std::map<HostSet, double> gains;
    std::size_t tried = 0;
    const std::size_t mostTried = candidates_.size() + 40 * std::size_t{hosts_};
    while (tried < mostTried) {
      for (const HostSet group : candidates_)
        if (std::popcount(group) > 1) gains.try_emplace(group, unlimitedRate);
      Trial best{error, {}};
      double bestGain = 0;
      std::set<HostSet> done;
      for (;;) {
        HostSet next = 0;
        double most = bestGain;
        for (const auto& [group, gain] : gains) {
          if (gain <= most || done.contains(group) || isClaimed(group)) continue;
          most = gain;
          next = group;
        }
        if (next == 0) break;
        ++tried;
        done.insert(next);
        Trial trial = tryGroup(next);
        const bool matters = fitting_.effectOf(trial.links, trial.links.groups.size() - 1) >= leastEffect;
        const double gain = matters ? error - trial.error : 0;
        gains[next] = 1.5 * gain + noiseOf(error);
        if (gain <= bestGain) continue;
        bestGain = gain;
        best = std::move(trial);
      }
      if (best.links.groups.empty()) break;
      improveLast(best);
      bestGain = error - best.error;
      if (bestGain <= evidenceOfGroup * noiseOf(best.error)) break;
      links_ = std::move(best.links);
      error = best.error;
      // What is still slower than it should be may have a reason of its own.
      HostDistances left(hosts_);
      addSlownesses(left);
      propose(left);
    }
    refine(error);
    dropNeedless(error);
  }

  /// The candidates come from what pairs got in the mean, which noise changes; all rates together tell better who is in
  /// the group that was tried last: one host more, one less, or one in another's place.
  void improveLast(Trial& trial) {
    constexpr std::uint32_t fewHosts = 16;
    for (bool changed = hosts_ <= fewHosts; changed;) {
      changed = false;
      const HostSet group = trial.links.groups.back();
      std::vector<HostSet> others;
      for (std::uint32_t host = 0; host < hosts_; ++host) {
        others.push_back(group ^ setOf(host));
        for (std::uint32_t with = host + 1; with < hosts_; ++with)
          if (has(group, host) != has(group, with)) others.push_back(group ^ setOf(host) ^ setOf(with));
      }
      for (const HostSet other : others) {
        if (std::popcount(other) < 2 || std::popcount(all_ & ~other) < 2 || isClaimed(other)) continue;
        Trial next = tryGroup(other);
        if (next.error >= trial.error || fitting_.effectOf(next.links, next.links.groups.size() - 1) < leastEffect)
          continue;
        trial = std::move(next);
        changed = true;
      }
    }
  }

  /// A host that was missed, or one too many: the groups nearest to those that were claimed may explain more.
  void refine(double& error) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t g = 0; g < links_.groups.size(); ++g) {
        const HostSet group = links_.groups[g];
        for (const HostSet other : neighboursOf(group)) {
          SharedLinks links = links_;
          links.groups[g] = other;
          links.uplinks[g] = fitting_.usualCrossing(other);
          fitting_.fit(links, fittingSteps);
          const double without = fitting_.error(links);
          if (error - without <= noiseOf(error)) continue;
          links_ = std::move(links);
          error = without;
          changed = true;
          break;
        }
      }
    }
  }

  /// Candidates and sets that differ from this one by a host or two, and do not cut through the other groups.
  std::vector<HostSet> neighboursOf(HostSet group) const {
    constexpr std::uint32_t fewHosts = 16;
    std::set<HostSet> sets;
    const auto offer = [&](HostSet set) {
      if (std::popcount(set) < 2 || std::popcount(all_ & ~set) < 2 || set == group || isClaimed(set)) return;
      const auto fits = [&](HostSet other) { return other == group || isNestedOrApart(other, set); };
      if (std::ranges::all_of(links_.groups, fits)) sets.insert(set);
    };
    for (const HostSet candidate : candidates_)
      for (const HostSet set : {candidate, all_ & ~candidate})
        if (std::popcount(set ^ group) <= 2) offer(set);
    for (std::uint32_t host = 0; hosts_ <= fewHosts && host < hosts_; ++host) offer(group ^ setOf(host));
    return {sets.begin(), sets.end()};
  }

  void dropNeedless(double error) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t g = 0; g < links_.groups.size() && !changed; ++g) {
        SharedLinks fewer = without(g);
        fitting_.fit(fewer, fittingSteps);
        const double without = fitting_.error(fewer);
        if (without - error > evidenceOfGroup * noiseOf(error)) continue;
        links_ = std::move(fewer);
        error = without;
        changed = true;
      }
    }
  }

  static HostDistances::Mean among(const HostDistances& distances, const std::vector<HostSet>& parts) {
    HostDistances::Mean mean;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t j = i + 1; j < parts.size(); ++j) {
        const HostDistances::Mean one = distances.between(parts[i], parts[j]);
        mean.sum += one.sum;
        mean.squares += one.squares;
        mean.pairs += one.pairs;
      }
    }
    return mean;
  }

  void claim(HostSet group) {
    if (std::ranges::find(links_.groups, group) != links_.groups.end()) return;
    links_.groups.push_back(group);
    links_.uplinks.push_back(unlimitedRate);
  }

  /// Where the nearest host outside is farther than those inside from each other.
  void claimByLatencies() {
    if (!latenciesTell_) return;
    const double noise = matrix_.latencyNoise();
    for (const HostSet group : latencies_.clusters()) {
      const auto fits = [&](HostSet other) { return isNestedOrApart(other, group); };
      if (!std::ranges::all_of(links_.groups, fits)) continue;
      const HostDistances::Mean inside = among(latencies_, partsOf(links_.groups, group));
      if (inside.pairs == 0) continue;
      const HostSet parent = parentOf(links_.groups, all_, group);
      double nearest = unlimitedRate, pairs = 1;
      for (std::uint32_t host = 0; host < hosts_; ++host) {
        if (!has(parent & ~group, host)) continue;
        const HostDistances::Mean outside = latencies_.between(group, setOf(host));
        if (outside.pairs == 0 || outside.value() >= nearest) continue;
        nearest = outside.value();
        pairs = outside.pairs;
      }
      const double least = std::max(levelGap, deviationsOfGroup * noise * std::sqrt(1 / inside.pairs + 1 / pairs));
      if (nearest < unlimitedRate && nearest - inside.value() > least) claim(group);
    }
  }

  /// A host that is much slower than the others may be behind an uplink of its own, as a group of one: where nothing
  /// says that it shares theirs, it is none of them.
  void leaveOutSlow(std::vector<HostSet>& parts, HostSet& set) const {
    constexpr double muchSlower = 0.6;
    std::vector<double> links;
    for (std::uint32_t host = 0; host < hosts_; ++host)
      if (has(set, host)) links.push_back(links_.hosts[host]);
    if (links.size() < 3) return;
    const double usual = medianOf(links);
    std::erase_if(parts, [&](HostSet part) {
      if (std::popcount(part) != 1) return false;
      if (links_.hosts[static_cast<std::size_t>(std::countr_zero(part))] > muchSlower * usual) return false;
      set &= ~part;
      return true;
    });
  }

  /// What one group of two lets out is just as well what the other does, and where nobody else is no rate can tell
  /// whose link it is: beside the only group that consists of more than all the others do, these are one, too. Beside
  /// several, and inside a group, they are where they are nearer to each other than to those.
  void addCounterparts() {
    std::vector<HostSet> nodes = links_.groups;
    nodes.push_back(all_);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const std::vector<HostSet> parts = partsOf(links_.groups, nodes[n]);
      int highest = 0;
      std::vector<int> heights;
      for (const HostSet part : parts) {
        heights.push_back(std::popcount(part) > 1 ? heightOf(links_.groups, part) : 0);
        highest = std::max(highest, heights.back());
      }
      HostSet rest = 0;
      std::vector<HostSet> inside;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (heights[i] == highest) continue;
        rest |= parts[i];
        inside.push_back(parts[i]);
      }
      // Much more than the others are is rather several groups of which nothing was seen.
      const bool isOneOfTwo = nodes[n] == all_ && std::ranges::count(heights, highest) == 1 &&
                              std::popcount(rest) <= 2 * std::popcount(all_ & ~rest);
      leaveOutSlow(inside, rest);
      if (inside.size() < 2) continue;
      const HostDistances::Mean within = among(slownesses_, inside);
      const HostDistances::Mean across = slownesses_.between(rest, nodes[n] & ~rest);
      if (!isOneOfTwo && (within.pairs == 0 || across.pairs == 0)) continue;
      const double deviation =
          std::sqrt(std::max(0.0, within.variance() / within.pairs + across.variance() / across.pairs));
      if (!isOneOfTwo && across.value() - within.value() < std::max(levelGap, deviationsOfGroup * deviation)) continue;
      claim(rest);
      nodes.push_back(rest);
    }
  }

  const ProbeMatrix& matrix_;
  std::uint32_t hosts_;
  HostSet all_;
  RateFitting fitting_;
  HostDistances latencies_, slownesses_;  // logarithms: of seconds; of how much slower than the hosts' own links allow
  bool latenciesTell_ = false;
  std::set<HostSet> candidates_;
  SharedLinks links_;
};

}  // namespace

FoundGroups findSharedGroups(const ProbeMatrix& matrix, std::span<const MeasuredRound> rounds) {
  return Search(matrix, rounds).run();
}

SharedLinks fitUplinks(SharedLinks links, std::span<const MeasuredRound> rounds) {
  RateFitting fitting(rounds);
  links.uplinks.clear();
  for (const HostSet group : links.groups) links.uplinks.push_back(fitting.usualCrossing(group));
  fitting.fit(links, lastFittingSteps);
  // One after the other: of two that limit the same, one stays.
  for (std::size_t g = 0; g < links.groups.size(); ++g)
    if (fitting.effectOf(links, g) < leastEffect / 2) links.uplinks[g] = unlimitedRate;
  for (double& uplink : links.uplinks)
    if (uplink == unlimitedRate) uplink = 0;
  return links;
}

}  // namespace tacc
