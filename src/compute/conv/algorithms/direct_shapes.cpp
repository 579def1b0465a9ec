#include "compute/conv/algorithms/direct_shapes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace tacc::conv {
namespace {

/// One dimension of a phase: the taps (numbers of kernel lines or columns) and where they read.
struct PhaseTaps {
  std::vector<int> taps, steps;
};

PhaseTaps tapsOf(int phase, int kernel, int stride, int pad, int dilation) {
  PhaseTaps result;
  for (int t = 0; t < kernel; ++t) {
    const int at = phase + pad - t * dilation;
    if (at % stride != 0) continue;
    result.taps.push_back(t);
    result.steps.push_back(at / stride);
  }
  return result;
}

/// What is read: the channels of a group, in images of which a product sees one line.
DirectShape readingFrom(int channels, int height, int width, const BlockSteps& steps, bool isProduct, bool readsPairs) {
  DirectShape c{};
  for (int left = channels; left > 0; left -= blockLength) {
    c.inCounts.push_back(ceilDivide(std::min(left, blockLength), readsPairs ? 2 : 1));
  }
  c.inHeight = isProduct ? 1 : height;
  c.inWidth = isProduct ? height * width : width;
  c.inPixel = steps.pixel;
  c.inLine = c.inWidth * steps.pixel;
  c.inPlane = steps.block;
  return c;
}

/// To the nearest, of two as near ones the even one; what is no number stays so.
std::uint32_t bfloat16Of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/// Images of one pixel as one line.
void joinImages(DirectShape& c, const Shape& s, const BlockSteps& in, const BlockSteps& out) {
  c.inWidth = c.outWidth = s.batch;
  c.inPixel = in.image;
  c.outPixel = out.image;
  c.inLine = s.batch * c.inPixel;
  c.outLine = s.batch * c.outPixel;
}

}  // namespace

float pairOf(float first, float second) { return std::bit_cast<float>(bfloat16Of(second) << 16 | bfloat16Of(first)); }

DirectShape forwardShape(const Shape& s, taccLayout_t inLayout, taccLayout_t outLayout, Pairs pairs) {
  const bool isProduct = s.isProduct();
  const BlockSteps in = stepsOfPairs(blockSteps(inLayout, s.inChannels, s.height, s.width), pairs.areRead);
  const BlockSteps out = stepsOfPairs(blockSteps(outLayout, s.outChannels, s.outHeight, s.outWidth), pairs.areWritten);
  DirectShape c = readingFrom(s.inPerGroup(), s.height, s.width, in, isProduct, pairs.areRead);
  c.outBlocks = ceilDivide(s.outPerGroup(), blockLength);
  c.lastOuts = s.outPerGroup() - (c.outBlocks - 1) * blockLength;
  c.isCut = !hasWholeBlocks(outLayout, s.outPerGroup());
  c.images = s.batch;
  if (inLayout == taccLayoutNhwc || outLayout == taccLayoutNhwc) c.groupsOfPixel = s.groups;
  c.outHeight = isProduct ? 1 : s.outHeight;
  c.outWidth = isProduct ? s.outHeight * s.outWidth : s.outWidth;
  c.outPixel = out.pixel;
  c.outLine = c.outWidth * out.pixel;
  c.outPlane = out.block;
  c.strideHeight = s.strideHeight;
  c.strideWidth = s.strideWidth;
  for (int r = 0; r < s.kernelHeight; ++r) {
    for (int t = 0; t < s.kernelWidth; ++t) {
      c.taps.push_back({r * s.dilationHeight - s.padHeight, t * s.dilationWidth - s.padWidth});
    }
  }
  if (s.isLineOfImages()) joinImages(c, s, in, out);
  return c;
}

bool isNarrow(const DirectShape& shape) {
  constexpr int mostPixels = 4;  // of more a tile of one line is as good
  const int pixels = std::min(shape.inWidth, shape.outWidth);
  return pixels <= mostPixels && shape.outHeight > shape.outWidth && !shape.isScattered && !shape.goesByLine;
}

DirectShape turned(DirectShape shape) {
  std::swap(shape.inHeight, shape.inWidth);
  std::swap(shape.inLine, shape.inPixel);
  std::swap(shape.outHeight, shape.outWidth);
  std::swap(shape.outLine, shape.outPixel);
  std::swap(shape.strideHeight, shape.strideWidth);
  for (Tap& tap : shape.taps) std::swap(tap.dy, tap.dx);
  return shape;
}

std::vector<BackwardPhase> backwardPhases(const Shape& s, taccLayout_t inLayout, taccLayout_t outLayout, Pairs pairs) {
  std::vector<BackwardPhase> phases;
  const bool isProduct = s.isProduct();
  const BlockSteps in = stepsOfPairs(blockSteps(inLayout, s.inChannels, s.height, s.width), pairs.areWritten);
  const BlockSteps out = stepsOfPairs(blockSteps(outLayout, s.outChannels, s.outHeight, s.outWidth), pairs.areRead);
  DirectShape c = readingFrom(s.outPerGroup(), s.outHeight, s.outWidth, out, isProduct, pairs.areRead);
  c.outBlocks = ceilDivide(s.inPerGroup(), blockLength);
  c.lastOuts = s.inPerGroup() - (c.outBlocks - 1) * blockLength;
  c.isCut = !hasWholeBlocks(inLayout, s.inPerGroup());
  c.skipsPixels = s.strideHeight > 1 || s.strideWidth > 1;
  c.images = s.batch;
  if (inLayout == taccLayoutNhwc || outLayout == taccLayoutNhwc) c.groupsOfPixel = s.groups;
  c.outPixel = s.strideWidth * in.pixel;
  c.outLine = std::ptrdiff_t{s.strideHeight} * s.width * in.pixel;
  c.outPlane = in.block;
  c.strideHeight = c.strideWidth = 1;
  for (int y = 0; y < std::min(s.strideHeight, s.height); ++y) {
    const PhaseTaps rows = tapsOf(y, s.kernelHeight, s.strideHeight, s.padHeight, s.dilationHeight);
    for (int x = 0; x < std::min(s.strideWidth, s.width); ++x) {
      const PhaseTaps columns = tapsOf(x, s.kernelWidth, s.strideWidth, s.padWidth, s.dilationWidth);
      c.taps.clear();
      std::vector<int> taps;
      for (std::size_t r = 0; r < rows.taps.size(); ++r) {
        for (std::size_t t = 0; t < columns.taps.size(); ++t) {
          c.taps.push_back({rows.steps[r], columns.steps[t]});
          taps.push_back(rows.taps[r] * s.kernelWidth + columns.taps[t]);
        }
      }
      c.outHeight = isProduct ? 1 : ceilDivide(s.height - y, s.strideHeight);
      c.outWidth = isProduct ? s.height * s.width : ceilDivide(s.width - x, s.strideWidth);
      if (s.isLineOfImages()) joinImages(c, s, out, in);
      phases.push_back({(std::ptrdiff_t{y} * s.width + x) * in.pixel, std::move(taps), c});
    }
  }
  return phases;
}

}  // namespace tacc::conv
