// 1x1 convolutions with a stride: a product of matrices over every s-th pixel. These are brought together first, a few
// images at a time, in one pass that reads memory in order; backward to the input the product is spread out again,
// between zeros. In NCHW, before and behind, pixels of a channel are, for a product of any algorithm, of groups too.
#include <algorithm>
#include <cstring>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/algorithms/streamed_pixels.hpp"
#include "compute/conv/layout.hpp"

namespace tacc::conv {
namespace {

/// Floats of the pixels of an image that the stride does not leave out, and of all of them.
std::size_t denseFloats(const Description& d) {
  return tensorFloats(d.inputLayout, 1, d.shape.inChannels, d.shape.outHeight, d.shape.outWidth);
}
std::size_t wholeFloats(const Description& d) {
  return tensorFloats(d.inputLayout, 1, d.shape.inChannels, d.shape.height, d.shape.width);
}

/// Images that are brought together: what the L2 cache holds, so that weights, or their gradient, are read for more
/// than the pixels of one small image. All parts of the batch are as large.
int imagesTogether(const Description& d) {
  constexpr std::size_t cacheFloats = 1024 * 1024 / sizeof(float);
  const Shape& s = d.shape;
  const auto batch = static_cast<std::size_t>(s.batch);
  int images = static_cast<int>(std::clamp<std::size_t>(cacheFloats / denseFloats(d), 1, batch));
  while (s.batch % images != 0) --images;
  return images;
}

/// The same convolution of some images without the pixels that the stride leaves out.
Description dense(const Description& d, bool accumulate) {
  Description result = d;
  Shape& s = result.shape;
  s.batch = imagesTogether(d);
  s.height = s.outHeight;
  s.width = s.outWidth;
  s.strideHeight = s.strideWidth = 1;
  result.accumulate = accumulate;
  result.isOfLargeResult = d.pass == taccConvForward && isNonTemporalResult(d);
  return result;
}

/// NCHW before and behind.
bool isOfPlanes(const Description& d) { return d.inputLayout == taccLayoutNchw && d.outputLayout == taccLayoutNchw; }

/// Whether short sums serve such a product. Of long vectors, and far caches, that has not been measured.
bool haveShortSums(const Description& dense) { return areNearHalves(dense.vectorLanes) && servesShortSums(dense); }

std::unique_ptr<ConvPlan> makeDense(const Description& d, const KernelSet& kernels) {
  if (isOfPlanes(d)) {
    Description any = d;
    any.algorithm.clear();
    ChosenPlan best = cheapestServing(any, kernels);
    takeCheaper(best, makePlainPlan(any, kernels));
    return std::move(best.plan);
  }
  const auto withShortSums = [&](std::unique_ptr<ConvPlan> direct) {
    if (!haveShortSums(d)) return direct;
    std::unique_ptr<ConvPlan> sums = makeShortSums(d, kernels);
    return sums->predictedSeconds() < direct->predictedSeconds() ? std::move(sums) : std::move(direct);
  };
  switch (d.pass) {
    case taccConvForward:
      return withShortSums(makeDirectForward(d, kernels));
    case taccConvBackwardData:
      return withShortSums(makeDirectBackwardData(d, kernels));
    default:
      return makeDirectBackwardWeights(d, kernels);
  }
}

class StridedProduct final : public ConvPlan {
 public:
  StridedProduct(const Description& d, std::unique_ptr<ConvPlan> first, std::unique_ptr<ConvPlan> later)
      : ConvPlan(first->kernel()),
        description_(d),
        images_(imagesTogether(d)),
        first_(std::move(first)),
        later_(std::move(later)) {}

  std::size_t workspaceBytes() const override { return pixelFloats() * sizeof(float) + productBytes(); }
  std::size_t packedFloats() const override { return first_->packedFloats(); }
  double predictedSeconds() const override {
    const int runs = shape().batch / images_;
    return first_->predictedSeconds() * runs + copySeconds();
  }
  void pack(const float* weights, float* packed) const override { first_->pack(weights, packed); }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto inImage = static_cast<std::ptrdiff_t>(wholeFloats(description_));
    const auto outImage = static_cast<std::ptrdiff_t>(
        tensorFloats(description_.outputLayout, 1, shape().outChannels, shape().outHeight, shape().outWidth));
    auto* const pixels = static_cast<float*>(buffers.workspace);
    for (int image = 0; image < shape().batch; image += images_) {
      Buffers ofImage = buffers;
      ofImage.workspace = pixels + pixelFloats();
      ofImage.workspaceBytes = productBytes();
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
  /// Workspace of the products, which need not be of one algorithm.
  std::size_t productBytes() const {
    return std::max(first_->workspaceBytes(), later_ == nullptr ? 0 : later_->workspaceBytes());
  }
  /// In whole lines of the cache, as the workspace of the product begins behind them.
  std::size_t pixelFloats() const {
    const std::size_t floats = denseFloats(description_) * static_cast<std::size_t>(images_);
    return (floats + blockLength - 1) / blockLength * blockLength;
  }

  bool isNhwc() const { return description_.inputLayout == taccLayoutNhwc; }
  /// Floats of a pixel that follow each other, and how many planes of such pixels an image has.
  std::ptrdiff_t pixel() const { return isOfPlanes(description_) ? 1 : isNhwc() ? shape().inChannels : blockLength; }
  std::size_t planes() const {
    const int blocks = isOfPlanes(description_) ? shape().inChannels : shape().inBlocks();
    return isNhwc() ? 1 : static_cast<std::size_t>(blocks);
  }

  /// For bringing pixels together or spreading them out.
  double copySeconds() const {
    const double bytesOfCycle = 24;
    const double dense = double(denseFloats(description_)) * shape().batch * sizeof(float);
    const double whole = double(wholeFloats(description_)) * shape().batch * sizeof(float);
    if (isOfPlanes(description_)) {
      const bool isData = description_.pass == taccConvBackwardData;
      const double floats = (isData ? dense + whole : dense) / sizeof(float);
      // Small products of groups hide nothing of what a float costs.
      const int linesOfPlane = isData && !clearsPlanes() ? shape().height : shape().outHeight;
      const double lines = double(shape().batch) * static_cast<double>(planes()) * linesOfPlane;
      const double ofLine = isData ? 8 : 15;
      // Where lines are read every line of the cache is, in no order that hardware looks ahead in.
      const double moved = isData ? transferCycles(whole, 8) : transferCycles(lines * shape().width * sizeof(float), 5);
      const double beside = ofLine * lines + (shape().groups > 1 ? 1.3 * dense / sizeof(float) : 0);
      return (0.2 * floats + beside + moved) / assumedHertz;
    }
    if (description_.pass == taccConvBackwardData) {
      // What is stored past far caches is one stream, and all that there is to it.
      if (isStreamed() && hasFarCaches()) return (dense / bytesOfCycle + streamedCycles(whole, 11)) / assumedHertz;
      constexpr double streamedBytes = 7.5;  // a cycle, of half vectors, which is all that there is to it too
      if (isStreamed() && areNearHalves(description_.vectorLanes))
        return (dense / bytesOfCycle + whole / streamedBytes) / assumedHertz;
      // Pixel by pixel.
      const double pixels = whole / (blockLength * sizeof(float)), cyclesOfPixel = shape().strideWidth > 2 ? 5 : 0;
      return ((dense + whole) / bytesOfCycle + cyclesOfPixel * pixels + transferCycles(whole, 8)) / assumedHertz;
    }
    const double skipped = shape().strideWidth < leastSkippingStride ? 0 : skippedLineCycles(dense / sizeof(float));
    // Pixels of NHWC are copied one by one; far caches take longer for each of their lines.
    const double ofPixel = isNhwc() && !hasFarCaches() ? 9 : 0;
    const double pixels = dense / (double(sizeof(float)) * shape().inChannels);
    return (2 * dense / bytesOfCycle + ofPixel * pixels + transferCycles(dense, 8) + skipped) / assumedHertz;
  }

  /// Calls visit(plane, line) for `lines` lines of all planes of the images that are brought together.
  template <class Visit>
  void forEachLine(int lines, const TaskExecutor& executor, const Visit& visit) const {
    const std::size_t all = planes() * static_cast<std::size_t>(images_) * static_cast<std::size_t>(lines);
    // Lines of NHWC are long, of blocks as many as a plane has go together.
    const auto ofTask = static_cast<std::size_t>(isNhwc() ? 1 : lines);
    executor.forEach(all / ofTask, [&](std::size_t task, int) {
      for (std::size_t index = task * ofTask; index < (task + 1) * ofTask; ++index) {
        visit(static_cast<std::ptrdiff_t>(index) / lines, static_cast<std::ptrdiff_t>(index) % lines);
      }
      if (isStreamed()) endNonTemporal();
    });
  }

  /// Whether the gradient of the input, most of it zeros, is stored past the caches.
  bool isStreamed() const {
    return description_.pass == taccConvBackwardData && !description_.accumulate &&
           description_.inputLayout == taccLayoutNchw16c && isNonTemporalResult(description_);
  }

  /// Calls body(copy, clear) of a pixel of the result.
  template <class Body>
  void withStores(const Body& body) const {
    if (isStreamed()) return body(copyPixelNonTemporal, clearPixelNonTemporal);
    const std::size_t bytes = static_cast<std::size_t>(pixel()) * sizeof(float);
    withCopy([&](const auto& copy) { body(copy, [=](float* to) { std::memset(to, 0, bytes); }); });
  }

  /// `copy` copies the floats of a pixel: of a block with a size that the compiler knows.
  template <class Body>
  void withCopy(const Body& body) const {
    if (pixel() == blockLength) {
      body([](float* to, const float* from) { std::memcpy(to, from, blockLength * sizeof(float)); });
    } else {
      const std::size_t bytes = static_cast<std::size_t>(pixel()) * sizeof(float);
      body([=](float* to, const float* from) { std::memcpy(to, from, bytes); });
    }
  }

  void gather(const float* images, float* pixels, const TaskExecutor& executor) const {
    const Shape& s = shape();
    const std::ptrdiff_t ofPixel = pixel();
    if (ofPixel == 1) return gatherFloats(images, pixels, executor);
    withCopy([&](const auto& copy) {
      forEachLine(s.outHeight, executor, [&](std::ptrdiff_t plane, std::ptrdiff_t y) {
        const float* const line = images + (plane * s.height + y * s.strideHeight) * s.width * ofPixel;
        float* to = pixels + (plane * s.outHeight + y) * s.outWidth * ofPixel;
        for (int x = 0; x < s.outWidth; ++x, to += ofPixel) {
          // Hardware does not look ahead over lines that are left out.
          __builtin_prefetch(line + (std::ptrdiff_t{s.strideHeight} * s.width + x * s.strideWidth) * ofPixel);
          copy(to, line + x * s.strideWidth * ofPixel);
        }
      });
    });
  }

  /// The same of pixels that are one float.
  void gatherFloats(const float* images, float* pixels, const TaskExecutor& executor) const {
    const Shape& s = shape();
    forEachLine(s.outHeight, executor, [&](std::ptrdiff_t plane, std::ptrdiff_t y) {
      const float* const line = images + (plane * s.height + y * s.strideHeight) * s.width;
      float* const to = pixels + (plane * s.outHeight + y) * s.outWidth;
      for (std::ptrdiff_t x = 0; x < s.outWidth; ++x) to[x] = line[x * s.strideWidth];
    });
  }

  /// Of gradients in NCHW between wide strides, which are mostly zeros.
  bool clearsPlanes() const { return shape().strideWidth > 2 && !description_.accumulate; }
  void clearAndSpread(const float* pixels, float* images, const TaskExecutor& executor) const {
    const Shape& s = shape();
    const std::ptrdiff_t dense = std::ptrdiff_t{s.outHeight} * s.outWidth, whole = std::ptrdiff_t{s.height} * s.width;
    executor.forEach(planes() * static_cast<std::size_t>(images_), [&](std::size_t index, int) {
      const auto plane = static_cast<std::ptrdiff_t>(index);
      float* const to = images + plane * whole;
      const float* from = pixels + plane * dense;
      std::memset(to, 0, static_cast<std::size_t>(whole) * sizeof(float));
      for (int y = 0; y < s.outHeight; ++y) {
        float* const line = to + std::ptrdiff_t{y} * s.strideHeight * s.width;
        for (int x = 0; x < s.outWidth; ++x) line[std::ptrdiff_t{x} * s.strideWidth] = *from++;
      }
    });
  }

  void spreadFloats(const float* pixels, float* images, const TaskExecutor& executor) const {
    if (clearsPlanes()) return clearAndSpread(pixels, images, executor);
    const Shape& s = shape();
    const std::ptrdiff_t step = s.strideWidth;
    forEachLine(s.height, executor, [&](std::ptrdiff_t plane, std::ptrdiff_t y) {
      float* const line = images + (plane * s.height + y) * s.width;
      const float* const from = pixels + (plane * s.outHeight + y / s.strideHeight) * s.outWidth;
      const bool isRead = y % s.strideHeight == 0;
      if (!description_.accumulate && !isRead) std::fill_n(line, s.width, 0.0F);
      if (!isRead) return;
      if (description_.accumulate) {
        for (std::ptrdiff_t x = 0; x < s.outWidth; ++x) line[x * step] += from[x];
      } else if (step == 2) {
        // The last pixel has perhaps none behind it.
        for (std::ptrdiff_t x = 0; x < s.width / 2; ++x) {
          line[2 * x] = from[x];
          line[2 * x + 1] = 0;
        }
        if (s.width % 2 != 0) line[s.width - 1] = from[s.width / 2];
      } else {
        for (std::ptrdiff_t x = 0; x < s.outWidth; ++x) line[x * step] = from[x];
      }
    });
  }

  void spread(const float* pixels, float* images, const TaskExecutor& executor) const {
    const Shape& s = shape();
    const std::ptrdiff_t ofPixel = pixel();
    if (ofPixel == 1) return spreadFloats(pixels, images, executor);
    withStores([&](const auto& copy, const auto& clear) {
      forEachLine(s.height, executor, [&](std::ptrdiff_t plane, std::ptrdiff_t y) {
        float* const line = images + (plane * s.height + y) * s.width * ofPixel;
        const float* from = pixels + (plane * s.outHeight + y / s.strideHeight) * s.outWidth * ofPixel;
        const int count = y % s.strideHeight == 0 ? s.outWidth : 0;
        if (description_.accumulate) {
          for (int x = 0; x < count; ++x, from += ofPixel) {
            float* const to = line + std::ptrdiff_t{x} * s.strideWidth * ofPixel;
            for (std::ptrdiff_t c = 0; c < ofPixel; ++c) to[c] += from[c];
          }
          return;
        }
        const auto clearBetween = [&](int first, int end) {
          for (int x = first; x < end; ++x) clear(line + x * ofPixel);
        };
        int column = 0;
        for (int x = 0; x < count; ++x, from += ofPixel) {
          copy(line + column * ofPixel, from);
          const int next = std::min(s.width, column + s.strideWidth);
          clearBetween(column + 1, next);
          column = next;
        }
        clearBetween(column, s.width);
      });
    });
  }

  Description description_;
  int images_;                       // at once
  std::unique_ptr<ConvPlan> first_;  // for the first ones
  std::unique_ptr<ConvPlan> later_;  // for the others, whose gradients of the weights are added to the first one's
};

/// Whether all pixels that a product reads fall on the same few places of the L1 cache: those of NHWC whose channels
/// take pages. More of them are read at once than there are such places, but by short sums, whose tiles have fewer.
bool fallOnEachOther(const Description& d) {
  constexpr int floatsOfPage = 1024;
  const bool isData = d.pass == taccConvBackwardData;
  const taccLayout_t layout = isData ? d.outputLayout : d.inputLayout;
  return layout == taccLayoutNhwc && (isData ? d.shape.outChannels : d.shape.inChannels) % floatsOfPage == 0 &&
         !haveShortSums(dense(d, false));
}

bool isStridedProduct(const Shape& s) {
  return s.kernelHeight == 1 && s.kernelWidth == 1 && (s.strideHeight > 1 || s.strideWidth > 1) && s.padHeight == 0 &&
         s.padWidth == 0;
}

}  // namespace

bool servesStridedProduct(const Description& d) {
  // The gradient of the input is spread out in whole blocks.
  const bool isData = servesDirectBackwardData(d) && hasWholeBlocks(d.inputLayout, d.shape.inChannels);
  return isStridedProduct(d.shape) && d.shape.groups == 1 && hasBlockSteps(d.inputLayout) && !fallOnEachOther(d) &&
         (servesDirectForward(d) || isData || servesDirectBackwardWeights(d));
}

bool servesStridedPlanes(const Description& d) {
  // Gradients of weights of groups are less than bringing pixels together costs.
  const bool isGradientOfGroups = d.pass == taccConvBackwardWeights && d.shape.groups > 1;
  // Forward, `planes` takes every second pixel of a channel's line as it goes.
  const bool isOfSingles = d.pass == taccConvForward && d.shape.inPerGroup() == 1 && d.shape.outPerGroup() == 1;
  return isStridedProduct(d.shape) && isOfPlanes(d) && !isGradientOfGroups && !isOfSingles;
}

std::unique_ptr<ConvPlan> makeStridedProduct(const Description& d, const KernelSet& kernels) {
  const bool isGradient = d.pass == taccConvBackwardWeights;
  return std::make_unique<StridedProduct>(d, makeDense(dense(d, isGradient && d.accumulate), kernels),
                                          isGradient ? makeDense(dense(d, true), kernels) : nullptr);
}

}  // namespace tacc::conv
