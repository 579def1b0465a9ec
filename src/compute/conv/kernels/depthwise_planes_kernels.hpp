// The kernels of channel-wise convolutions in NCHW (depthwise_planes.cpp), one table for each instruction set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

struct KernelSet;

/// Lines of a channel's kernel, at most; and columns.
inline constexpr int mostPlaneTapLines = 7, mostPlaneTapColumns = 16;
/// With a stride of 2 backward to the data, each phase of the lines sees every second line of the kernel.
inline constexpr int mostPhaseTapLines = 4;
/// Floats of a sum of a gradient: of these a kernel uses as many as a vector has.
inline constexpr int planeTapFloats = 16;

/// Taps of a column of the kernel: where they read for pixel 0 of the result. With a stride, every second column.
struct PlaneTapColumns {
  int count;
  int at[mostPlaneTapColumns];
};

/// Lines of the result of some channels of one image, each by itself. Line y and pixel x are
///   epilogue(bias + addend + sum over columns c and tap lines r of
///            weights[c][r] * input(y * stride + firstTapLine + r, x * stride + columns.at[c]))
/// where what is outside of the input counts as zero and is not read.
struct DepthwisePlaneCall {
  int planes;
  const float* input;
  int height, width;                                    // of the input
  const float* weights;                                 // of a channel: one column after the other
  std::ptrdiff_t inputPlane, weightPlane, outputPlane;  // from channel to channel
  PlaneTapColumns columns[2];  // one, or one for each phase of the result's columns, whose weights follow
  int firstTapLine;
  const float* bias;    // of each channel; or null
  const float* addend;  // laid out as the output and may be it; or null
  float* output;        // line 0
  std::ptrdiff_t outputLine;
  int pixels;  // of a line of the result; of both phases
  int firstLine, endLine;
  taccActivation_t activation;
  bool fetchesBelow;  // what the next lines of tiles read and write
};

/// Adds to sums[c][r], in the lanes of a vector, the products of an output's gradient with the input that it saw. Of
/// some channels of one image, each by itself.
struct DepthwisePlaneGradientCall {
  int planes;
  const float* input;
  int height, width;
  const float* gradient;
  int lines, pixels;  // of the gradient
  PlaneTapColumns columns;
  int firstTapLine;
  float* sums;
  std::ptrdiff_t inputPlane, gradientPlane, sumPlane;  // from channel to channel
  bool fetchesBelow;                                   // what the next lines of tiles read
};

struct DepthwisePlaneKernels {
  int lanes;
  /// [stride - 1][tap lines], null where there is none.
  void (*lines[2][mostPlaneTapLines + 1])(const DepthwisePlaneCall&);
  /// Lines whose even pixels see the first columns, and whose odd ones the second: [tap lines].
  void (*phases[mostPhaseTapLines + 1])(const DepthwisePlaneCall&);
  void (*gradient[2][mostPlaneTapLines + 1])(const DepthwisePlaneGradientCall&);
  /// totals[i] = the sum of all lanes of sums[i].
  void (*total)(const float* sums, int count, float* totals);
};

/// Those of the same instruction set.
const DepthwisePlaneKernels& depthwisePlaneKernels(const KernelSet& kernels);

/// NAMEDepthwisePlaneKernels() of depthwise_planes_NAME.cpp.
#define TACC_DECLARE(set, isThere) const DepthwisePlaneKernels& set##DepthwisePlaneKernels();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
