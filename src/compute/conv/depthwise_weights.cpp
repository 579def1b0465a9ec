#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/conv/depthwise.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Of one dimension: how many pairs of a result and a tap read something that is inside.
double pairsInside(int results, int taps, int stride, int dilation, int pad, int size) {
  double pairs = 0;
  for (int t = 0; t < taps; ++t) {
    const std::int64_t offset = std::int64_t{t} * dilation - pad;
    const std::int64_t from = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const std::int64_t to = size - offset <= 0 ? 0 : (size - offset + stride - 1) / stride;
    pairs += static_cast<double>(std::max<std::int64_t>(0, std::min<std::int64_t>(results, to) - from));
  }
  return pairs;
}

/// From a channel's tap 0 to its next one, and from a channel to the next, in the description's layout.
struct Steps {
  std::ptrdiff_t tap, channel;
};
Steps stepsOf(const Description& d) {
  const std::ptrdiff_t taps = std::ptrdiff_t{d.shape.kernelHeight} * d.shape.kernelWidth;
  return d.weightLayout == taccWeightsKcrs ? Steps{1, taps} : Steps{blockLength, taps * blockLength};
}

}  // namespace

void packDepthwise(const Description& d, bool flips, const float* weights, float* packed) {
  const Shape& s = d.shape;
  const int taps = s.kernelHeight * s.kernelWidth;
  const Steps steps = stepsOf(d);
  std::fill_n(packed, std::ptrdiff_t{s.inBlocks()} * taps * blockLength, 0.0F);
  for (int c = 0; c < s.inChannels; ++c) {
    float* const to = packed + std::ptrdiff_t{c / blockLength} * taps * blockLength + c % blockLength;
    for (int tap = 0; tap < taps; ++tap) {
      const int column = tap % s.kernelWidth;
      const int place = flips ? tap - column + s.kernelWidth - 1 - column : tap;
      to[std::ptrdiff_t{place} * blockLength] = weights[c * steps.channel + tap * steps.tap];
    }
  }
}

void deliverDepthwise(const Description& d, int block, const float* sums, float* gradient) {
  const Shape& s = d.shape;
  const int taps = s.kernelHeight * s.kernelWidth;
  const Steps steps = stepsOf(d);
  const int first = block * blockLength;
  const int channels = std::min(blockLength, s.inChannels - first);
  if (d.weightLayout == taccWeightsBlocked && !d.accumulate) {
    std::fill_n(gradient + first * steps.channel, channels * steps.channel, 0.0F);
  }
  for (int c = 0; c < channels; ++c) {
    float* const to = gradient + (first + c) * steps.channel;
    const float* const from = sums + c;
    if (d.accumulate) {
      for (int tap = 0; tap < taps; ++tap) to[tap * steps.tap] += from[std::ptrdiff_t{tap} * blockLength];
    } else {
      for (int tap = 0; tap < taps; ++tap) to[tap * steps.tap] = from[std::ptrdiff_t{tap} * blockLength];
    }
  }
}

double depthwiseCycles(const Shape& s, const KernelSet& kernels) {
  const double perCycle = kernels.fmaLanes == blockLength && !hasTwoWideUnits(kernels) ? 1 : 2;
  const double vectors = double(blockLength) / kernels.fmaLanes;
  const double products =
      pairsInside(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height) *
      pairsInside(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width);
  const bool isFast = hasDepthwiseKernel(s.kernelWidth, s.strideWidth, s.dilationWidth) && s.padWidth < s.kernelWidth;
  const double perLine = 30;
  return products * vectors / perCycle * (isFast ? 1.15 : 2) + perLine * std::max(s.height, s.outHeight);
}

double depthwiseTransferCycles(double floats) {
  const double bytesOfCycle = 12;
  const double bytes = floats * sizeof(float);
  return staysInSecondCache(static_cast<std::size_t>(bytes)) ? 0 : bytes / bytesOfCycle;
}

}  // namespace tacc::conv
