#pragma once

#include <algorithm>
#include <cmath>

namespace tacc::bench {

/// A geometric mean that is being collected.
struct Mean {
  double logarithms = 0;
  double least = INFINITY;
  int count = 0;
  int from95 = 0;  // of them at 0.95 or above
  void add(double value) {
    logarithms += std::log(value);
    least = std::min(least, value);
    ++count;
    from95 += value >= 0.95 ? 1 : 0;
  }
  double value() const { return std::exp(logarithms / count); }
};

}  // namespace tacc::bench
