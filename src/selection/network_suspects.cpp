#include "selection/network_suspects.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "selection/cost_model.hpp"

namespace tacc {
namespace {

using Slowing = std::function<void(CostMachine&, double factor)>;

constexpr double noRatio = 1.1;  // below it nothing has become slow
constexpr double explains = 1.2;
constexpr double largestFactor = 64;
constexpr std::size_t ofEachSuspect = 2;
constexpr double hopeless = 2;  // times the best one's price

std::vector<Slowing> suspectsOf(const CostMachine& machine) {
  std::vector<Slowing> suspects;
  for (std::size_t l = 0; l < machine.levels.size(); ++l)
    if (machine.levels[l].uplinkBytesPerSecond > 0)
      suspects.emplace_back([l](CostMachine& slow, double factor) { slow.levels[l].uplinkBytesPerSecond /= factor; });
  suspects.emplace_back([](CostMachine& slow, double factor) {
    slow.portBytesPerSecond /= factor;
    for (CostLevel& level : slow.levels) level.beta *= factor;
  });
  suspects.emplace_back([](CostMachine& slow, double factor) {
    for (CostLevel& level : slow.levels) level.alpha *= factor;
  });
  return suspects;
}

std::optional<double> priceOf(const Algorithm& algorithm, const std::vector<NetworkCandidate>& candidates) {
  const auto found = std::ranges::find(candidates, &algorithm, &NetworkCandidate::algorithm);
  if (found == candidates.end() || !found->isPossible) return std::nullopt;
  return found->seconds;
}

/// The candidates on the machine with this suspect as slow as explains `ratio` best; empty if it cannot.
std::vector<NetworkCandidate> candidatesIf(const Slowing& slowing, const NetworkQuestion& question,
                                           const CostMachine& machine, const Algorithm& current, double seconds,
                                           double ratio) {
  std::vector<NetworkCandidate> best;
  double leastError = std::numeric_limits<double>::infinity();
  for (double factor = 2; factor <= largestFactor; factor *= 2) {
    CostMachine slow = machine;
    slowing(slow, factor);
    std::vector<NetworkCandidate> candidates = chooseNetworkAlgorithm(question, CostMap(std::move(slow)));
    const double slowed = priceOf(current, candidates).value_or(0) / seconds;
    const double error = std::abs(std::log(slowed / ratio));
    if (slowed < explains || error >= leastError) continue;
    leastError = error;
    best = std::move(candidates);
  }
  return best;
}

}  // namespace

std::vector<const Algorithm*> suggestAlgorithms(const NetworkQuestion& question, const CostMachine& machine,
                                                const Algorithm& current, double ratio) {
  const std::vector<NetworkCandidate> usual = chooseNetworkAlgorithm(question, CostMap(machine));
  std::vector<std::vector<NetworkCandidate>> machines;
  const std::optional<double> seconds = priceOf(current, usual);
  if (ratio > noRatio && seconds && *seconds > 0)
    for (const Slowing& slowing : suspectsOf(machine))
      machines.push_back(candidatesIf(slowing, question, machine, current, *seconds, ratio));

  std::vector<const Algorithm*> suggested;
  const auto suggest = [&](const NetworkCandidate& candidate, double best) {
    if (!candidate.isPossible || candidate.seconds > hopeless * best || candidate.algorithm == &current) return;
    if (std::ranges::find(suggested, candidate.algorithm) == suggested.end()) suggested.push_back(candidate.algorithm);
  };
  for (std::size_t place = 0; place < ofEachSuspect; ++place)
    for (const std::vector<NetworkCandidate>& candidates : machines)
      if (place < candidates.size()) suggest(candidates[place], candidates.front().seconds);
  for (const NetworkCandidate& candidate : usual) suggest(candidate, usual.front().seconds);
  return suggested;
}

}  // namespace tacc
