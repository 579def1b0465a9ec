#pragma once

#include <algorithm>
#include <cmath>

namespace tacc::bench {

/// A geometric mean that is being collected.
struct Mean {
  double logarithms = 0;
  double least = INFINITY;
  int count = 0, atLeastNear = 0;  // `near`: 0.95
  void add(double value) {
    logarithms += std::log(value);
    least = std::min(least, value);
    ++count;
    atLeastNear += value >= 0.95 ? 1 : 0;
  }
  double value() const { return std::exp(logarithms / count); }
};

}  // namespace tacc::bench
