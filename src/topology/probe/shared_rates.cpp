#include "topology/probe/shared_rates.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace tacc {
namespace {

constexpr std::size_t mostPairs = mostSetHosts / 2;  // of disjoint hosts
constexpr double noLimit = 1e300;

using PairSet = std::uint32_t;  // pairs of a round as bits

template <class Take>
void eachOf(PairSet set, const Take& take) {
  for (; set != 0; set &= set - 1) take(static_cast<std::size_t>(std::countr_zero(set)));
}

/// Max-min: the link that gives the least to each of those on it is shared first.
class Sharing {
 public:
  Sharing(const SharedLinks& links, const MeasuredRound& round)
      : links_(links), lengths_(round.lengths), count_(round.pairs.size()) {
    const std::vector<ProbePair>& pairs = round.pairs;
    for (std::size_t i = 0; i < count_; ++i) {
      own_[i] = std::min(links.hosts[pairs[i].a], links.hosts[pairs[i].b]);
      left_[i] = lengths_[i];
    }
    for (std::size_t g = 0; g < links.groups.size(); ++g) {
      PairSet crossing = 0;
      for (std::size_t i = 0; i < count_; ++i) crossing |= PairSet{crosses(links.groups[g], pairs[i])} << i;
      crossing_[g] = crossing;
    }
  }

  void run(std::vector<PredictedRate>& predicted) {
    PairSet unfinished = count_ == mostPairs ? ~PairSet{0} : (PairSet{1} << count_) - 1;
    share(unfinished);
    for (std::size_t i = 0; i < count_; ++i) predicted[i].limitedBy = limit_[i];
    for (double time = 0; unfinished != 0;) {
      double step = noLimit;
      eachOf(unfinished, [&](std::size_t i) { step = std::min(step, left_[i] / rate_[i]); });
      time += step;
      const PairSet before = unfinished;
      eachOf(before, [&](std::size_t i) {
        left_[i] -= step * rate_[i];
        if (left_[i] > nearlyNothing * lengths_[i]) return;
        predicted[i].rate = lengths_[i] / time;
        unfinished &= ~(PairSet{1} << i);
      });
      if (unfinished != 0) share(unfinished);
    }
  }

 private:
  static constexpr double nearlyNothing = 0.03;  // as much as noise

  void share(PairSet open) {
    free_.assign(links_.uplinks.begin(), links_.uplinks.end());
    while (open != 0) {
      double least = noLimit;
      std::uint32_t narrowest = limitedByHost;
      for (std::uint32_t g = 0; g < links_.groups.size(); ++g) {
        const int crossing = std::popcount(crossing_[g] & open);
        if (crossing == 0) continue;
        const double each = std::max(free_[g], 0.0) / crossing;
        if (each >= least) continue;
        least = each;
        narrowest = g;
      }
      // A host whose own link gives less takes that, and leaves the rest.
      PairSet settled = 0;
      eachOf(open, [&](std::size_t i) { settled |= PairSet{own_[i] <= least} << i; });
      const bool areSlow = settled != 0;
      if (!areSlow) settled = crossing_[narrowest] & open;
      eachOf(settled, [&](std::size_t i) {
        rate_[i] = std::max(areSlow ? own_[i] : least, 1e-3);
        limit_[i] = areSlow ? limitedByHost : narrowest;
      });
      for (std::size_t g = 0; g < links_.groups.size(); ++g)
        eachOf(crossing_[g] & settled, [&](std::size_t i) { free_[g] -= rate_[i]; });
      open &= ~settled;
    }
  }

  const SharedLinks& links_;
  const std::vector<double>& lengths_;
  std::size_t count_;
  std::array<double, mostPairs> own_, rate_, left_;  // of each pair: its hosts' links; now; of its message
  std::array<std::uint32_t, mostPairs> limit_;
  std::array<PairSet, 2 * mostSetHosts> crossing_;  // of each group
  std::vector<double> free_;                        // of each uplink
};

}  // namespace

void predictRates(const SharedLinks& links, const MeasuredRound& round, std::vector<PredictedRate>& predicted) {
  predicted.assign(round.pairs.size(), {0, limitedByHost});
  if (!round.pairs.empty()) Sharing(links, round).run(predicted);
}

}  // namespace tacc
