#include "topology/probe/rate_fitting.hpp"

#include <map>

namespace tacc {
namespace {

constexpr double mostError = 1;

}  // namespace

double medianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

RateFitting::RateFitting(std::span<const MeasuredRound> rounds) {
  std::map<ProbePair, int> meetings, met;
  for (const MeasuredRound& round : rounds)
    for (const ProbePair& pair : round.pairs) ++meetings[orderedPair(pair)];
  for (const MeasuredRound& round : rounds) {
    Evidence& one = evidence_.emplace_back(Evidence{&round, {}});
    for (std::size_t i = 0; i < round.pairs.size(); ++i) {
      const ProbePair pair = orderedPair(round.pairs[i]);
      one.counts.push_back(round.rates[i] > 0 && (met[pair]++ > 0 || meetings[pair] == 1));
      counted_ += one.counts.back();
    }
  }
}

double RateFitting::usualCrossing(HostSet group) const {
  std::vector<double> sums;
  for (const Evidence& one : evidence_) {
    double sum = 0;
    for (std::size_t i = 0; i < one.counts.size(); ++i)
      if (crosses(group, one.round->pairs[i])) sum += one.round->rates[i];
    if (sum > 0) sums.push_back(sum);
  }
  return sums.empty() ? 0 : medianOf(sums);
}

void RateFitting::fit(SharedLinks& links, int steps) {
  std::vector<std::vector<double>> ratios(links.groups.size());
  for (int step = 0; step < steps; ++step) {
    for (auto& some : ratios) some.clear();
    each(links, [&](const Evidence& one, std::size_t i, const PredictedRate& predicted) {
      if (predicted.limitedBy != limitedByHost)
        ratios[predicted.limitedBy].push_back(one.round->rates[i] / predicted.rate);
    });
    for (std::size_t g = 0; g < ratios.size(); ++g)
      if (!ratios[g].empty()) links.uplinks[g] *= medianOf(ratios[g]);
  }
}

double RateFitting::error(const SharedLinks& links) {
  double error = 0;
  each(links, [&](const Evidence& one, std::size_t i, const PredictedRate& predicted) {
    error += std::min(std::abs(std::log(one.round->rates[i] / predicted.rate)), mostError);
  });
  return error;
}

double RateFitting::effectOf(const SharedLinks& links, std::size_t group) {
  SharedLinks open = links;
  open.uplinks[group] = unlimitedRate;
  std::vector<double> limited;
  each(links, [&](const Evidence&, std::size_t, const PredictedRate& predicted) {
    limited.push_back(predicted.limitedBy == group ? predicted.rate : 0);
  });
  double sum = 0;
  std::size_t at = 0, count = 0;
  each(open, [&](const Evidence&, std::size_t, const PredictedRate& predicted) {
    const double rate = limited[at++];
    if (rate <= 0) return;
    sum += std::log(predicted.rate / rate);
    ++count;
  });
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace tacc
