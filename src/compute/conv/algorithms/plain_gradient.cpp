// Gradient of the weights of convolutions of NCHW on both sides. The pixels of a channel follow each other in both
// tensors, so they are what vectors hold:
//
//   gradient[k][v] = sum over pixels of outputGradient[k][pixel] * input[v][pixel]
//
// Values v are channels, or, of kernels other than 1x1, the taps of all channels, for which pixels are copied
// (unfolding.hpp). Nothing is transposed; the lanes of a sum are added at last. Some pixels of all channels are gone
// through at a time: as many as the L2 cache keeps of the tensor of fewer channels. Where lines of channels do not
// begin with a line of the cache, and tiles read each of them many times, these pixels are copied so that they do.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/unfolding.hpp"
#include "compute/conv/core_model.hpp"
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
        unfolding_(d.shape),
        values_(unfolding_.values()),
        pixels_(std::ptrdiff_t{d.shape.outHeight} * d.shape.outWidth) {
    outTiles_ = tilesOf(outs(), kernels_.outs);
    inTiles_ = tilesOf(values_, kernels_.ins);
    const std::ptrdiff_t channels = isCopied() ? values_ + copiedOuts() : std::min(values_, outs());
    const std::ptrdiff_t most = std::max<std::ptrdiff_t>(16, floatsOfPart / channels / plainBlock) * plainBlock;
    atOnce_ = std::min(most, (pixels_ + plainBlock - 1) / plainBlock * plainBlock);
    // Lines a power of two apart would fall on each other in the L1 cache.
    copiedLine_ = atOnce_ % 256 == 0 ? atOnce_ + plainBlock : atOnce_;
    parts_ = balancedCut({static_cast<std::size_t>(d.shape.groups), outTiles_.size()},
                         static_cast<std::size_t>(d.maxWorkers))
                 .rowParts;
    cycles_ = cyclesOfImage(kernels);
  }

  /// Sums, and copied pixels for each worker.
  std::size_t workspaceBytes() const override {
    return (sumFloats() + static_cast<std::size_t>(description_.maxWorkers) * workerFloats()) * sizeof(float);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double floats =
        double(s.inChannels) * s.height * s.width + double(s.outChannels) * static_cast<double>(pixels_);
    const double delivered = 1.0 * static_cast<double>(sumFloats());
    const double bytes = floats * s.batch * sizeof(float);
    const double summed = (apartFactor(bytes) * cycles_ + lateCycles()) * s.groups * s.batch;
    return std::max(summed + delivered, transferCycles(bytes, 10)) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const sums = static_cast<float*>(buffers.workspace);
    executor.forEach(static_cast<std::size_t>(shape().groups) * parts_, [&](std::size_t index, int worker) {
      const TaskPart tiles = partOf(outTiles_.size(), parts_, index % parts_);
      float* const own = sums + sumFloats() + static_cast<std::size_t>(worker) * workerFloats();
      const auto group = static_cast<std::ptrdiff_t>(index / parts_);
      sumTiles(buffers, group, tiles, sums + group * outs() * values_, own);
    });
    clearGradient(buffers.result, description_.weightLayout, shape(), description_.accumulate);
    deliver(sums, buffers.result);
  }

 private:
  const Shape& shape() const { return description_.shape; }
  int outs() const { return shape().outPerGroup(); }
  std::size_t sumFloats() const {
    return static_cast<std::size_t>(roundUp(shape().outChannels * values_, blockLength));
  }
  /// Both tensors, so that their lines begin with a line of the cache.
  bool isCopied() const {
    constexpr std::size_t mostReads = 2;  // of the side of more channels, for which a copy does not pay
    return unfolding_.isNeeded() ||
           (pixels_ % plainBlock != 0 && std::min(outTiles_.size(), inTiles_.size()) > mostReads);
  }
  std::size_t workerFloats() const {
    return isCopied() ? static_cast<std::size_t>((std::ptrdiff_t{values_} + copiedOuts()) * copiedLine_) : 0;
  }
  /// Whether all of the input goes by for a tile of outputs, or the other way round: the side of more lines is read
  /// once.
  bool goesByOutputs() const { return values_ <= outs(); }
  /// Lines of the gradient that are copied at a time.
  int copiedOuts() const { return goesByOutputs() ? kernels_.outs : outs(); }

  /// Of a group's image: copies that the L2 cache does not keep, beside what is copied, until they are multiplied. Few
  /// outputs, as groups have, do not hide that.
  double lateCycles() const {
    constexpr double bytesOfCycle = 12, hidden = 0.1;
    if (!unfolding_.isNeeded() || !areNearHalves(description_.vectorLanes)) return 0;
    const double copied = double(values_) * static_cast<double>(pixels_) * sizeof(float);
    const std::ptrdiff_t atOnce = (values_ + copiedOuts() + shape().inPerGroup() + outs()) * atOnce_;
    if (staysInL2(static_cast<std::size_t>(atOnce) * sizeof(float))) return 0;
    return std::max(0.0, copied / bytesOfCycle - hidden * cycles_);
  }

  /// How much longer short vectors take for planes of several pages, parts of which are gone through for all channels,
  /// of tensors of so many bytes. What comes from memory is waited for anyway.
  double apartFactor(double bytes) const {
    constexpr std::ptrdiff_t pixelsOfPage = 1024;
    const bool isShort = areNearHalves(description_.vectorLanes) && bytes <= coreModel().lastCacheBytes / 2;
    return isShort && !isCopied() && pixels_ > pixelsOfPage ? 1.25 : 1;
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
    const double channels = double(unfolding_.isNeeded() ? 0 : values_) + outs();
    double cycles = !isCopied() ? 0
                                : unfolding_.cycles(atOnce_) + channels * (ofCopiedLine * static_cast<double>(calls) +
                                                                           ofCopiedBlock * static_cast<double>(blocks));
    // Lines of channels that begin anywhere are parts of two lines of the cache.
    const double ofLoad = isCopied() || pixels_ % plainBlock == 0 ? 0.55 : 0.9;
    for (const TaskPart& out : outTiles_) {
      for (const TaskPart& in : inTiles_) {
        const auto outs = static_cast<int>(out.to - out.from), ins = static_cast<int>(in.to - in.from);
        const double vectors = double(plainBlock) / kernels.fmaLanes;
        const double step =
            std::max({productCycles(kernels, 1, outs * ins), latencyCycles * vectors, vectors * (outs + ins) * ofLoad});
        cycles += static_cast<double>(blocks) * (step + 0.5 * vectors) +
                  static_cast<double>(calls) * (ofTile + ofSum * outs * ins);
      }
    }
    return cycles;
  }

  /// Of a group of all images, for some tiles of output channels: in the same order for any number of workers.
  void sumTiles(const Buffers& buffers, std::ptrdiff_t group, TaskPart tiles, float* sums, float* own) const {
    const Shape& s = shape();
    const auto firstOut = static_cast<std::ptrdiff_t>(outTiles_[tiles.from].from);
    const auto endOut = static_cast<std::ptrdiff_t>(outTiles_[tiles.to - 1].to);
    std::fill_n(sums + firstOut * values_, (endOut - firstOut) * values_, 0.0F);
    for (std::ptrdiff_t image = 0; image < s.batch; ++image) {
      const std::ptrdiff_t product = image * s.groups + group;
      const float* const input = buffers.input + product * s.inPerGroup() * s.height * s.width;
      const float* const gradient = buffers.outputGradient + product * outs() * pixels_;
      for (std::ptrdiff_t pixel = 0; pixel < pixels_; pixel += atOnce_) {
        const std::ptrdiff_t count = std::min(atOnce_, pixels_ - pixel);
        if (isCopied()) {
          sumCopied(input, gradient, pixel, count, tiles, sums, own);
        } else {
          sumPixels({input + pixel, gradient + pixel, 0, pixels_, count}, tiles, sums);
        }
      }
    }
  }

  void sumCopied(const float* input, const float* gradient, std::ptrdiff_t pixel, std::ptrdiff_t count, TaskPart tiles,
                 float* sums, float* own) const {
    const std::ptrdiff_t whole = (count + plainBlock - 1) / plainBlock * plainBlock;
    float* const copied = own + values_ * copiedLine_;
    copyInput(input, pixel, count, own, whole);
    const std::size_t together = goesByOutputs() ? 1 : tiles.to - tiles.from;
    for (std::size_t tile = tiles.from; tile < tiles.to; tile += together) {
      const auto first = static_cast<std::ptrdiff_t>(outTiles_[tile].from);
      const auto end = static_cast<std::ptrdiff_t>(outTiles_[tile + together - 1].to);
      for (std::ptrdiff_t k = first; k < end; ++k) {
        copyPixels(gradient + k * pixels_ + pixel, count, copied + (k - first) * copiedLine_, whole);
      }
      sumPixels({own, copied, first, copiedLine_, whole}, {tile, tile + together}, sums);
    }
  }

  void copyInput(const float* input, std::ptrdiff_t pixel, std::ptrdiff_t count, float* to,
                 std::ptrdiff_t whole) const {
    if (!unfolding_.isNeeded()) {
      for (std::ptrdiff_t c = 0; c < values_; ++c)
        copyPixels(input + c * pixels_ + pixel, count, to + c * copiedLine_, whole);
      return;
    }
    unfolding_.copy(input, pixel, count, to, copiedLine_);
    for (std::ptrdiff_t v = 0; v < values_; ++v) {
      std::fill(to + v * copiedLine_ + count, to + v * copiedLine_ + whole, 0.0F);
    }
  }

  /// And zeros behind them.
  static void copyPixels(const float* from, std::ptrdiff_t count, float* to, std::ptrdiff_t whole) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    std::fill(to + count, to + whole, 0.0F);
  }

  /// Lines of pixels of both tensors, of the first value and output `firstOut`.
  struct Lines {
    const float* input;
    const float* gradient;
    std::ptrdiff_t firstOut;
    std::ptrdiff_t line, pixels;
  };

  void sumPixels(const Lines& lines, TaskPart tiles, float* sums) const {
    PlainGradientCall call{};
    call.inputLine = call.gradientLine = lines.line;
    call.pixels = static_cast<int>(lines.pixels);
    call.outputLine = values_;
    const auto run = [&](const TaskPart& outs, const TaskPart& ins) {
      call.gradient = lines.gradient + (static_cast<std::ptrdiff_t>(outs.from) - lines.firstOut) * lines.line;
      call.input = lines.input + static_cast<std::ptrdiff_t>(ins.from) * lines.line;
      call.output = sums + static_cast<std::ptrdiff_t>(outs.from) * call.outputLine + ins.from;
      kernels_.gradient[outs.to - outs.from][ins.to - ins.from](call);
    };
    const std::span some = std::span(outTiles_).subspan(tiles.from, tiles.to - tiles.from);
    if (goesByOutputs()) {
      for (const TaskPart& out : some) {
        for (const TaskPart& in : inTiles_) run(out, in);
      }
    } else {
      for (const TaskPart& in : inTiles_) {
        for (const TaskPart& out : some) run(out, in);
      }
    }
  }

  /// Sums are in the order of KCRS.
  void deliver(const float* sums, float* result) const {
    const Shape& s = shape();
    const std::ptrdiff_t floats = std::ptrdiff_t{s.outChannels} * values_;
    if (description_.weightLayout == taccWeightsKcrs) {
      if (description_.accumulate) {
        for (std::ptrdiff_t i = 0; i < floats; ++i) result[i] += sums[i];
      } else {
        std::memcpy(result, sums, static_cast<std::size_t>(floats) * sizeof(float));
      }
      return;
    }
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
  Unfolding unfolding_;
  int values_;  // that a group's outputs are sums of
  std::ptrdiff_t pixels_;
  std::vector<TaskPart> outTiles_, inTiles_;
  std::ptrdiff_t atOnce_;      // pixels
  std::ptrdiff_t copiedLine_;  // from channel to channel of copied pixels
  double cycles_ = 0;          // of an image
  std::size_t parts_ = 1;      // of the tiles of output channels
};

}  // namespace

bool servesPlainGradient(const Description& d) {
  const bool isOneTap = d.shape.isProduct() && d.shape.groups == 1;
  return d.pass == taccConvBackwardWeights && isPlain(d) && !d.shape.isDepthwise() &&
         (isOneTap || d.weightLayout == taccWeightsKcrs) &&
         std::ptrdiff_t{d.shape.outChannels} * Unfolding(d.shape).values() <= mostGradients;
}

std::unique_ptr<ConvPlan> makePlainGradient(const Description& d, const KernelSet& kernels) {
  return std::make_unique<PlainGradient>(d, kernels);
}

}  // namespace tacc::conv
