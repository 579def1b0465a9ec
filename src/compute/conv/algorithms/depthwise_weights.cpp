#include <algorithm>
#include <limits>

#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {

void packDepthwise(const Description& d, bool flips, const float* weights, float* packed) {
  const Shape& s = d.shape;
  const int taps = s.kernelHeight * s.kernelWidth;
  const bool isBlocked = d.weightLayout == taccWeightsBlocked;
  std::fill_n(packed, std::ptrdiff_t{s.inBlocks()} * taps * blockLength, 0.0F);
  for (int block = 0; block < s.inBlocks(); ++block) {
    const int first = firstChannel(d, block);
    for (int c = first; c < std::min(s.inChannels, first + blockLength); ++c) {
      float* const to = packed + std::ptrdiff_t{block} * taps * blockLength + c - first;
      const std::ptrdiff_t blocked = std::ptrdiff_t{c / blockLength} * taps * blockLength + c % blockLength;
      const float* const from = weights + (isBlocked ? blocked : std::ptrdiff_t{c} * taps);
      for (int tap = 0; tap < taps; ++tap) {
        const int column = tap % s.kernelWidth;
        const int place = flips ? tap - column + s.kernelWidth - 1 - column : tap;
        to[std::ptrdiff_t{place} * blockLength] = from[std::ptrdiff_t{tap} * (isBlocked ? blockLength : 1)];
      }
    }
  }
}

void deliverDepthwise(const Description& d, int block, const float* sums, float* gradient) {
  const Shape& s = d.shape;
  const std::ptrdiff_t taps = std::ptrdiff_t{s.kernelHeight} * s.kernelWidth;
  float* to = gradient + block * taps * blockLength;
  const int channels = channelsOfBlock(s, block);
  if (channels == blockLength) {
    if (d.weightLayout == taccWeightsBlocked) {
      for (std::ptrdiff_t i = 0; i < taps * blockLength; ++i) to[i] = d.accumulate ? to[i] + sums[i] : sums[i];
    } else {
      deliverRows(sums, to, static_cast<int>(taps), d.accumulate);
    }
    return;
  }
  sums += block * blockLength - firstChannel(d, block);  // where the block's own channels begin
  // Where vectors overlap, the last one has channels that are in the one before it too.
  const int ofLast = overlapsVectors(d) ? channels - channels % d.vectorLanes : channels;
  const int shared = overlapsVectors(d) ? d.vectorLanes - channels % d.vectorLanes : 0;
  const auto laneOf = [&](int c) { return c < ofLast ? c : c + shared; };
  if (d.weightLayout == taccWeightsBlocked) {
    for (std::ptrdiff_t tap = 0; tap < taps; ++tap, to += blockLength, sums += blockLength) {
      for (int c = 0; c < blockLength; ++c) {
        const float sum = c < channels ? sums[laneOf(c)] : 0;
        to[c] = d.accumulate ? to[c] + sum : sum;
      }
    }
    return;
  }
  for (int c = 0; c < channels; ++c, to += taps) {
    for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
      const float sum = sums[tap * blockLength + laneOf(c)];
      to[tap] = d.accumulate ? to[tap] + sum : sum;
    }
  }
}

std::vector<DepthwiseTaps> depthwiseTaps(int width, int dilation, int pad) {
  std::vector<DepthwiseTaps> parts;
  if (width < 2 || dilation != 1) return parts;
  for (int first = 0; first < width; first += parts.back().width) {
    const int left = width - first;
    // No tap is left alone.
    parts.push_back({first, left == 8 ? 5 : left == 6 ? 4 : std::min(left, 7)});
  }
  if (pad >= parts.front().width) parts.clear();
  return parts;
}

double depthwisePartRead(const Shape& s) {
  return std::min(1., double(s.kernelHeight) / s.strideHeight) * std::min(1., double(s.kernelWidth) / s.strideWidth);
}

double leastFetchedBytes(const Shape& s) {
  constexpr double ofCaches = 8.0 * 1024 * 1024, ofNearCache = 1.5;
  // Hardware does not look ahead over pixels that are left out.
  if (depthwisePartRead(s) < 1) return ofCaches;
  return hasFarCaches() ? std::numeric_limits<double>::infinity() : ofNearCache * coreModel().lastCacheBytes;
}

double depthwiseBlocks(const Shape& s, const KernelSet& kernels) {
  // Without them the others' waiting is not hidden.
  const double computed = double(roundUp(s.inChannels, kernels.fmaLanes)) / blockLength;
  return s.batch * (computed + s.inBlocks()) / 2;
}

double depthwiseCycles(const Shape& s, const KernelSet& kernels, DepthwiseMethod method, int resultLines,
                       std::size_t parts) {
  const double perCycle = kernels.fmaLanes == blockLength && !hasTwoWideUnits(kernels) ? 1 : 2;
  const double vectors = double(blockLength) / kernels.fmaLanes;
  const double lines =
      insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
  const double columns = insidePairs(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width);
  const double products = lines * columns * vectors / perCycle;
  switch (method) {
    case DepthwiseMethod::strips:
      return 1.15 * products + 30.0 * resultLines * static_cast<double>(parts);
    case DepthwiseMethod::anyStrips:
      // Whole strips, also where a part of one is outside.
      return 1.2 * lines * (s.outWidth <= 4 ? 4 : roundUp(s.outWidth, 7)) * s.kernelWidth * vectors / perCycle +
             (20 + 8.0 * ceilDivide(s.outWidth, 7)) * resultLines + 6.0 * ceilDivide(s.outWidth, 7) * lines;
    case DepthwiseMethod::tapSums:  // two values are read for each product; sums are cleared, and delivered
      return 2.8 * products + 14 * lines * s.kernelWidth + callCycles;
    case DepthwiseMethod::tapAdditions:
      break;
  }
  // The result is read and written for each product, and cleared before; units for products are not what is short.
  const double pixels = double(s.height) * s.width * vectors;
  if (hasFarCaches()) return 3.5 * (vectors * lines * columns + pixels);
  const double ofProduct = hasTwoWideUnits(kernels) ? 3.5 : 2.2;
  return ofProduct * products + 18 * lines * std::min(s.kernelWidth, s.outWidth) + pixels;
}

}  // namespace tacc::conv
