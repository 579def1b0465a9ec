// A scale of numbers along a line of pixels, with round numbers to write at it.
#pragma once

#include <vector>

namespace tacc::train {

class Axis {
 public:
  /// `low` and `high` are shown at the pixels `from` and `to`, widened to have some room between them. A logarithmic
  /// one shows numbers above 0 only.
  Axis(double low, double high, double from, double to, bool isLogarithmic);

  /// The pixel of a number. What is outside of the scale is at its end.
  double at(double value) const;
  /// Round numbers on the scale, in order; about 3 to 10 of them.
  std::vector<double> ticks() const;

 private:
  double low_, high_, from_, to_;
  bool isLogarithmic_;
};

}  // namespace tacc::train
