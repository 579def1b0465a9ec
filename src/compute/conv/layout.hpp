// Activations in the three layouts.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

/// Where an element is, in floats. `c` may be a channel that only fills a block.
constexpr std::ptrdiff_t elementAt(taccLayout_t layout, int channels, int height, int width, int n, int c, int y,
                                   int x) {
  const std::ptrdiff_t plane = std::ptrdiff_t{height} * width;
  const std::ptrdiff_t pixel = std::ptrdiff_t{y} * width + x;
  switch (layout) {
    case taccLayoutNchw:
      return (std::ptrdiff_t{n} * channels + c) * plane + pixel;
    case taccLayoutNhwc:
      return (n * plane + pixel) * channels + c;
    default: {
      const std::ptrdiff_t blocks = (channels + blockLength - 1) / blockLength;
      return ((n * blocks + c / blockLength) * plane + pixel) * blockLength + c % blockLength;
    }
  }
}

/// In floats: from pixel to pixel, from one block of 16 channels to the next, and from image to image. NCHW has none:
/// its channels do not follow each other.
struct BlockSteps {
  std::ptrdiff_t pixel, block, image;
};
constexpr BlockSteps blockSteps(taccLayout_t layout, int channels, int height, int width) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{height} * width;
  if (layout == taccLayoutNhwc) return {channels, blockLength, pixels * channels};
  const std::ptrdiff_t blocks = (channels + blockLength - 1) / blockLength;
  return {blockLength, pixels * blockLength, blocks * pixels * blockLength};
}

/// Where the first pixel of a channel of an image is.
constexpr std::ptrdiff_t channelPlace(const BlockSteps& steps, std::ptrdiff_t image, int channel) {
  return image * steps.image + channel / blockLength * steps.block + channel % blockLength;
}

/// Steps of copies in which two pixels of an image are a pair, and so half of it each.
constexpr BlockSteps pairSteps(taccLayout_t layout, int channels, int height, int width) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{height} * width;
  const BlockSteps ofPairs = blockSteps(layout, channels, 1, static_cast<int>((pixels + 1) / 2));
  return {ofPairs.pixel / 2, ofPairs.block, ofPairs.image};
}

/// Whether kernels that go through whole blocks of channels read a tensor in place.
constexpr bool hasBlockSteps(taccLayout_t layout) { return layout != taccLayoutNchw; }
/// Whether they write it, or load whole blocks of it: behind the last channel there is another pixel, or nothing.
constexpr bool hasWholeBlocks(taccLayout_t layout, int channels) {
  return layout == taccLayoutNchw16c || (layout == taccLayoutNhwc && channels % blockLength == 0);
}

struct ImageSize {
  int channels, height, width;
};

/// Copies one block of 16 channels, or what there is of it, of one image between tensors in two different layouts.
/// Where `isNonTemporal`, whole blocks is stored non-temporally.
void reorderBlock(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, ImageSize size,
                  int image, int block, bool isNonTemporal, const layers::LayerKernels& kernels);

/// Copies the pixels [firstPixel, endPixel) of an image, of all channels, between NHWC and taccLayoutNchw16c: in the
/// order of NHWC, which hardware looks ahead in.
void reorderPixels(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, ImageSize size,
                   int image, std::ptrdiff_t firstPixel, std::ptrdiff_t endPixel);

/// taccReorder, for sizes that have been checked.
void reorder(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, int batch, int channels,
             int height, int width, const layers::LayerKernels& kernels);

}  // namespace tacc::conv
