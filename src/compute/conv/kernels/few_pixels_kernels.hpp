// The kernels of gradients of weights of few pixels (few_pixels_backward_weights.cpp), one table for each instruction
// set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"

namespace tacc::conv {

struct KernelSet;

/// Of more pixels tiles are as fast.
inline constexpr int mostFewPixels = 9;

/// The gradient of a tap for one block of output channels and some of input channels: for each row c of each of these
///   output[c] (+)= sum over pixels of gradients[pixel] * inputs[pixel][c].
/// Strides are in floats.
struct FewPixelsCall {
  const float* const* inputs;     // of each pixel, row 0 of the first block; rows lie side by side
  const float* const* gradients;  // of each pixel, 16 floats
  int rows;                       // of all blocks: 16 of each, and what is left of the last one
  std::ptrdiff_t inputBlock;      // from block to block of input channels
  int channels;                   // of the block of outputs: vectors without any are zeros, or are not added to
  float* output;                  // 16 floats a row
  std::ptrdiff_t outputBlock;     // from block to block of input channels
  bool accumulate;
  bool isNonTemporal;  // whole lines of the output, which is not added to, are stored so
};

using FewPixelsKernel = void (*)(const FewPixelsCall&);

struct FewPixelsKernels {
  FewPixelsKernel sum[mostFewPixels + 1];  // [pixels]; null: none of so many
};

/// Those of the same instruction set.
const FewPixelsKernels& fewPixelsKernels(const KernelSet& kernels);

/// NAMEFewPixels() of few_pixels_NAME.cpp.
#define TACC_DECLARE(set, isThere) const FewPixelsKernels& set##FewPixels();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
