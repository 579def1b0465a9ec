// A convolution of NCHW as a product of matrices: for each value that a result is a sum of, a line of what all pixels
// of the output read.
#pragma once

#include <cstddef>

#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// Values are those of a group: channel after channel, and of a channel line after line of the kernel, tap after tap,
/// as weights are in KCRS.
class Unfolding {
 public:
  explicit Unfolding(const Shape& shape) : shape_(shape) {}

  int values() const { return shape_.inPerGroup() * shape_.kernelHeight * shape_.kernelWidth; }
  /// Whether lines are not just the channels as they lie in memory.
  bool isNeeded() const { return !shape_.isProduct(); }

  /// Pixels [first, first + count) of the output, of channels that begin at `channels`: value v is at to + v * line.
  /// Zeros for what is outside of the image.
  void copy(const float* channels, std::ptrdiff_t first, std::ptrdiff_t count, float* to, std::ptrdiff_t line) const;
  /// The reverse, of some channels alone: adds what pixels of the output contribute to each value's line to where they
  /// read it from. Clears what lies outside.
  void addBack(float* lines, std::ptrdiff_t line, std::ptrdiff_t first, std::ptrdiff_t count, int channels,
               float* to) const;
  /// Cycles for a group of an image, where `pixelsAtOnce` are copied in a call.
  double cycles(std::ptrdiff_t pixelsAtOnce) const;

 private:
  /// Whether lines of the output are as long as those of the input, one pixel after the other, so that what a tap reads
  /// follows each other too.
  bool isShifted() const {
    return shape_.strideHeight == 1 && shape_.strideWidth == 1 && shape_.outWidth == shape_.width;
  }
  struct Columns;
  Columns columnsOf(int tap) const;
  void clearOutside(const Columns& columns, std::ptrdiff_t first, std::ptrdiff_t count, float* pixels) const;
  void addLines(const float* from, const Columns& columns, int dy, std::ptrdiff_t first, std::ptrdiff_t count,
                float* plane) const;
  void copyShifted(const float* plane, const Columns& columns, int dy, std::ptrdiff_t first, std::ptrdiff_t count,
                   float* to) const;
  void copyLines(const float* plane, const Columns& columns, int dy, std::ptrdiff_t first, std::ptrdiff_t count,
                 float* to) const;

  Shape shape_;
};

/// From line to line of `pixels` pixels of a copy: an odd number of lines of the cache, so that they do not fall on
/// each other in the L1 cache.
constexpr std::ptrdiff_t unfoldedLine(std::ptrdiff_t pixels) {
  constexpr std::ptrdiff_t cacheLine = 16;
  const std::ptrdiff_t lines = (pixels + cacheLine - 1) / cacheLine;
  return (lines + 1 - lines % 2) * cacheLine;
}

}  // namespace tacc::conv
