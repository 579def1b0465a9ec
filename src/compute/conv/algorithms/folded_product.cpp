// Backward to the data in NCHW on both sides, of kernels other than 1x1: a product of matrices whose rows are the taps
// of all input channels,
//
//   line[c, tap][pixels] = sum over output channels k of weights[k][c][tap] * outputGradient[k][pixels]
//
// and each line is added to where its tap has read the channel. Nothing is reordered, which pays where output channels
// are many.
#include <algorithm>
#include <cstring>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/plain_strips.hpp"
#include "compute/conv/algorithms/unfolding.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Weights that every strip of pixels reads again are to be near.
constexpr std::ptrdiff_t mostFoldedWeights = 1024 * 1024;

/// Of pixels that are computed before their lines are added: strips of any tile end with them. It is no matter of the
/// workers nor of the CPU at hand, as lines are added in this order.
constexpr std::ptrdiff_t pixelsOfFold = 96, floatsAtOnce = 128 * 1024;

class FoldedProduct final : public ConvPlan {
 public:
  FoldedProduct(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        unfolding_(d.shape),
        taps_(d.shape.kernelHeight * d.shape.kernelWidth),
        pixels_(std::ptrdiff_t{d.shape.outHeight} * d.shape.outWidth) {
    const std::ptrdiff_t lines = unfolding_.values() + std::ptrdiff_t{shape().outPerGroup()};
    pixelsAtOnce_ = std::clamp<std::ptrdiff_t>(floatsAtOnce / lines / pixelsOfFold, 1, 16) * pixelsOfFold;
    const auto products = static_cast<std::size_t>(d.shape.batch) * static_cast<std::size_t>(d.shape.groups);
    const auto channels = static_cast<std::size_t>(shape().inPerGroup());
    const auto workers = static_cast<std::size_t>(d.maxWorkers);
    const std::size_t parts = workers == 1 ? 1 : std::min(channels, (2 * workers + products - 1) / products);
    // Prices are of one worker.
    const PlainStrips whole(kernels, shape().outPerGroup(), unfolding_.values(), pixels_);
    const bool areHalves = areNearHalves(d.vectorLanes);
    cycles_ = whole.cycles() + (areHalves ? whole.cutLineCycles() : 0);
    for (std::size_t part = 0; part < parts; ++part) {
      const TaskPart some = partOf(channels, parts, part);
      parts_.push_back(
          {static_cast<int>(some.from), static_cast<int>(some.to - some.from),
           PlainStrips(kernels, shape().outPerGroup(), static_cast<int>(some.to - some.from) * taps_, pixels_),
           packedOfGroup_});
      packedOfGroup_ += parts_.back().product.packedFloats();
    }
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * workerFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override { return packedOfGroup_ * static_cast<std::size_t>(shape().groups); }
  double predictedSeconds() const override {
    // Of a line that is added: what is begun and ends, and a value.
    constexpr double ofAddedLine = 25, ofAddedPixel = 0.5, ofStridedPixel = 2;
    const Shape& s = shape();
    const double products = double(s.groups) * s.batch;
    const double lines = double(unfolding_.values()) * s.outHeight;
    const double added = lines * (ofAddedLine + s.outWidth * (s.strideWidth == 1 ? ofAddedPixel : ofStridedPixel));
    const double floats =
        double(s.outChannels) * static_cast<double>(pixels_) + 2.0 * s.inChannels * s.height * s.width;
    return std::max(products * (cycles_ + added), transferCycles(s.batch * floats * sizeof(float), 10)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (int group = 0; group < shape().groups; ++group) {
      for (const Part& part : parts_) {
        part.product.pack(packed, [&](int out, int row) {
          const int in = part.firstChannel + row / taps_, tap = row % taps_;
          const WeightBlock block = weightBlock(shape(), description_.weightLayout, group, out / blockLength,
                                                in / blockLength, tap / shape().kernelWidth, tap % shape().kernelWidth);
          return weights[block.base + out % blockLength * block.outStep + in % blockLength * block.inStep];
        });
        packed += part.product.packedFloats();
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto groups = static_cast<std::size_t>(shape().groups);
    const auto products = static_cast<std::size_t>(shape().batch) * groups;
    executor.forEach(products * parts_.size(), [&](std::size_t index, int worker) {
      const std::size_t product = index / parts_.size();
      const Part& part = parts_[index % parts_.size()];
      const auto at = static_cast<std::ptrdiff_t>(product);
      runPart(part, buffers.outputGradient + at * shape().outPerGroup() * pixels_,
              buffers.packedWeights + product % groups * packedOfGroup_ + part.packed,
              buffers.result + (at * shape().inPerGroup() + part.firstChannel) * plane(),
              static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * workerFloats());
    });
  }

 private:
  /// Of the input channels of a group.
  struct Part {
    int firstChannel, channels;
    PlainStrips product;
    std::size_t packed;  // where its weights begin
  };

  const Shape& shape() const { return description_.shape; }
  std::ptrdiff_t plane() const { return std::ptrdiff_t{shape().height} * shape().width; }
  std::ptrdiff_t line() const { return unfoldedLine(pixelsAtOnce_); }
  std::size_t scratchFloats() const {
    std::size_t most = 0;
    for (const Part& part : parts_) most = std::max(most, part.product.scratchFloats());
    return most;
  }
  std::size_t workerFloats() const { return scratchFloats() + static_cast<std::size_t>(unfolding_.values() * line()); }

  void runPart(const Part& part, const float* gradient, const float* packed, float* result, float* scratch) const {
    if (!description_.accumulate) {
      std::memset(result, 0, static_cast<std::size_t>(part.channels * plane()) * sizeof(float));
    }
    float* const lines = scratch + scratchFloats();
    const auto strips = static_cast<std::size_t>(pixelsAtOnce_ / part.product.stripPixels());
    for (std::size_t strip = 0; strip < part.product.strips(); strip += strips) {
      const TaskPart some{strip, std::min(part.product.strips(), strip + strips)};
      const auto first = static_cast<std::ptrdiff_t>(strip) * part.product.stripPixels();
      part.product.run({.read = gradient,
                        .readLine = pixels_,
                        .packed = packed,
                        .bias = nullptr,
                        .addend = nullptr,
                        .result = lines,
                        .resultLine = line(),
                        .activation = taccActivationNone,
                        .isNonTemporal = false,
                        .firstResult = first},
                       some, {0, part.product.tiles()}, scratch);
      unfolding_.addBack(lines, line(), first, std::min(pixelsAtOnce_, pixels_ - first), part.channels, result);
    }
  }

  Description description_;
  Unfolding unfolding_;
  int taps_;
  std::ptrdiff_t pixels_, pixelsAtOnce_ = 0;
  std::vector<Part> parts_;
  std::size_t packedOfGroup_ = 0;
  double cycles_ = 0;  // of the products of a group
};

}  // namespace

bool servesFoldedProduct(const Description& d) {
  return d.pass == taccConvBackwardData && isPlain(d) && !d.shape.isDepthwise() && !d.shape.isProduct() && !d.bias &&
         !d.residual && d.activation == taccActivationNone &&
         std::ptrdiff_t{d.shape.outChannels} * Unfolding(d.shape).values() <= mostFoldedWeights;
}

std::unique_ptr<ConvPlan> makeFoldedProduct(const Description& d, const KernelSet& kernels) {
  return std::make_unique<FoldedProduct>(d, kernels);
}

}  // namespace tacc::conv
