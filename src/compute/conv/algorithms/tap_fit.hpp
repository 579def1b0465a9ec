// Which pixels a tap finds inside the image.
#pragma once

#include <algorithm>
#include <optional>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// How many of `pixels` pixels from `x` on a tap finds inside a line of `width`, and which ones: no value if there are
/// none, or there is no BorderMask for it that leaves out up to `mostOut`.
struct TapFit {
  int used;
  std::optional<BorderMask> mask;
};

inline TapFit fitTap(int dx, int stride, int x, int pixels, int width, int mostOut) {
  int before = 0;
  int after = 0;
  for (int p = 0; p < pixels; ++p) {
    const int column = (x + p) * stride + dx;
    before += column < 0;
    after += column >= width;
  }
  if (before + after == pixels) return {0, std::nullopt};
  const int used = pixels - before - after;
  if (before == 0 && after == 0) return {used, BorderMask::none};
  const auto maskOf = [](BorderMask ofOne, int count) {
    return static_cast<BorderMask>(static_cast<int>(ofOne) + count - 1);
  };
  if (after == 0 && before <= mostOut) return {used, maskOf(BorderMask::first, before)};
  if (before == 0 && after <= mostOut) return {used, maskOf(BorderMask::last, after)};
  return {used, std::nullopt};
}

/// Whether more than half of a kernel's taps find nothing inside the image.
inline bool mostTapsAreOutside(const Shape& s) {
  const auto inside = [](int taps, int dilation, int pad, int stride, int results, int size) {
    int count = 0;
    for (int t = 0; t < taps; ++t) {
      const int offset = t * dilation - pad;
      count += firstInside(offset, stride) < std::min(results, endInside(offset, stride, size)) ? 1 : 0;
    }
    return count;
  };
  const int lines = inside(s.kernelHeight, s.dilationHeight, s.padHeight, s.strideHeight, s.outHeight, s.height);
  const int columns = inside(s.kernelWidth, s.dilationWidth, s.padWidth, s.strideWidth, s.outWidth, s.width);
  return 2 * lines * columns < s.kernelHeight * s.kernelWidth;
}

}  // namespace tacc::conv
