// What a convolution is, checked: everything behind the C interface may rely on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "compute/conv/kernels/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

constexpr int ceilDivide(int a, int b) { return (a + b - 1) / b; }
constexpr int roundUp(int a, int b) { return ceilDivide(a, b) * b; }
/// The size of a part, where `count` is cut into nearly equal ones, the larger first.
constexpr int partSize(int count, int parts, int index) { return (count + parts - 1 - index) / parts; }

/// The first output coordinate whose input coordinate, at * stride + offset, is not before 0.
constexpr int firstInside(int offset, int stride) { return offset >= 0 ? 0 : (-offset + stride - 1) / stride; }
/// The end of those whose input coordinate is before `size`.
constexpr int endInside(int offset, int stride, int size) {
  return size - offset <= 0 ? 0 : (size - offset + stride - 1) / stride;
}

/// Sizes of a forward convolution. All are positive, the output too, and the bytes of every tensor fit into ptrdiff_t.
struct Shape {
  int batch, inChannels, height, width;
  int outChannels, kernelHeight, kernelWidth;
  int strideHeight, strideWidth, padHeight, padWidth, dilationHeight, dilationWidth;
  int groups;
  int outHeight, outWidth;

  int inPerGroup() const { return inChannels / groups; }
  int outPerGroup() const { return outChannels / groups; }
  int inBlocks() const { return ceilDivide(inChannels, blockLength); }
  int outBlocks() const { return ceilDivide(outChannels, blockLength); }
  /// Floats of one block of channels of one image.
  std::ptrdiff_t inPlane() const { return std::ptrdiff_t{height} * width * blockLength; }
  std::ptrdiff_t outPlane() const { return std::ptrdiff_t{outHeight} * outWidth * blockLength; }
  /// Groups, if there are several, consist of whole blocks.
  bool blocksFitGroups() const {
    return groups == 1 || (inPerGroup() % blockLength == 0 && outPerGroup() % blockLength == 0);
  }
  /// A product of matrices: every output pixel sees the input pixel at its own place.
  bool isProduct() const {
    return kernelHeight == 1 && kernelWidth == 1 && strideHeight == 1 && strideWidth == 1 && padHeight == 0 &&
           padWidth == 0;
  }
  /// A product whose images are of one pixel: they are the pixels of one line. Channels of a pixel follow each other.
  bool isLineOfImages() const { return isProduct() && height * width == 1 && batch > 1 && groups == 1; }
  /// Images, of which those that are one line count once.
  int lines() const { return isLineOfImages() ? 1 : batch; }
  bool isDepthwise() const { return groups > 1 && groups == inChannels && groups == outChannels; }
  /// Multiplications and additions by the definition, the same for every pass.
  double operations() const;
  /// "64x56x56 -> 256, 3x3, stride 2, pad 1": for messages.
  std::string text() const;
};

/// What is bfloat16, of which a float is a pair: of channels, or, for gradients of weights, of pixels
/// (pixel_pairs.hpp).
struct Pairs {
  bool areRead = false;     ///< input, output's gradient, packed weights
  bool areWritten = false;  ///< results too, and what is added to them; float32 otherwise
  bool areCompact = false;  ///< of a gradient of weights: no pixel is in two pairs
};

struct Description {
  taccConvPass_t pass;
  Shape shape;
  taccLayout_t inputLayout;
  taccWeightLayout_t weightLayout;
  bool bias, residual, accumulate, winograd;
  int maxWorkers;
  bool isBfloat16;        // the activations
  bool roundsWeights;     // to bfloat16, where that is faster
  std::string algorithm;  // empty: the library chooses
  taccLayout_t outputLayout = taccLayoutNchw16c;
  taccActivation_t activation = taccActivationNone;
  /// The kernels start two multiply-adds of 512 bits a cycle; makePlan() knows.
  bool hasTwoWideUnits = false;
  /// Floats of the kernels' vectors: blocks of channels, and parts of one where kernels say so, or parts of blocks;
  /// likewise.
  int vectorLanes = 0;
  /// There are kernels for products of split numbers; likewise.
  bool splits = false;
  /// The result is a part of one that is stored non-temporally.
  bool isOfLargeResult = false;
  Pairs pairs{};
};

/// Checks a description, of this header's size or an older one's. Throws Error (taccInvalidArgument).
Description understand(const taccConvDesc_t& desc);

/// Floats of a tensor; 0 when a size is not positive or the bytes do not fit.
std::size_t tensorFloats(taccLayout_t layout, int batch, int channels, int height, int width);
std::size_t weightFloats(taccWeightLayout_t layout, int outChannels, int inChannels, int kernelHeight, int kernelWidth,
                         int groups);

bool isValid(taccLayout_t layout);
bool isValid(taccWeightLayout_t layout);

}  // namespace tacc::conv
