#include "estimate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tacc::tune {
namespace {

/// Shares that rounds are cut into, each of rounds in a row: what slows a candidate down often lasts for some
/// rounds, and must not be on both sides of a comparison.
constexpr std::size_t shares = 5;

std::size_t shareOf(std::size_t round, std::size_t rounds) { return round * std::min(shares, rounds) / rounds; }

Rounds roundsOf(const Rounds& rounds, std::size_t share, bool isInside) {
  Rounds some;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    if ((shareOf(i, rounds.size()) == share) == isInside) some.push_back(rounds[i]);
  return some;
}

/// Of the mean of logarithms, from how the shares of the rounds differ.
double errorOf(const Rounds& logarithms) {
  const std::size_t parts = std::min(shares, logarithms.size());
  if (parts < 2) return 0;
  std::vector<double> means;
  for (std::size_t share = 0; share < parts; ++share) means.push_back(typical(roundsOf(logarithms, share, true)));
  const auto count = static_cast<double>(parts);
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / count;
  double squares = 0;
  for (const double value : means) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1) / count);
}

double errorOfTime(const Rounds& rounds) {
  Rounds logarithms;
  for (const double time : rounds) logarithms.push_back(std::log(time));
  return errorOf(logarithms);
}

/// In each round the same things disturb both.
double errorOfRatio(const Rounds& one, const Rounds& other) {
  Rounds logarithms;
  for (std::size_t i = 0; i < one.size(); ++i) logarithms.push_back(std::log(one[i] / other[i]));
  return errorOf(logarithms);
}

template <typename Time>
std::size_t leastOf(std::span<const Rounds> candidates, std::size_t rounds, const Time& time) {
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].size() == rounds && (best == candidates.size() || time(candidates[i]) < time(candidates[best])))
      best = i;
  return best;
}

}  // namespace

double typical(Rounds times) {
  if (times.empty()) return 0;
  std::ranges::sort(times);
  const auto left = static_cast<std::ptrdiff_t>((times.size() + 1) / 4);
  const auto counted = static_cast<double>(times.size()) - 2 * static_cast<double>(left);
  return std::accumulate(times.begin() + left, times.end() - left, 0.0) / counted;
}

Excess excessOf(std::span<const Rounds> candidates, std::size_t of) {
  const std::size_t rounds = candidates[of].size();
  if (rounds == 0) return {};
  if (rounds == 1) return {candidates[of].front() / candidates[leastOf(candidates, 1, typical)].front() - 1, 0};
  Rounds fastest(rounds);
  for (std::size_t share = 0; share < std::min(shares, rounds); ++share) {
    const std::size_t named =
        leastOf(candidates, rounds, [share](const Rounds& times) { return typical(roundsOf(times, share, false)); });
    for (std::size_t i = 0; i < rounds; ++i)
      if (shareOf(i, rounds) == share) fastest[i] = candidates[named][i];
  }
  return {typical(candidates[of]) / typical(fastest) - 1, errorOfRatio(candidates[of], fastest)};
}

std::size_t preferred(std::span<const Rounds> candidates, std::optional<std::size_t> usual) {
  std::size_t most = 0;
  for (const Rounds& rounds : candidates) most = std::max(most, rounds.size());
  const std::size_t best =
      leastOf(candidates, most, [](const Rounds& times) { return typical(times) * (1 + errorOfTime(times)); });
  if (!usual || candidates[*usual].size() != most) return best;
  const double ratio = typical(candidates[*usual]) / typical(candidates[best]);
  return std::log(ratio) <= errorOfRatio(candidates[*usual], candidates[best]) ? *usual : best;
}

}  // namespace tacc::tune
