// Convolutions over blocked images as correlations of one group of channels.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// Forward. Taps come line by line of the kernel. A product of matrices is one long line. Layouts are those of input
/// and output, and not NCHW.
DirectShape forwardShape(const Shape& s, taccLayout_t inLayout = taccLayoutNchw16c,
                         taccLayout_t outLayout = taccLayoutNchw16c);

/// Backward to the input, a part of it: with stride s, input pixels whose coordinates are equal modulo s see the same
/// taps, and are a correlation of stride 1 that writes every s-th pixel.
struct BackwardPhase {
  std::ptrdiff_t output;  // of its first pixel, in floats
  std::vector<int> taps;  // r * kernelWidth + s
  DirectShape driver;
};

/// All phases; the first one has the most pixels. Layouts are those of the forward convolution's input and output.
std::vector<BackwardPhase> backwardPhases(const Shape& s, taccLayout_t inLayout = taccLayoutNchw16c,
                                          taccLayout_t outLayout = taccLayoutNchw16c);

}  // namespace tacc::conv
