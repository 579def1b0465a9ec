// What channel-wise convolutions of all passes have in common.
#pragma once

#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// Channel-wise kernels in the order of the vector kernels: [block of channels][tap][16], zeros where there are no
/// channels. `flips`: the taps of each line come in reverse.
void packDepthwise(const Description& d, bool flips, const float* weights, float* packed);

/// What a channel-wise gradient of weights is in that order, to where the description wants it: the channels of one
/// block.
void deliverDepthwise(const Description& d, int block, const float* sums, float* gradient);

/// Whether there are kernels for lines of that many taps with that stride.
constexpr bool hasDepthwiseKernel(int width, int stride, int dilation) {
  return (width == 3 || width == 5 || width == 7) && (stride == 1 || stride == 2) && dilation == 1;
}

/// How a channel-wise kernel goes through a plane: in strips of results in registers, for the usual widths or any; or a
/// tap at a time, whose products are summed, or added to the result.
enum class DepthwiseWay { strips, anyStrips, tapSums, tapAdditions };

/// Cycles for one image and block of channels, whichever pass: multiply-adds of the taps that are inside, and what
/// begins and ends with every line.
double depthwiseCycles(const Shape& shape, const KernelSet& kernels, DepthwiseWay way);

}  // namespace tacc::conv
