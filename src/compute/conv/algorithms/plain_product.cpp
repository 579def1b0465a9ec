// 1x1 convolutions of NCHW on both sides, forward and backward to the data: products of matrices as they lie in memory.
// The pixels of a channel follow each other, so they take the place that output channels have elsewhere:
//
//   output[k][pixels] = sum over c of weights[k][c] * input[c][pixels]
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/plain_strips.hpp"
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
        values_(isForward_ ? d.shape.inChannels : d.shape.outChannels),
        results_(isForward_ ? d.shape.outChannels : d.shape.inChannels),
        pixels_(std::ptrdiff_t{d.shape.height} * d.shape.width),
        product_(kernels, values_, results_, pixels_) {
    const auto images = static_cast<std::size_t>(d.shape.batch);
    parts_ = balancedCut({images, product_.strips()}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * product_.scratchFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override { return product_.packedFloats(); }
  double predictedSeconds() const override {
    const double bytes = double(values_ + results_) * static_cast<double>(pixels_) * shape().batch * sizeof(float);
    return std::max(product_.cycles() * shape().batch, transferCycles(bytes, 10)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    product_.pack(packed, [&](int value, int row) {
      const int out = isForward_ ? row : value;
      const int in = isForward_ ? value : row;
      const WeightBlock block =
          weightBlock(shape(), description_.weightLayout, 0, out / blockLength, in / blockLength, 0, 0);
      return weights[block.base + out % blockLength * block.outStep + in % blockLength * block.inStep];
    });
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    executor.forEach(static_cast<std::size_t>(shape().batch) * parts_, [&](std::size_t index, int worker) {
      const auto image = static_cast<std::ptrdiff_t>(index / parts_);
      const std::ptrdiff_t at = image * results_ * pixels_;
      const float* const addend = description_.residual     ? buffers.residual + at
                                  : description_.accumulate ? buffers.result + at
                                                            : nullptr;
      const bool isNonTemporal = isNonTemporalResult(description_) && addend == nullptr && pixels_ % plainBlock == 0 &&
                                 isAligned(buffers.result);
      product_.run(
          {.read = (isForward_ ? buffers.input : buffers.outputGradient) + image * values_ * pixels_,
           .readLine = pixels_,
           .packed = buffers.packedWeights,
           .bias = description_.bias ? buffers.bias : nullptr,
           .addend = addend,
           .result = buffers.result + at,
           .resultLine = pixels_,
           .activation = description_.activation,
           .isNonTemporal = isNonTemporal},
          partOf(product_.strips(), parts_, index % parts_), {0, product_.tiles()},
          static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * product_.scratchFloats());
      if (isNonTemporal) endNonTemporal();
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }

  Description description_;
  bool isForward_;
  int values_, results_;  // channels that are summed over, and that are written
  std::ptrdiff_t pixels_;
  PlainStrips product_;
  std::size_t parts_ = 1;  // of an image's strips
};

}  // namespace

bool servesPlainProduct(const Description& d) {
  return d.pass != taccConvBackwardWeights && isPlainProduct(d) &&
         std::ptrdiff_t{d.shape.inChannels} * d.shape.outChannels <= mostWeights;
}

std::unique_ptr<ConvPlan> makePlainProduct(const Description& d, const KernelSet& kernels) {
  return std::make_unique<PlainProduct>(d, kernels);
}

}  // namespace tacc::conv
