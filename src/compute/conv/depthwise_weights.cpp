#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/conv/depthwise.hpp"

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

}  // namespace

void packDepthwise(const Description& d, bool flips, const float* weights, float* packed) {
  const Shape& s = d.shape;
  const int taps = s.kernelHeight * s.kernelWidth;
  const bool isBlocked = d.weightLayout == taccWeightsBlocked;
  std::fill_n(packed, std::ptrdiff_t{s.inBlocks()} * taps * blockLength, 0.0F);
  for (int c = 0; c < s.inChannels; ++c) {
    const std::ptrdiff_t block = std::ptrdiff_t{c / blockLength} * taps * blockLength + c % blockLength;
    const float* const from = weights + (isBlocked ? block : std::ptrdiff_t{c} * taps);
    for (int tap = 0; tap < taps; ++tap) {
      const int column = tap % s.kernelWidth;
      const int place = flips ? tap - column + s.kernelWidth - 1 - column : tap;
      packed[block + std::ptrdiff_t{place} * blockLength] = from[std::ptrdiff_t{tap} * (isBlocked ? blockLength : 1)];
    }
  }
}

void deliverDepthwise(const Description& d, int block, const float* sums, float* gradient) {
  const Shape& s = d.shape;
  const std::ptrdiff_t taps = std::ptrdiff_t{s.kernelHeight} * s.kernelWidth;
  float* to = gradient + block * taps * blockLength;
  if (d.weightLayout == taccWeightsBlocked) {
    for (std::ptrdiff_t i = 0; i < taps * blockLength; ++i) to[i] = d.accumulate ? to[i] + sums[i] : sums[i];
    return;
  }
  const int channels = std::min(blockLength, s.inChannels - block * blockLength);
  for (int c = 0; c < channels; ++c, to += taps) {
    for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
      const float sum = sums[tap * blockLength + c];
      to[tap] = d.accumulate ? to[tap] + sum : sum;
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
  return staysInL2(static_cast<std::size_t>(bytes)) ? 0 : bytes / bytesOfCycle;
}

}  // namespace tacc::conv
