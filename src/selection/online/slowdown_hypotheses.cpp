#include "selection/online/slowdown_hypotheses.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "selection/cost/cost_model.hpp"

namespace tacc {
namespace {

using Slowing = std::function<void(CostMachine&, double factor)>;

constexpr double largestFactor = 64;
/// A plan that takes this factor longer, whatever is slow, is not suggested.
constexpr double hopeless = 2;

std::vector<Slowing> hypothesesOf(const CostMachine& machine) {
  std::vector<Slowing> hypotheses;
  for (std::size_t l = 0; l < machine.levels.size(); ++l)
    if (machine.levels[l].uplinks.limit())
      hypotheses.emplace_back([l](CostMachine& slow, double factor) { slow.levels[l].uplinks.divideBy(factor); });
  hypotheses.emplace_back([](CostMachine& slow, double factor) {
    slow.ports.divideBy(factor);
    for (CostLevel& level : slow.levels) level.beta *= factor;
  });
  hypotheses.emplace_back([](CostMachine& slow, double factor) {
    for (CostLevel& level : slow.levels) level.alpha *= factor;
  });
  return hypotheses;
}

std::optional<double> priceOf(const Algorithm& algorithm, const std::vector<NetworkCandidate>& candidates) {
  const auto found = std::ranges::find(candidates, &algorithm, &NetworkCandidate::algorithm);
  if (found == candidates.end() || !found->isPossible) return std::nullopt;
  return found->seconds;
}

/// The candidates on the machine with this suspect as slow as explains `ratio` best.
std::vector<NetworkCandidate> candidatesIf(const Slowing& slowing, const NetworkQuestion& question,
                                           const CostMachine& machine, const Algorithm& current, double seconds,
                                           double ratio) {
  std::vector<NetworkCandidate> best;
  double leastError = std::numeric_limits<double>::infinity();
  for (double factor = 2; factor <= largestFactor; factor *= 2) {
    CostMachine slow = machine;
    slowing(slow, factor);
    std::vector<NetworkCandidate> candidates = priceNetworkAlgorithms(question, CostMap(std::move(slow)));
    const double slowed = priceOf(current, candidates).value_or(0) / seconds;
    const double error = std::abs(std::log(slowed / ratio));
    if (error >= leastError) continue;
    leastError = error;
    best = std::move(candidates);
  }
  return best;
}

}  // namespace

std::vector<const Algorithm*> suggestAlgorithms(const NetworkQuestion& question, const CostMachine& machine,
                                                const Algorithm& current, double ratio) {
  const std::vector<NetworkCandidate> usual = priceNetworkAlgorithms(question, CostMap(machine));
  std::vector<std::vector<NetworkCandidate>> machines;
  const std::optional<double> seconds = priceOf(current, usual);
  if (ratio > 1 && seconds && *seconds > 0)
    for (const Slowing& slowing : hypothesesOf(machine)) {
      machines.push_back(candidatesIf(slowing, question, machine, current, *seconds, ratio));
    }
  if (machines.empty()) machines.push_back(usual);

  struct Suggestion {
    const Algorithm* algorithm;
    double score;  // of its time to that of `current`, on the machine that suits it best
  };
  std::vector<Suggestion> suggestions;
  for (const NetworkCandidate& candidate : usual) {
    if (!candidate.isPossible || candidate.algorithm == &current) continue;
    double score = hopeless;
    for (const std::vector<NetworkCandidate>& candidates : machines)
      if (const auto price = priceOf(*candidate.algorithm, candidates), old = priceOf(current, candidates);
          price && old)
        score = std::min(score, *price / *old);
    if (score < hopeless) suggestions.push_back({candidate.algorithm, score});
  }
  std::ranges::stable_sort(suggestions, {}, &Suggestion::score);
  std::vector<const Algorithm*> suggested;
  for (const Suggestion& suggestion : suggestions) suggested.push_back(suggestion.algorithm);
  return suggested;
}

}  // namespace tacc
