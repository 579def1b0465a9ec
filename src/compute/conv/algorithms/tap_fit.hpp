// Which pixels of a tile a tap finds inside the image.
#pragma once

#include <optional>

#include "compute/conv/kernels/kernels.hpp"

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

}  // namespace tacc::conv
