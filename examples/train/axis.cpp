#include "axis.hpp"

#include <algorithm>
#include <cmath>

namespace tacc::train {
namespace {

constexpr double least = 1e-9;  // that a logarithmic scale shows
constexpr int mostTicks = 7;

/// 1, 2 or 5 times a power of ten: the least such step of which `mostTicks` cover the range.
double roundStep(double range) {
  const double power = std::pow(10.0, std::floor(std::log10(range / mostTicks)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power * mostTicks >= range) return factor * power;
  return 10 * power;
}

}  // namespace

Axis::Axis(double low, double high, double from, double to, bool isLogarithmic)
    : low_(low), high_(high), from_(from), to_(to), isLogarithmic_(isLogarithmic) {
  if (isLogarithmic_) {
    low_ = std::max(low_, least);
    high_ = std::max(high_, 2 * low_);
  } else if (high_ - low_ < least) {
    high_ = low_ + 1;
  }
}

double Axis::at(double value) const {
  const double inside = std::clamp(value, low_, high_);
  const double share =
      isLogarithmic_ ? std::log(inside / low_) / std::log(high_ / low_) : (inside - low_) / (high_ - low_);
  return from_ + (to_ - from_) * share;
}

std::vector<double> Axis::ticks() const {
  std::vector<double> all;
  if (!isLogarithmic_) {
    const double step = roundStep(high_ - low_);
    for (double n = std::ceil(low_ / step - 1e-9); n * step <= high_ + 1e-9 * step; ++n)
      all.push_back(n * step + 0.0);  // no -0
    return all;
  }
  const bool isShort = high_ / low_ < 1000;
  for (double power = std::pow(10.0, std::floor(std::log10(low_))); power <= high_; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if ((isShort || factor == 1.0) && factor * power >= low_ * (1 - 1e-9) && factor * power <= high_ * (1 + 1e-9))
        all.push_back(factor * power);
  return all;
}

}  // namespace tacc::train
