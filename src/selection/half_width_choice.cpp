#include "selection/half_width_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/default_arithmetic.hpp"
#include "engine/net/half_width_run.hpp"

namespace tacc {
namespace {

/// Of a float and of what travels in the end, of each number on average.
constexpr std::size_t wideBytes = sizeof(float), meanBytes = 3;

/// That of the least price, also among those of nearly the same: of a plan's two parts each waits for the other to end,
/// which trees, whose sums and results otherwise pass each other, pay twice.
const NetworkCandidate& leastPriced(NetworkSelector& selector, std::size_t bytes) {
  const std::vector<NetworkCandidate>& all = selector.explain(Collective::allReduce, 0, bytes);
  const auto price = [](const NetworkCandidate& one) {
    return one.isPossible ? one.seconds : std::numeric_limits<double>::infinity();
  };
  return *std::ranges::min_element(all, {}, price);
}

}  // namespace

bool halfWidthPays(NetworkSelector& selector, std::size_t numbers) {
  const DefaultArithmetic arithmetic;
  const std::size_t count = std::min(numbers, halfWidthTogether);
  const auto seconds = [&](std::size_t bytes) { return leastPriced(selector, bytes).seconds; };
  return seconds(count * meanBytes) + 2 * seconds(1) < seconds(count * wideBytes);
}

const Algorithm& halfWidthAlgorithm(NetworkSelector& selector, std::size_t numbers) {
  return *leastPriced(selector, numbers * meanBytes).algorithm;
}

std::string explainHalfWidth(NetworkSelector& selector, std::size_t numbers, bool gathersHalfWidth) {
  const std::string what = fmt::format("{} numbers of 16 bits: ", numbers);
  if (!gathersHalfWidth) return fmt::format("{}as {} bytes of float32\n", what, numbers * wideBytes);
  const std::size_t count = std::min(numbers, halfWidthTogether);
  const Algorithm& algorithm = halfWidthAlgorithm(selector, count);
  const auto prices = selector.explainParts(algorithm, count * wideBytes, count * 2);
  const double times = static_cast<double>(numbers) / static_cast<double>(count);
  const auto priced = [&](double seconds) { return prices ? fmt::format(", {:.1f} us", seconds * times * 1e6) : ""; };
  return fmt::format("{}{} in two parts: reduce-scatter of {} bytes of float32{}; allgather of {} bytes of 16 bits{}\n",
                     what, algorithm.name, numbers * wideBytes, priced(prices ? prices->sums : 0), numbers * 2,
                     priced(prices ? prices->results : 0));
}

}  // namespace tacc
