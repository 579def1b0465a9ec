// How well links explain the rates that were measured, and the uplinks that explain them best.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "topology/probe/shared_rates.hpp"

namespace tacc {

/// Without a limit.
inline constexpr double unlimitedRate = 1e300;

class RateFitting {
 public:
  /// The rounds outlive it. The first time that two meet who meet again, they count only as load of the others: fresh
  /// connections are slow.
  explicit RateFitting(std::span<const MeasuredRound> rounds);

  struct Evidence {
    const MeasuredRound* round;
    std::vector<bool> counts;  // of each pair
  };
  const std::vector<Evidence>& evidence() const noexcept { return evidence_; }
  /// How many rates count.
  std::size_t counted() const noexcept { return counted_; }

  /// Calls `take(evidence, number of the pair in it, PredictedRate)` for each rate that counts.
  template <class Take>
  void each(const SharedLinks& links, const Take& take) {
    for (const Evidence& one : evidence_) {
      predictRates(links, *one.round, predicted_);
      for (std::size_t i = 0; i < predicted_.size(); ++i)
        if (one.counts[i]) take(one, i, predicted_[i]);
    }
  }

  /// A first guess of an uplink, bytes/s: in half of the rounds more left or entered the group. 0 if nothing did.
  double usualCrossing(HostSet group) const;

  /// Changes the uplinks until half of the rates that each of them limits are above what it gives, half below.
  void fit(SharedLinks& links, int steps);

  /// The sum of how far the rates are from what these links give, as logarithms; of no rate more than 1, beyond which
  /// it tells only that something else disturbed it.
  double error(const SharedLinks& links);

  /// What the uplink of a group takes from the rates that it limits: the mean of the logarithms; 0 if it limits none.
  double effectOf(const SharedLinks& links, std::size_t group);

 private:
  std::vector<Evidence> evidence_;
  std::size_t counted_ = 0;
  std::vector<PredictedRate> predicted_;
};

/// The middle one; changes their order.
double medianOf(std::vector<double>& values);

}  // namespace tacc
