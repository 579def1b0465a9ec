// Convolutions over blocked images as correlations of one group of channels.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// Forward. Taps come line by line of the kernel. A product of matrices is one long line.
DirectShape forwardShape(const Shape& s);

/// Backward to the input, a part of it: with stride s, input pixels whose coordinates are equal modulo s see the same
/// taps, and are a correlation of stride 1 that writes every s-th pixel.
struct BackwardPhase {
  std::ptrdiff_t output;  // of its first pixel, in floats
  std::vector<int> taps;  // r * kernelWidth + s
  DirectShape driver;
};

/// All phases; the first one has the most pixels.
std::vector<BackwardPhase> backwardPhases(const Shape& s);

}  // namespace tacc::conv
