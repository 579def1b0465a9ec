// Convolutions of NCHW on both sides as products of matrices: 1x1, forward and backward to the data, as they lie in
// memory, and forward others too. The pixels of a channel follow each other, so they take the place that output
// channels have elsewhere:
//
//   output[k][pixels] = sum over values v of weights[k][v] * input[v][pixels]
//
// Values are channels, or, of other kernels, the taps of all channels, for which some pixels at a time are copied
// (unfolding.hpp). So nothing is reordered, which pays where results are many for what is copied.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/plain_strips.hpp"
#include "compute/conv/algorithms/unfolding.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Weights that every strip of pixels reads again are to be near.
constexpr std::ptrdiff_t mostWeights = 1024 * 1024;

class PlainProduct final : public ConvPlan {
 public:
  PlainProduct(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        isForward_(d.pass == taccConvForward),
        unfolding_(d.shape),
        values_(isForward_ ? unfolding_.values() : d.shape.outPerGroup()),
        results_(isForward_ ? d.shape.outPerGroup() : d.shape.inPerGroup()),
        pixels_(std::ptrdiff_t{d.shape.outHeight} * d.shape.outWidth),
        product_(kernels, values_, results_, pixels_),
        copiedPixels_(product_.stripsTogether() * product_.stripPixels()) {
    const auto products = static_cast<std::size_t>(d.shape.batch) * static_cast<std::size_t>(d.shape.groups);
    parts_ = balancedCut({products, product_.strips()}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * workerFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return product_.packedFloats() * static_cast<std::size_t>(shape().groups);
  }
  double predictedSeconds() const override {
    const double products = double(shape().groups) * shape().batch;
    const double bytes = products * static_cast<double>(readFloats() + results_ * pixels_) * sizeof(float);
    const bool areHalves = areNearHalves(description_.vectorLanes);
    const double ofCutLines = areHalves && !unfolding_.isNeeded() ? product_.cutLineCycles() : 0;
    const double cycles = products * (product_.cycles() + ofCutLines + unfolding_.cycles(copiedPixels_));
    return std::max(cycles, transferCycles(bytes, 10)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    const int taps = shape().kernelHeight * shape().kernelWidth;
    for (int group = 0; group < shape().groups; ++group, packed += product_.packedFloats()) {
      product_.pack(packed, [&](int value, int row) {
        const int out = isForward_ ? row : value;
        const int in = isForward_ ? value / taps : row;
        const int tap = isForward_ ? value % taps : 0;
        const WeightBlock block = weightBlock(shape(), description_.weightLayout, group, out / blockLength,
                                              in / blockLength, tap / shape().kernelWidth, tap % shape().kernelWidth);
        return weights[block.base + out % blockLength * block.outStep + in % blockLength * block.inStep];
      });
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto groups = static_cast<std::size_t>(shape().groups);
    const auto products = static_cast<std::size_t>(shape().batch) * groups;
    executor.forEach(products * parts_, [&](std::size_t index, int worker) {
      const std::size_t product = index / parts_, group = product % groups;
      const auto at = static_cast<std::ptrdiff_t>(product) * results_ * pixels_;
      const float* const addend = description_.residual     ? buffers.residual + at
                                  : description_.accumulate ? buffers.result + at
                                                            : nullptr;
      const bool isNonTemporal = isNonTemporalResult(description_) && addend == nullptr && pixels_ % plainBlock == 0 &&
                                 isAligned(buffers.result);
      const float* const from = isForward_ ? buffers.input : buffers.outputGradient;
      float* const scratch = static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * workerFloats();
      runStrips({.read = from + static_cast<std::ptrdiff_t>(product) * readFloats(),
                 .readLine = pixels_,
                 .packed = buffers.packedWeights + group * product_.packedFloats(),
                 .bias = description_.bias ? buffers.bias + group * static_cast<std::size_t>(results_) : nullptr,
                 .addend = addend,
                 .result = buffers.result + at,
                 .resultLine = pixels_,
                 .activation = description_.activation,
                 .isNonTemporal = isNonTemporal},
                partOf(product_.strips(), parts_, index % parts_), scratch);
      if (isNonTemporal) endNonTemporal();
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  /// Of what a product reads, before it is copied.
  std::ptrdiff_t readFloats() const {
    return isForward_ ? std::ptrdiff_t{shape().inPerGroup()} * shape().height * shape().width : values_ * pixels_;
  }
  std::size_t workerFloats() const {
    const std::ptrdiff_t copied = unfolding_.isNeeded() ? values_ * unfoldedLine(copiedPixels_) : 0;
    return product_.scratchFloats() + static_cast<std::size_t>(copied);
  }

  /// `m` reads channels, of which some strips at a time are copied.
  void runStrips(PlainStrips::Matrices m, TaskPart strips, float* scratch) const {
    if (!unfolding_.isNeeded()) {
      product_.run(m, strips, {0, product_.tiles()}, scratch);
      return;
    }
    const float* const channels = m.read;
    float* const copied = scratch + product_.scratchFloats();
    m.read = copied;
    m.readLine = unfoldedLine(copiedPixels_);
    const auto together = static_cast<std::size_t>(product_.stripsTogether());
    for (std::size_t strip = strips.from; strip < strips.to; strip += together) {
      const TaskPart some{strip, std::min(strips.to, strip + together)};
      m.firstRead = static_cast<std::ptrdiff_t>(strip) * product_.stripPixels();
      const auto end = std::min(pixels_, static_cast<std::ptrdiff_t>(some.to) * product_.stripPixels());
      unfolding_.copy(channels, m.firstRead, end - m.firstRead, copied, m.readLine);
      product_.run(m, some, {0, product_.tiles()}, scratch);
    }
  }

  Description description_;
  bool isForward_;
  Unfolding unfolding_;
  int values_, results_;  // of a group: what is summed over, and the channels that are written
  std::ptrdiff_t pixels_;
  PlainStrips product_;
  std::ptrdiff_t copiedPixels_;  // at a time
  std::size_t parts_ = 1;        // of the strips of a group of an image
};

}  // namespace

bool servesPlainProduct(const Description& d) {
  return d.pass != taccConvBackwardWeights && isPlain(d) && !d.shape.isDepthwise() &&
         (d.pass == taccConvForward || d.shape.isProduct()) &&
         std::ptrdiff_t{d.shape.outChannels} * Unfolding(d.shape).values() <= mostWeights;
}

std::unique_ptr<ConvPlan> makePlainProduct(const Description& d, const KernelSet& kernels) {
  return std::make_unique<PlainProduct>(d, kernels);
}

}  // namespace tacc::conv
