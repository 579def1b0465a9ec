#include "compute/conv/layout.hpp"

#include <algorithm>
#include <cstring>

#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// Distances in one of the layouts, of the channels of one block.
struct Steps {
  std::ptrdiff_t pixel, channel;
};

Steps stepsOf(taccLayout_t layout, int channels, std::ptrdiff_t plane) {
  switch (layout) {
    case taccLayoutNchw:
      return {1, plane};
    case taccLayoutNhwc:
      return {channels, 1};
    default:
      return {blockLength, 1};
  }
}

/// Pixels that are copied at once, so that the 16 lines of NCHW that they come from or go to stay in the L1 cache.
constexpr std::ptrdiff_t pixelsAtOnce = 64;

/// From kSize to 2 * kSize channels that follow each other, as two pieces of sizes that the compiler knows: a call of
/// memcpy takes longer than what it copies here.
template <int kSize>
void copyPieces(const float* from, std::ptrdiff_t fromPixel, float* to, std::ptrdiff_t toPixel, std::ptrdiff_t pixels,
                int channels, bool fillsBlock) {
  const int second = channels - kSize;
  for (std::ptrdiff_t p = 0; p < pixels; ++p, from += fromPixel, to += toPixel) {
    if (fillsBlock) std::memset(to, 0, blockLength * sizeof(float));
    std::memcpy(to, from, kSize * sizeof(float));
    std::memcpy(to + second, from + second, kSize * sizeof(float));
  }
}

/// `fillsBlock`: with zeros behind the last channel.
void copyBlock(const float* from, Steps source, float* to, Steps target, std::ptrdiff_t pixels, int channels,
               bool fillsBlock) {
  if (source.channel == 1 && target.channel == 1) {
    const auto copy = channels >= 8   ? copyPieces<8>
                      : channels >= 4 ? copyPieces<4>
                      : channels >= 2 ? copyPieces<2>
                                      : copyPieces<1>;
    copy(from, source.pixel, to, target.pixel, pixels, channels, fillsBlock && channels < blockLength);
    return;
  }
  if (fillsBlock && channels < blockLength) std::fill_n(to, pixels * blockLength, 0.0F);
  if (source.pixel == 1) {
    // The inner loop writes whole lines of the cache.
    for (std::ptrdiff_t p = 0; p < pixels; ++p) {
      for (int c = 0; c < channels; ++c) to[p * target.pixel + c * target.channel] = from[p + c * source.channel];
    }
  } else {
    for (int c = 0; c < channels; ++c) {
      for (std::ptrdiff_t p = 0; p < pixels; ++p) {
        to[p * target.pixel + c * target.channel] = from[p * source.pixel + c * source.channel];
      }
    }
  }
}

}  // namespace

void reorderBlock(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, ImageSize size,
                  int image, int block, bool isNonTemporal, const layers::LayerKernels& kernels) {
  const auto& [channels, height, width] = size;
  const std::ptrdiff_t plane = std::ptrdiff_t{height} * width;
  const int first = block * blockLength;
  const int here = std::min(blockLength, channels - first);
  const float* const blockFrom = from + elementAt(fromLayout, channels, height, width, image, first, 0, 0);
  float* const blockTo = to + elementAt(toLayout, channels, height, width, image, first, 0, 0);
  if (fromLayout == taccLayoutNchw && toLayout == taccLayoutNchw16c) {
    kernels.toBlocks(blockFrom, plane, here, blockTo, plane, isNonTemporal);
    return;
  }
  if (fromLayout == taccLayoutNchw16c && toLayout == taccLayoutNchw) {
    kernels.fromBlocks(blockFrom, blockTo, plane, here, plane, isNonTemporal);
    return;
  }
  const Steps source = stepsOf(fromLayout, channels, plane);
  const Steps target = stepsOf(toLayout, channels, plane);
  for (std::ptrdiff_t p = 0; p < plane; p += pixelsAtOnce) {
    copyBlock(blockFrom + p * source.pixel, source, blockTo + p * target.pixel, target,
              std::min(pixelsAtOnce, plane - p), here, toLayout == taccLayoutNchw16c);
  }
}

void reorderPixels(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, ImageSize size,
                   int image, std::ptrdiff_t firstPixel, std::ptrdiff_t endPixel) {
  // So few that their lines of the cache are still in the L1 cache for the next block, also where pixels lie a power of
  // two apart, and so fall on each other there.
  constexpr std::ptrdiff_t pixelsOfTurn = 8;
  const auto& [channels, height, width] = size;
  const std::ptrdiff_t plane = std::ptrdiff_t{height} * width;
  const Steps source = stepsOf(fromLayout, channels, plane);
  const Steps target = stepsOf(toLayout, channels, plane);
  for (std::ptrdiff_t p = firstPixel; p < endPixel; p += pixelsOfTurn) {
    const std::ptrdiff_t pixels = std::min(pixelsOfTurn, endPixel - p);
    for (int first = 0; first < channels; first += blockLength) {
      const int here = std::min(blockLength, channels - first);
      float* const turnTo = to + elementAt(toLayout, channels, height, width, image, first, 0, 0) + p * target.pixel;
      copyBlock(from + elementAt(fromLayout, channels, height, width, image, first, 0, 0) + p * source.pixel, source,
                turnTo, target, pixels, here, toLayout == taccLayoutNchw16c);
    }
  }
}

void reorder(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, int batch, int channels,
             int height, int width, const layers::LayerKernels& kernels) {
  if (fromLayout == toLayout) {
    std::memcpy(to, from, tensorFloats(fromLayout, batch, channels, height, width) * sizeof(float));
    return;
  }
  const bool isNonTemporal =
      layers::isTooLargeForCaches(tensorFloats(toLayout, batch, channels, height, width) * sizeof(float));
  for (int n = 0; n < batch; ++n) {
    for (int block = 0; block < ceilDivide(channels, blockLength); ++block) {
      reorderBlock(fromLayout, from, toLayout, to, {channels, height, width}, n, block, isNonTemporal, kernels);
    }
  }
}

}  // namespace tacc::conv
