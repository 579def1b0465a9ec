// The kernels of gradients of weights that sum several lines of a kernel, or of several channels, together
// (joined_lines.cpp), one table for each instruction set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"

namespace tacc::conv {

struct KernelSet;

inline constexpr int mostJoinedLines = 9, mostJoinedColumns = 14;

/// A tile of sums that stays in registers: for each joined line l, each of its columns c and each block b of outputs
///   output[places[l]][c][b] (+)= sum over images, lines and pixels of gradient[b][pixel] * input[lines[l] + pixel][c].
/// Columns lie side by side in the input. Strides are in floats.
struct JoinedLinesCall {
  const float* input;
  const std::ptrdiff_t* lines;
  std::ptrdiff_t inputPixel, inputLine, inputImage;
  const float* gradient;  // 16 floats a pixel and block
  std::ptrdiff_t gradientPixel, gradientLine, gradientImage, gradientBlock;
  int images, outLines, pixels;
  float* output;
  const std::ptrdiff_t* places;
  std::ptrdiff_t outputRow, outputBlock;  // from column to column, block to block
  bool accumulate;
};

using JoinedLinesKernel = void (*)(const JoinedLinesCall&);

struct JoinedLinesKernels {
  /// [blocks][lines][columns]; null: too many sums for the registers, or a single line.
  JoinedLinesKernel sum[5][mostJoinedLines + 1][mostJoinedColumns + 1];
};

/// Those of the same instruction set.
const JoinedLinesKernels& joinedLinesKernels(const KernelSet& kernels);

/// NAMEJoinedLines() of joined_lines_NAME.cpp.
#define TACC_DECLARE(set, isThere) const JoinedLinesKernels& set##JoinedLines();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
