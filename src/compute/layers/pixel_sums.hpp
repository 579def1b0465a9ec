// Sums over the pixels of a block of channels.
#pragma once

#include <algorithm>
#include <cstddef>

#include "compute/layers/kernels.hpp"

namespace tacc::layers {

/// sum += the sum over the pixels; `sum` is of a block. Memory is read at eight places in turn: a core that reads one
/// place after the other waits at the end of every page. Sums of 32 pixels first, so that the rounding error does not
/// grow with the pixels.
inline void addAllPixels(const float* from, std::ptrdiff_t pixels, float* sum, const LayerKernels& kernels) {
  constexpr std::ptrdiff_t pixelsAtOnce = 32;  // of each place
  const std::ptrdiff_t ofPlace = pixels / pixelPlaces;
  const std::ptrdiff_t apart = ofPlace * conv::blockLength;
  for (std::ptrdiff_t first = 0; first < ofPlace; first += pixelsAtOnce) {
    kernels.addPixels(from + first * conv::blockLength, std::min(pixelsAtOnce, ofPlace - first), apart, sum);
  }
  for (std::ptrdiff_t i = ofPlace * pixelPlaces * conv::blockLength; i < pixels * conv::blockLength; ++i) {
    sum[i % conv::blockLength] += from[i];
  }
}

}  // namespace tacc::layers
