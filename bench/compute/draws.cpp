#include "compute/draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace tacc::bench {

DrawnSet parseDrawnSet(const std::string& text) {
  DrawnSet set;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, set.count);
  if (error == std::errc() && rest != end && *rest == ':') {
    const auto seed = std::from_chars(rest + 1, end, set.seed);
    rest = seed.ptr;
    error = seed.ec;
  }
  if (error != std::errc() || rest != end || set.count < 1)
    throw std::invalid_argument(fmt::format("--random takes N or N:SEED, whole numbers, not \"{}\"", text));
  return set;
}

int Draws::size(int most) {
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;
  const int drawn = static_cast<int>(std::exp(uniform * std::log(most + 1.0)));
  const bool isRound = isOnce(2) && drawn >= 8;
  return std::clamp(isRound ? drawn / 8 * 8 : drawn, 1, most);
}

}  // namespace tacc::bench
