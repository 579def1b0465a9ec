// The kernels of gradients of the weights of channel-wise kernels three wide and up to three high
// (depthwise_three.cpp), one table for each instruction set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"

namespace tacc::conv {

struct KernelSet;

/// Pixels of the longest line that is one strip; of others, cut into the fewest strips of at most `longestOfThree`
/// pixels that are nearly equal, the longer ones have `shortestOfThree` at least.
inline constexpr int mostThreeRows = 3, longestThreeLine = 14, longestOfThree = 8, shortestOfThree = 6;

/// Of blocks of 16 channels, each the sums over some lines of all images, of kernels of `rows` lines: sums[r][t] (+)=
/// the sum over pixels of gradient(y, x) * input(y * stride + r - pad, x * stride + t - pad). The pixels of a block
/// follow each other, and lines do. Distances are in floats.
struct DepthwiseThreeCall {
  const float* input;     // pixel (0, 0) of the first block and image
  const float* gradient;  // likewise
  std::ptrdiff_t inputBlock, inputImage, gradientBlock, gradientImage;
  int blocks, images;
  int channels;  // of all blocks: vectors without any are not computed, and their sums are zero
  int inputHeight, inputWidth, gradientWidth;
  int from, to;  // lines of the gradient, of each image
  int pad;       // above: 0 or, of several rows, not more than beside; of the kernel's lines one is outside at most
  /// Of a line of several strips: those of one pixel less, which come last, and the others.
  int longStrips, shortStrips;
  float* sums;  // one behind the other: 16 floats for each tap, line by line of the kernel, block by block
  bool accumulate;
};

using DepthwiseThreeKernel = void (*)(const DepthwiseThreeCall&);

/// Columns outside that lines read, with a padding of 0 or 1: none; one before a line; one before and one behind it.
enum ThreeEnds { noneOutside, leftOutside, bothOutside };

struct DepthwiseThreeKernels {
  /// [rows][stride][what is outside][pixels of a line]; and of lines of several strips, by the pixels of a long one;
  /// null: there is none.
  DepthwiseThreeKernel line[mostThreeRows + 1][3][bothOutside + 1][longestThreeLine + 1];
  DepthwiseThreeKernel strips[mostThreeRows + 1][3][bothOutside + 1][longestOfThree + 1];
};

/// Those of the same instruction set.
const DepthwiseThreeKernels& depthwiseThreeKernels(const KernelSet& kernels);

/// NAMEDepthwiseThree() of depthwise_three_NAME.cpp.
#define TACC_DECLARE(set, isThere) const DepthwiseThreeKernels& set##DepthwiseThree();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
