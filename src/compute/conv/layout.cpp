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

void copyBlock(const float* from, Steps source, float* to, Steps target, std::ptrdiff_t pixels, int channels) {
  if (source.channel == 1 && target.channel == 1 && channels == blockLength) {
    for (std::ptrdiff_t p = 0; p < pixels; ++p) {  // a size that the compiler knows
      std::memcpy(to + p * target.pixel, from + p * source.pixel, blockLength * sizeof(float));
    }
  } else if (source.channel == 1 && target.channel == 1) {
    for (std::ptrdiff_t p = 0; p < pixels; ++p) {
      std::memcpy(to + p * target.pixel, from + p * source.pixel, static_cast<std::size_t>(channels) * sizeof(float));
    }
  } else if (source.pixel == 1) {
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
  if (here == blockLength && fromLayout == taccLayoutNchw && toLayout == taccLayoutNchw16c) {
    kernels.toBlocks(blockFrom, plane, blockTo, plane, isNonTemporal);
    return;
  }
  if (here == blockLength && fromLayout == taccLayoutNchw16c && toLayout == taccLayoutNchw) {
    kernels.fromBlocks(blockFrom, blockTo, plane, plane, isNonTemporal);
    return;
  }
  const Steps source = stepsOf(fromLayout, channels, plane);
  const Steps target = stepsOf(toLayout, channels, plane);
  if (toLayout == taccLayoutNchw16c && here < blockLength) std::fill_n(blockTo, plane * blockLength, 0.0F);
  for (std::ptrdiff_t p = 0; p < plane; p += pixelsAtOnce) {
    copyBlock(blockFrom + p * source.pixel, source, blockTo + p * target.pixel, target,
              std::min(pixelsAtOnce, plane - p), here);
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
      if (toLayout == taccLayoutNchw16c && here < blockLength) std::fill_n(turnTo, pixels * blockLength, 0.0F);
      copyBlock(from + elementAt(fromLayout, channels, height, width, image, first, 0, 0) + p * source.pixel, source,
                turnTo, target, pixels, here);
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
