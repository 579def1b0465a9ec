// Gradient of the weights of 1x1 convolutions of NCHW on both sides. The pixels of a channel follow each other in both
// tensors, so they are what vectors hold:
//
//   gradient[k][c] = sum over pixels of outputGradient[k][pixel] * input[c][pixel]
//
// Nothing is transposed; the lanes of a sum are added at last. Some pixels of all channels are gone through at a time:
// as many as the L2 cache keeps of the tensor of fewer channels. Where lines of channels do not begin with a line of
// the cache, these pixels are copied so that they do: a tile reads each of them many times.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/kernels/plain_kernels.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Of the tensor of fewer channels, which every tile of the other one reads again, or of both where they are copied. It
/// is no matter of the CPU at hand: pixels are summed in this order.
constexpr std::ptrdiff_t floatsOfPart = 192 * 1024;
/// Sums are written again for every part of the pixels.
constexpr std::ptrdiff_t mostGradients = 256 * 1024;

class PlainGradient final : public ConvPlan {
 public:
  PlainGradient(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        kernels_(plainKernels(kernels)),
        pixels_(std::ptrdiff_t{d.shape.height} * d.shape.width) {
    outTiles_ = tilesOf(shape().outChannels, kernels_.outs);
    inTiles_ = tilesOf(shape().inChannels, kernels_.ins);
    const std::ptrdiff_t ins = shape().inChannels, outs = shape().outChannels;
    const std::ptrdiff_t channels = isCopied() ? ins + outs : std::min(ins, outs);
    const std::ptrdiff_t most = std::max<std::ptrdiff_t>(16, floatsOfPart / channels / plainBlock) * plainBlock;
    atOnce_ = std::min(most, (pixels_ + plainBlock - 1) / plainBlock * plainBlock);
    // Lines a power of two apart would fall on each other in the L1 cache.
    copiedLine_ = atOnce_ % 256 == 0 ? atOnce_ + plainBlock : atOnce_;
    parts_ = balancedCut({1, outTiles_.size()}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
    cycles_ = cyclesOfImage(kernels);
  }

  /// Sums, and copied pixels for each worker.
  std::size_t workspaceBytes() const override {
    return (sumFloats() + static_cast<std::size_t>(description_.maxWorkers) * workerFloats()) * sizeof(float);
  }
  double predictedSeconds() const override {
    const double channels = double(shape().inChannels) + shape().outChannels;
    const double bytes = channels * static_cast<double>(pixels_) * shape().batch * sizeof(float);
    const double delivered = 1.0 * static_cast<double>(sumFloats());
    return std::max(cycles_ * shape().batch + delivered, transferCycles(bytes, 10)) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const sums = static_cast<float*>(buffers.workspace);
    executor.forEach(parts_, [&](std::size_t index, int worker) {
      const TaskPart tiles = partOf(outTiles_.size(), parts_, index);
      float* const own = sums + sumFloats() + static_cast<std::size_t>(worker) * workerFloats();
      sumTiles(buffers, tiles, sums, own);
    });
    clearGradient(buffers.result, description_.weightLayout, shape(), description_.accumulate);
    deliver(sums, buffers.result);
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::size_t sumFloats() const {
    return static_cast<std::size_t>(roundUp(shape().outChannels * shape().inChannels, blockLength));
  }
  bool isCopied() const { return pixels_ % plainBlock != 0; }
  std::size_t workerFloats() const {
    const std::ptrdiff_t channels = std::ptrdiff_t{shape().inChannels} + shape().outChannels;
    return isCopied() ? static_cast<std::size_t>(channels * copiedLine_) : 0;
  }

  static std::vector<TaskPart> tilesOf(int channels, int most) {
    const auto count = static_cast<std::size_t>(ceilDivide(channels, most));
    std::vector<TaskPart> tiles;
    for (std::size_t t = 0; t < count; ++t) tiles.push_back(partOf(static_cast<std::size_t>(channels), count, t));
    return tiles;
  }

  double cyclesOfImage(const KernelSet& kernels) const {
    // A tile's sums are added across their lanes, and to memory; and a vector of pixels is loaded for each channel.
    // Cores with two wide units do much of that beside the next tile's products.
    constexpr double ofTile = 40, ofCopiedLine = 12, ofCopiedBlock = 4;
    const double ofSum = hasTwoWideUnits(kernels) ? 5 : 8;
    const std::ptrdiff_t blocks = (pixels_ + plainBlock - 1) / plainBlock;
    const std::ptrdiff_t calls = (pixels_ + atOnce_ - 1) / atOnce_;
    const double channels = double(shape().inChannels) + shape().outChannels;
    double cycles =
        !isCopied()
            ? 0
            : channels * (ofCopiedLine * static_cast<double>(calls) + ofCopiedBlock * static_cast<double>(blocks));
    for (const TaskPart& out : outTiles_) {
      for (const TaskPart& in : inTiles_) {
        const auto outs = static_cast<int>(out.to - out.from), ins = static_cast<int>(in.to - in.from);
        const double vectors = double(plainBlock) / kernels.fmaLanes;
        const double step = std::max(
            {productCycles(kernels, 1, outs * ins), latencyCycles * vectors, vectors * (outs + ins) / 2 * 1.1});
        cycles += static_cast<double>(blocks) * (step + 0.5 * vectors) +
                  static_cast<double>(calls) * (ofTile + ofSum * outs * ins);
      }
    }
    return cycles;
  }

  /// Of all images, for some tiles of output channels: in the same order for any number of workers.
  void sumTiles(const Buffers& buffers, TaskPart tiles, float* sums, float* own) const {
    const std::ptrdiff_t ins = shape().inChannels;
    const auto firstOut = static_cast<std::ptrdiff_t>(outTiles_[tiles.from].from);
    const auto endOut = static_cast<std::ptrdiff_t>(outTiles_[tiles.to - 1].to);
    std::fill_n(sums + firstOut * ins, (endOut - firstOut) * ins, 0.0F);
    float* const gradients = own + ins * copiedLine_;
    for (std::ptrdiff_t image = 0; image < shape().batch; ++image) {
      const float* const input = buffers.input + image * ins * pixels_;
      const float* const gradient = buffers.outputGradient + image * shape().outChannels * pixels_;
      for (std::ptrdiff_t pixel = 0; pixel < pixels_; pixel += atOnce_) {
        const std::ptrdiff_t count = std::min(atOnce_, pixels_ - pixel);
        if (!isCopied()) {
          sumPixels(input + pixel, gradient + pixel, pixels_, count, tiles, sums);
          continue;
        }
        const std::ptrdiff_t whole = (count + plainBlock - 1) / plainBlock * plainBlock;
        for (std::ptrdiff_t c = 0; c < ins; ++c)
          copyPixels(input + c * pixels_ + pixel, count, own + c * copiedLine_, whole);
        for (std::ptrdiff_t k = firstOut; k < endOut; ++k)
          copyPixels(gradient + k * pixels_ + pixel, count, gradients + k * copiedLine_, whole);
        sumPixels(own, gradients, copiedLine_, whole, tiles, sums);
      }
    }
  }

  /// And zeros behind them.
  static void copyPixels(const float* from, std::ptrdiff_t count, float* to, std::ptrdiff_t whole) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    std::fill(to + count, to + whole, 0.0F);
  }

  void sumPixels(const float* input, const float* gradient, std::ptrdiff_t line, std::ptrdiff_t pixels, TaskPart tiles,
                 float* sums) const {
    PlainGradientCall call{};
    call.inputLine = call.gradientLine = line;
    call.pixels = static_cast<int>(pixels);
    call.outputLine = shape().inChannels;
    const auto run = [&](const TaskPart& outs, const TaskPart& ins) {
      call.gradient = gradient + static_cast<std::ptrdiff_t>(outs.from) * line;
      call.input = input + static_cast<std::ptrdiff_t>(ins.from) * line;
      call.output = sums + static_cast<std::ptrdiff_t>(outs.from) * call.outputLine + ins.from;
      kernels_.gradient[outs.to - outs.from][ins.to - ins.from](call);
    };
    const std::span outs = std::span(outTiles_).subspan(tiles.from, tiles.to - tiles.from);
    if (shape().inChannels <= shape().outChannels) {
      for (const TaskPart& out : outs) {
        for (const TaskPart& in : inTiles_) run(out, in);
      }
    } else {
      for (const TaskPart& in : inTiles_) {
        for (const TaskPart& out : outs) run(out, in);
      }
    }
  }

  void deliver(const float* sums, float* result) const {
    const Shape& s = shape();
    for (int outBlock = 0; outBlock < s.outBlocks(); ++outBlock) {
      for (int inBlock = 0; inBlock < s.inBlocks(); ++inBlock) {
        const WeightBlock block = weightBlock(s, description_.weightLayout, 0, outBlock, inBlock, 0, 0);
        const std::ptrdiff_t at = (std::ptrdiff_t{outBlock} * s.inChannels + inBlock) * blockLength;
        deliverBlock(block, sums + at, s.inChannels, description_.accumulate, result);
      }
    }
  }

  Description description_;
  const PlainKernels& kernels_;
  std::ptrdiff_t pixels_;
  std::vector<TaskPart> outTiles_, inTiles_;
  std::ptrdiff_t atOnce_;      // pixels
  std::ptrdiff_t copiedLine_;  // from channel to channel of copied pixels
  double cycles_ = 0;          // of an image
  std::size_t parts_ = 1;      // of the tiles of output channels
};

}  // namespace

bool servesPlainGradient(const Description& d) {
  return d.pass == taccConvBackwardWeights && isPlainProduct(d) &&
         std::ptrdiff_t{d.shape.inChannels} * d.shape.outChannels <= mostGradients;
}

std::unique_ptr<ConvPlan> makePlainGradient(const Description& d, const KernelSet& kernels) {
  return std::make_unique<PlainGradient>(d, kernels);
}

}  // namespace tacc::conv
