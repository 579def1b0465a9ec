#include "topology/probe/probe_matrix.hpp"

#include <cmath>
#include <numeric>

namespace tacc {
namespace {

ProbeSample combine(const std::vector<ProbeSample>& samples) {
  ProbeSample result;
  double first = 0, logarithms = 0;
  int again = 0;
  for (const ProbeSample& sample : samples) {
    if (sample.latency > 0 && (result.latency == 0 || sample.latency < result.latency)) result.latency = sample.latency;
    if (!(sample.bandwidth > 0)) continue;
    if (first == 0) {
      first = sample.bandwidth;
    } else {
      logarithms += std::log(sample.bandwidth);
      ++again;
    }
  }
  result.bandwidth = again > 0 ? std::exp(logarithms / again) : first;
  return result;
}

std::vector<double> ranksOf(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = static_cast<double>(rank);
  return ranks;
}

/// Spearman's: 1 where both put the pairs in one order, about 0 where they have nothing to do with each other. A few
/// wild values change little.
double rankCorrelation(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> ofX = ranksOf(x), ofY = ranksOf(y);
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (ofX[i] - ofY[i]) * (ofX[i] - ofY[i]);
  const auto n = static_cast<double>(x.size());
  return 1 - 6 * squares / (n * (n * n - 1));
}

}  // namespace

std::vector<std::pair<ProbePair, ProbeSample>> ProbeMatrix::all() const {
  std::vector<std::pair<ProbePair, ProbeSample>> result;
  result.reserve(samples_.size());
  for (const auto& [key, samples] : samples_) {
    result.push_back({{static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key)}, combine(samples)});
  }
  return result;
}

bool ProbeMatrix::latenciesTell() const {
  constexpr std::size_t mostRepeats = 4, leastPairs = 6;  // all of four hosts
  constexpr double leastCorrelation = 0.15, deviations = 2.5;
  double correlations = 0, weights = 0;
  for (std::size_t i = 0; i < mostRepeats; ++i) {
    for (std::size_t j = i + 1; j < mostRepeats; ++j) {
      std::vector<double> once, again;
      for (const auto& [key, samples] : samples_) {
        if (samples.size() <= j || !(samples[i].latency > 0) || !(samples[j].latency > 0)) continue;
        once.push_back(samples[i].latency);
        again.push_back(samples[j].latency);
      }
      if (once.size() < leastPairs) continue;
      correlations += rankCorrelation(once, again) * static_cast<double>(once.size());
      weights += static_cast<double>(once.size());
    }
  }
  if (weights == 0) return true;
  // Of n pairs in two orders by chance the correlation deviates from 0 by about 1 / sqrt(n).
  return correlations / weights > std::max(leastCorrelation, deviations / std::sqrt(weights));
}

double ProbeMatrix::latencyNoise() const {
  constexpr double unknown = 0.1;
  double squares = 0, pairs = 0;
  for (const auto& [key, samples] : samples_) {
    double least[2] = {0, 0};
    for (std::size_t i = 0; i < samples.size(); ++i) {
      double& half = least[i % 2];
      if (samples[i].latency > 0 && (half == 0 || samples[i].latency < half)) half = samples[i].latency;
    }
    if (least[0] == 0 || least[1] == 0) continue;
    const double difference = std::log(least[0] / least[1]);
    squares += difference * difference / 2;
    pairs += 1;
  }
  return pairs == 0 ? unknown : std::sqrt(squares / pairs);
}

}  // namespace tacc
