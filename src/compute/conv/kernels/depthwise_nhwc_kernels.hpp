// The kernels of channel-wise convolutions of any size in NHWC (depthwise_nhwc.cpp), one table for each instruction
// set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

struct KernelSet;

/// A line of the kernel, or a tap of a line: where it reads and where its weights, or their sums, are, in floats.
struct ChannelTap {
  std::ptrdiff_t read, weights;
};

/// Taps of a line that go together, at most: as many weights as registers hold beside eight sums.
inline constexpr int mostTapsTogether = 7;

/// Such taps, each of which reads inputStep behind the one before it, so tap t of result p reads pixel p + t: those of
/// [from, to) are inside.
struct ChannelTaps {
  std::ptrdiff_t read, weights, weightsStep;  // pixel 0, which may be outside, and the first tap
  int count, from, to;
};

/// Results that the same taps are summed for, all channels of each:
///   output[p][c] = epilogue(bias[c] + addend[p][c] + sum over lines l and taps t of
///                           weights[l + t][c] * input[l + t + p][c]).
/// Strides are in floats. Channels of a pixel follow each other.
struct DepthwiseNhwcCall {
  const float* input;  // of result 0
  std::ptrdiff_t inputStep;
  const ChannelTap* lines;
  const ChannelTap* taps;
  int lineCount, tapCount;
  const ChannelTaps* together;  // in place of the taps, where vectors are shorter than a block, or null
  int togetherCount;
  const float* weights;  // of a tap 16 channels, those behind them weightsBlock further
  std::ptrdiff_t weightsBlock;
  const float* lastWeights;  // of the last vector of channels that is whole, where it overlaps the one before; or null
  const float* bias;         // whole blocks of 16, or null
  const float* addend;       // laid out as the output and may be it; or null
  float* output;
  std::ptrdiff_t outputStep;
  int results, channels;
  taccActivation_t activation;
  bool isNonTemporal;    // the output, in whole vectors that are aligned, is stored so: the caller ends that
  std::ptrdiff_t ahead;  // floats of the input that are fetched before they are read, of one tap and block; 0: none
};

/// Adds products of pixels, all channels of each:
///   sums[l + t][c] += sum over p of gradient[p][c] * input[l + t + p][c].
struct DepthwiseNhwcGradientCall {
  const float* input;
  std::ptrdiff_t inputStep;
  const float* gradient;
  std::ptrdiff_t gradientStep;
  const ChannelTap* lines;
  const ChannelTap* taps;
  int lineCount, tapCount;
  float* sums;  // as DepthwiseNhwcCall::weights
  std::ptrdiff_t sumsBlock;
  int pixels, channels;
};

struct DepthwiseNhwcKernels {
  void (*sum)(const DepthwiseNhwcCall&);
  void (*gradient)(const DepthwiseNhwcGradientCall&);
};

/// Those of the same instruction set.
const DepthwiseNhwcKernels& depthwiseNhwcKernels(const KernelSet& kernels);

/// NAMEDepthwiseNhwc() of depthwise_nhwc_NAME.cpp.
#define TACC_DECLARE(set, isThere) const DepthwiseNhwcKernels& set##DepthwiseNhwc();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
