// Lines of planes that a worker has prepared, and the lists of what kernels multiply (planes.cpp).
#pragma once

#include <algorithm>
#include <cstddef>

#include "compute/conv/algorithms/plane_lines.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// The part of a line of a PlaneLines that is prepared, and its lists, in the scratch of one worker.
class PlaneRing {
 public:
  static std::size_t floatsOf(const PlaneLines& lines, int kernelHeight, int kernelWidth) {
    const std::size_t values = static_cast<std::size_t>(lines.channels()) * static_cast<std::size_t>(kernelHeight) *
                               static_cast<std::size_t>(kernelWidth);
    return inWholeLines(lines.floats()) + inWholeLines(values * sizeof(PlaneValue) / sizeof(float)) +
           inWholeLines(static_cast<std::size_t>(lines.ringLines()));
  }
  PlaneRing(const PlaneLines& lines, int kernelHeight, int kernelWidth, float* scratch)
      : lines_(lines), kernelHeight_(kernelHeight), kernelWidth_(kernelWidth), floats_(scratch) {
    const std::size_t all = floatsOf(lines, kernelHeight, kernelWidth);
    std::fill_n(scratch, all, 0.0F);
    values_ = reinterpret_cast<PlaneValue*>(scratch + inWholeLines(lines.floats()));
    held_ = reinterpret_cast<int*>(scratch + all - inWholeLines(static_cast<std::size_t>(lines.ringLines())));
    forget();
  }

  /// Of another image.
  void forget() { std::fill_n(held_, lines_.ringLines(), -1); }

  /// The values of a phase of line `y` of the result, from the group's planes of one image. Places of channel c, line r
  /// and column t of the kernel are those of [c][r][t].
  const PlaneValue* values(const float* planes, int y, int phase, int& count) {
    PlaneValue* value = values_;
    const std::ptrdiff_t plane = std::ptrdiff_t{lines_.height()} * lines_.width();
    for (int r = 0; r < kernelHeight_; ++r) {
      const int line = lines_.lineOf(y, r);
      if (line < 0) continue;
      const int slot = line % lines_.ringLines();
      float* const at = floats_ + slot * lines_.lineFloats();
      if (held_[slot] != line) {
        held_[slot] = line;
        for (int c = 0; c < lines_.channels(); ++c) {
          const float* const from = planes + c * plane + std::ptrdiff_t{line} * lines_.width();
          lines_.prepare(from, at + c * lines_.ringFloats());
          if (lines_.skipsLines()) lines_.fetch(from, line);
        }
      }
      for (int c = 0; c < lines_.channels(); ++c) {
        const std::ptrdiff_t place = (std::ptrdiff_t{c} * kernelHeight_ + r) * kernelWidth_;
        for (const PlaneLines::Column& column : lines_.columns(phase)) {
          *value++ = {at + c * lines_.ringFloats() + column.at, place + column.tap};
        }
      }
    }
    count = static_cast<int>(value - values_);
    return values_;
  }

 private:
  /// Floats of the lines of the cache that hold these.
  static constexpr std::size_t inWholeLines(std::size_t floats) {
    return (floats + blockLength - 1) / blockLength * blockLength;
  }

  const PlaneLines& lines_;
  int kernelHeight_, kernelWidth_;
  float* floats_;
  PlaneValue* values_;
  int* held_;  // the line in each place of the ring
};

}  // namespace tacc::conv
