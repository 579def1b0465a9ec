// Backward to the data where the output has few pixels and the kernel many taps, as in 7x7 kernels over images of 8x8
// without padding. Each pixel of the result sees a few of the taps, others than its neighbours do, so tiles of results
// read weights for a pixel or two. Here every pixel of the output's gradient is multiplied by all taps of a block of
// input channels, and each pixel of the result is the sum of those that its taps find. Pixels of several images are one
// line, so each weight is read once for all of them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/batch_parts.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/weights.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

/// Products of a block of channels, all taps, are added from the caches.
constexpr std::size_t bytesOfProducts = 192 * 1024;
/// More pixels at once read weights no more rarely.
constexpr std::size_t mostPixels = 256;
/// For adding a vector of products, beside what a tap of a pixel costs, and for a pixel of the result.
constexpr double cyclesOfAddition = 0.5, cyclesOfTap = 0.5, cyclesOfPixel = 5;
/// Products go to the L2 cache, which is not hidden altogether.
constexpr double timesStored = 1.04;

int gradientPixels(const Shape& s) { return s.outHeight * s.outWidth; }
int tapCount(const Shape& s) { return s.kernelHeight * s.kernelWidth; }

int imagesAtOnce(const Shape& s) {
  const auto pixels = static_cast<std::size_t>(gradientPixels(s)), taps = static_cast<std::size_t>(tapCount(s));
  return imagesOfPart(s.batch, pixels, std::min(mostPixels, bytesOfProducts / (taps * blockLength * sizeof(float))));
}

/// All taps of a block of channels, each as a block of results, for the pixels of some images.
DirectShape productShape(const Shape& s, int images) {
  DirectShape c{};
  for (int left = s.outChannels; left > 0; left -= blockLength) c.inCounts.push_back(std::min(left, blockLength));
  c.inHeight = c.outHeight = 1;
  c.inWidth = c.outWidth = images * gradientPixels(s);
  c.inPixel = c.outPixel = blockLength;
  c.inLine = c.outLine = c.inPlane = c.outPlane = std::ptrdiff_t{c.inWidth} * blockLength;
  c.outBlocks = tapCount(s);
  c.strideHeight = c.strideWidth = 1;
  c.taps = {{0, 0}};
  c.weightBytes = double(s.inBlocks()) * tapCount(s) * s.outChannels * blockLength * sizeof(float);
  return c;
}

/// Lines of an image, or columns.
struct Dimension {
  int pixels, gradientPixels, taps, stride, dilation, pad;
};

/// Where the products of each line, or column, of the result are, in floats.
struct TapPlaces {
  std::vector<std::int32_t> starts{0}, places;
};

/// Products of a tap are `ofTap` floats behind those of the one before, those of a pixel of the gradient `ofPixel`.
TapPlaces placesOf(const Dimension& d, std::ptrdiff_t ofTap, std::ptrdiff_t ofPixel) {
  TapPlaces result;
  for (int i = 0; i < d.pixels; ++i) {
    for (int tap = 0; tap < d.taps; ++tap) {
      const int at = i + d.pad - tap * d.dilation;
      if (at < 0 || at % d.stride != 0 || at / d.stride >= d.gradientPixels) continue;
      result.places.push_back(static_cast<std::int32_t>(tap * ofTap + at / d.stride * ofPixel));
    }
    result.starts.push_back(static_cast<std::int32_t>(result.places.size()));
  }
  return result;
}

class TapScatter final : public ConvPlan {
 public:
  TapScatter(const Description& d, const KernelSet& kernels, int images, DirectDriver driver)
      : ConvPlan(std::string(kernels.vectors) + " " + driver.tileName()),
        description_(d),
        images_(images),
        vectors_(blockLength / kernels.fmaLanes),
        driver_(std::move(driver)),
        sums_(layers::kernelTable(kernels.vectors)),
        isNonTemporal_(isNonTemporalResult(d)),
        lines_(placesOf({shape().height, shape().outHeight, shape().kernelHeight, shape().strideHeight,
                         shape().dilationHeight, shape().padHeight},
                        shape().kernelWidth * productPlane(), std::ptrdiff_t{shape().outWidth} * blockLength)),
        columns_(placesOf({shape().width, shape().outWidth, shape().kernelWidth, shape().strideWidth,
                           shape().dilationWidth, shape().padWidth},
                          productPlane(), blockLength)) {}

  std::size_t workspaceBytes() const override {
    return (copyFloats() + static_cast<std::size_t>(description_.maxWorkers) * productFloats()) * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return driver_.packedFloats() * static_cast<std::size_t>(shape().inBlocks());
  }
  double predictedSeconds() const override {
    const double parts = double(shape().batch) / images_ * shape().inBlocks();
    const double products = double(images_) * gradientPixels(shape()) * tapCount(shape());
    const double pixels = double(images_) * shape().height * shape().width;
    const double copied = images_ == 1 ? 0 : 4.0 * gradientPixels(shape()) * shape().outBlocks() * shape().batch;
    const double added = products * (cyclesOfTap + cyclesOfAddition * vectors_) + pixels * cyclesOfPixel;
    const double bytes = sizeof(float) * pixels * blockLength * parts;
    const double computed = parts * (timesStored * driver_.cycles() + added) + copied;
    // Whole lines of an image one after the other, which are stored while others are summed.
    if (hasFarCaches() && isNonTemporal_) return overlappedCycles(computed, streamedCycles(bytes, 14)) / assumedHertz;
    return (computed + (hasFarCaches() ? transferCycles(bytes, 8) : 0)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (int inBlock = 0; inBlock < shape().inBlocks(); ++inBlock) {
      driver_.pack(packed + static_cast<std::size_t>(inBlock) * driver_.packedFloats(),
                   [&](float* to, int tap, int outBlock, int, int value) {
                     const WeightBlock block = weightBlock(shape(), description_.weightLayout, 0, outBlock, inBlock,
                                                           tap / shape().kernelWidth, tap % shape().kernelWidth);
                     for (int in = 0; in < blockLength; ++in) {
                       to[in] = in < block.ins ? weights[block.base + value * block.outStep + in * block.inStep] : 0.0F;
                     }
                   });
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto parts = static_cast<std::size_t>(shape().batch / images_);
    auto* const copies = static_cast<float*>(buffers.workspace);
    if (images_ > 1) {
      executor.forEach(parts, [&](std::size_t part, int) { copyGradient(buffers.outputGradient, part, copies); });
    }
    const auto blocks = static_cast<std::size_t>(shape().inBlocks());
    executor.forEach(parts * blocks, [&](std::size_t index, int worker) {
      float* const products = copies + copyFloats() + static_cast<std::size_t>(worker) * productFloats();
      const std::size_t part = index / blocks, block = index % blocks;
      multiply(buffers, images_ > 1 ? copies : buffers.outputGradient, part, block, products);
      for (int image = 0; image < images_; ++image) {
        const std::size_t to =
            (part * static_cast<std::size_t>(images_) + static_cast<std::size_t>(image)) * blocks + block;
        float* const result = buffers.result + static_cast<std::ptrdiff_t>(to) * shape().inPlane();
        deliver(products + std::ptrdiff_t{image} * gradientPixels(shape()) * blockLength, result);
      }
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::size_t gradientFloats() const {
    return static_cast<std::size_t>(images_) * static_cast<std::size_t>(shape().outBlocks()) *
           static_cast<std::size_t>(shape().outPlane());
  }
  /// Of the whole output's gradient, in the order of the products' lines.
  std::size_t copyFloats() const {
    return images_ == 1 ? 0 : gradientFloats() * static_cast<std::size_t>(shape().batch / images_);
  }
  std::ptrdiff_t productPlane() const { return std::ptrdiff_t{images_} * shape().outPlane(); }
  std::size_t productFloats() const {
    return static_cast<std::size_t>(productPlane()) * static_cast<std::size_t>(tapCount(shape()));
  }

  void copyGradient(const float* gradient, std::size_t part, float* copies) const {
    const auto plane = static_cast<std::size_t>(shape().outPlane());
    const auto blocks = static_cast<std::size_t>(shape().outBlocks()), images = static_cast<std::size_t>(images_);
    const float* const from = gradient + part * gradientFloats();
    float* const to = copies + part * gradientFloats();
    for (std::size_t image = 0; image < images; ++image) {
      for (std::size_t block = 0; block < blocks; ++block) {
        std::memcpy(to + (block * images + image) * plane, from + (image * blocks + block) * plane,
                    plane * sizeof(float));
      }
    }
  }

  void multiply(const Buffers& buffers, const float* gradient, std::size_t part, std::size_t block,
                float* products) const {
    driver_.run({.input = gradient + part * gradientFloats(),
                 .packed = buffers.packedWeights + block * driver_.packedFloats(),
                 .bias = nullptr,
                 .addend = nullptr,
                 .output = products,
                 .images = 1,
                 .inImage = 0,
                 .outImage = 0,
                 .firstTile = 0,
                 .endTile = driver_.tiles(),
                 .firstGroup = 0,
                 .endGroup = driver_.groups().size(),
                 .activation = taccActivationNone});
  }

  /// A block of channels of an image's result from the products of its pixels.
  void deliver(const float* products, float* result) const {
    sums_.sumTaps({.products = products,
                   .lineStarts = lines_.starts.data(),
                   .linePlaces = lines_.places.data(),
                   .columnStarts = columns_.starts.data(),
                   .columnPlaces = columns_.places.data(),
                   .result = result,
                   .height = shape().height,
                   .width = shape().width,
                   .adds = description_.accumulate,
                   .isNonTemporal = isNonTemporal_});
  }

  Description description_;
  int images_;   // whose pixels are one line
  int vectors_;  // of a block
  DirectDriver driver_;
  const layers::LayerKernels& sums_;
  bool isNonTemporal_;
  TapPlaces lines_, columns_;
};

}  // namespace

bool servesTapScatter(const Description& d) {
  const Shape& s = d.shape;
  // The products of an image are added where they still are; large images have pixels enough for tiles of results.
  const auto products = static_cast<std::size_t>(gradientPixels(s)) * static_cast<std::size_t>(tapCount(s));
  return d.pass == taccConvBackwardData && s.groups == 1 && tapCount(s) > 1 && d.inputLayout == taccLayoutNchw16c &&
         d.outputLayout == taccLayoutNchw16c && staysInL2(products * blockLength * sizeof(float));
}

std::unique_ptr<ConvPlan> makeTapScatter(const Description& d, const KernelSet& kernels) {
  const int images = imagesAtOnce(d.shape);
  return std::make_unique<TapScatter>(d, kernels, images, DirectDriver(productShape(d.shape, images), kernels));
}

}  // namespace tacc::conv
