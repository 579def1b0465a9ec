// 1x1 convolutions with a stride: a product of matrices over every s-th pixel. These are brought together first, a few
// images at a time, in one pass that reads memory in order; backward to the input the product is spread out again,
// between zeros.
#include <algorithm>
#include <cstring>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"

namespace tacc::conv {
namespace {

/// Floats of the pixels of an image that the stride does not leave out.
std::size_t denseFloats(const Shape& s) {
  return static_cast<std::size_t>(s.inBlocks()) * static_cast<std::size_t>(s.outPlane());
}

/// Images that are brought together: what the L2 cache holds, so that weights, or their gradient, are read for more
/// than the pixels of one small image. All parts of the batch are as large.
int imagesAtOnce(const Shape& s) {
  constexpr std::size_t cacheFloats = 1024 * 1024 / sizeof(float);
  const auto batch = static_cast<std::size_t>(s.batch);
  int images = static_cast<int>(std::clamp<std::size_t>(cacheFloats / denseFloats(s), 1, batch));
  while (s.batch % images != 0) --images;
  return images;
}

/// The same convolution of some images without the pixels that the stride leaves out.
Description dense(const Description& d, bool accumulate) {
  Description result = d;
  Shape& s = result.shape;
  s.batch = imagesAtOnce(s);
  s.height = s.outHeight;
  s.width = s.outWidth;
  s.strideHeight = s.strideWidth = 1;
  result.accumulate = accumulate;
  result.isOfLargeResult = d.pass == taccConvForward && isNonTemporalResult(d);
  return result;
}

std::unique_ptr<ConvPlan> makeDense(const Description& d, const KernelSet& kernels) {
  switch (d.pass) {
    case taccConvForward:
      return makeDirectForward(d, kernels);
    case taccConvBackwardData:
      return makeDirectBackwardData(d, kernels);
    default:
      return makeDirectBackwardWeights(d, kernels);
  }
}

class StridedProduct final : public ConvPlan {
 public:
  StridedProduct(const Description& d, std::unique_ptr<ConvPlan> first, std::unique_ptr<ConvPlan> later)
      : ConvPlan(first->kernel()),
        description_(d),
        images_(imagesAtOnce(d.shape)),
        first_(std::move(first)),
        later_(std::move(later)) {}

  std::size_t workspaceBytes() const override { return pixelFloats() * sizeof(float) + first_->workspaceBytes(); }
  std::size_t packedFloats() const override { return first_->packedFloats(); }
  double predictedSeconds() const override {
    const int runs = shape().batch / images_;
    return first_->predictedSeconds() * runs + copySeconds();
  }
  void pack(const float* weights, float* packed) const override { first_->pack(weights, packed); }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const std::ptrdiff_t inImage = shape().inBlocks() * shape().inPlane();
    const std::ptrdiff_t outImage = shape().outBlocks() * shape().outPlane();
    auto* const pixels = static_cast<float*>(buffers.workspace);
    for (int image = 0; image < shape().batch; image += images_) {
      Buffers ofImage = buffers;
      ofImage.workspace = pixels + pixelFloats();
      ofImage.workspaceBytes = first_->workspaceBytes();
      ofImage.input = pixels;
      if (description_.pass != taccConvBackwardData) gather(buffers.input + image * inImage, pixels, executor);
      if (description_.pass == taccConvForward) {
        if (description_.residual) ofImage.residual += image * outImage;
        ofImage.result += image * outImage;
      } else {
        ofImage.outputGradient += image * outImage;
      }
      if (description_.pass == taccConvBackwardData) ofImage.result = pixels;
      const bool isLater = description_.pass == taccConvBackwardWeights && image > 0;
      (isLater ? *later_ : *first_).run(ofImage, executor);
      if (description_.pass == taccConvBackwardData) spread(pixels, buffers.result + image * inImage, executor);
    }
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::size_t pixelFloats() const { return denseFloats(shape()) * static_cast<std::size_t>(images_); }
  /// Blocks of channels, of all images that are brought together.
  std::size_t blocks() const {
    return static_cast<std::size_t>(shape().inBlocks()) * static_cast<std::size_t>(images_);
  }

  /// For bringing pixels together or spreading them out.
  double copySeconds() const {
    const Shape& s = shape();
    const double bytesOfCycle = 24;
    const double dense = double(denseFloats(s)) * s.batch * sizeof(float);
    const double whole = double(s.batch) * s.inBlocks() * static_cast<double>(s.inPlane()) * sizeof(float);
    if (description_.pass == taccConvBackwardData) {
      return ((dense + whole) / bytesOfCycle + transferCycles(whole, 8)) / assumedHertz;
    }
    return (2 * dense / bytesOfCycle + transferCycles(dense, 8)) / assumedHertz;
  }

  void gather(const float* images, float* pixels, const TaskExecutor& executor) const {
    const Shape& s = shape();
    executor.forEach(blocks(), [&](std::size_t block, int) {
      const float* const from = images + static_cast<std::ptrdiff_t>(block) * s.inPlane();
      float* to = pixels + static_cast<std::ptrdiff_t>(block) * s.outPlane();
      for (int y = 0; y < s.outHeight; ++y) {
        const float* const line = from + std::ptrdiff_t{y} * s.strideHeight * s.width * blockLength;
        for (int x = 0; x < s.outWidth; ++x, to += blockLength) {
          // Hardware does not look ahead over lines that are left out.
          __builtin_prefetch(line + (std::ptrdiff_t{s.strideHeight} * s.width + x * s.strideWidth) * blockLength);
          std::memcpy(to, line + std::ptrdiff_t{x} * s.strideWidth * blockLength, blockLength * sizeof(float));
        }
      }
    });
  }

  void spread(const float* pixels, float* images, const TaskExecutor& executor) const {
    const Shape& s = shape();
    executor.forEach(blocks(), [&](std::size_t block, int) {
      const float* from = pixels + static_cast<std::ptrdiff_t>(block) * s.outPlane();
      float* const to = images + static_cast<std::ptrdiff_t>(block) * s.inPlane();
      for (int y = 0; y < s.height; ++y) {
        float* const line = to + std::ptrdiff_t{y} * s.width * blockLength;
        const bool hasPixels = y % s.strideHeight == 0;
        if (!description_.accumulate)
          std::memset(line, 0, static_cast<std::size_t>(s.width) * blockLength * sizeof(float));
        for (int x = 0; hasPixels && x < s.outWidth; ++x, from += blockLength) {
          float* const pixel = line + std::ptrdiff_t{x} * s.strideWidth * blockLength;
          for (int c = 0; c < blockLength; ++c) pixel[c] += from[c];
        }
      }
    });
  }

  Description description_;
  int images_;                       // at once
  std::unique_ptr<ConvPlan> first_;  // for the first ones
  std::unique_ptr<ConvPlan> later_;  // for the others, whose gradients of the weights are added to the first one's
};

}  // namespace

bool servesStridedProduct(const Description& d) {
  const Shape& s = d.shape;
  return s.kernelHeight == 1 && s.kernelWidth == 1 && (s.strideHeight > 1 || s.strideWidth > 1) && s.padHeight == 0 &&
         s.padWidth == 0 && s.groups == 1 && d.inputLayout == taccLayoutNchw16c;
}

std::unique_ptr<ConvPlan> makeStridedProduct(const Description& d, const KernelSet& kernels) {
  const bool isGradient = d.pass == taccConvBackwardWeights;
  return std::make_unique<StridedProduct>(d, makeDense(dense(d, isGradient && d.accumulate), kernels),
                                          isGradient ? makeDense(dense(d, true), kernels) : nullptr);
}

}  // namespace tacc::conv
