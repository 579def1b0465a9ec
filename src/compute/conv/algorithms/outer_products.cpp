// Gradient of the weights of images of one pixel, whose channels follow each other: a sum of outer products, one for
// each image, as fully connected layers have it. In KCRS the inputs of an output channel follow each other, too, so the
// inputs take the place of pixels, the images that of values, and the output's gradients that of weights:
//
//   gradient[k][inputs] = sum over images of outputGradient[image][k] * input[image][inputs]
//
// The result is mostly the largest tensor by far, and is written once, as it is wanted.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/plain_strips.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

class OuterProducts final : public ConvPlan {
 public:
  OuterProducts(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        product_(kernels, d.shape.batch, d.shape.outChannels, d.shape.inChannels) {
    parts_ = balancedCut({1, product_.tiles()}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  /// The output's gradients, in the order of the product, and what each worker wants.
  std::size_t workspaceBytes() const override {
    return (packedSpace() + static_cast<std::size_t>(description_.maxWorkers) * product_.scratchFloats()) *
           sizeof(float);
  }
  double predictedSeconds() const override {
    const Shape& s = description_.shape;
    const double bytes = weights() * sizeof(float) * (description_.accumulate ? 2 : 1);
    const double packed = 2.0 * s.batch * s.outChannels;
    constexpr double ofLongLines = 0.85;  // of what is written in the order of memory
    return std::max(ofLongLines * product_.cycles() + packed, transferCycles(bytes, 8)) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const Shape& s = description_.shape;
    auto* const packed = static_cast<float*>(buffers.workspace);
    product_.pack(packed, [&](int image, int channel) {
      return buffers.outputGradient[std::ptrdiff_t{image} * s.outChannels + channel];
    });
    const bool isNonTemporal = !description_.accumulate && s.inChannels % plainBlock == 0 &&
                               isAligned(buffers.result) &&
                               layers::isTooLargeForCaches(static_cast<std::size_t>(weights()) * sizeof(float));
    executor.forEach(parts_, [&](std::size_t index, int worker) {
      const TaskPart some = partOf(product_.tiles(), parts_, index);
      // Tile by tile, so that lines of the result are written as far as they go.
      for (std::size_t tile = some.from; tile < some.to; ++tile) {
        product_.run({.read = buffers.input,
                      .readLine = s.inChannels,
                      .packed = packed,
                      .bias = nullptr,
                      .addend = description_.accumulate ? buffers.result : nullptr,
                      .result = buffers.result,
                      .resultLine = s.inChannels,
                      .activation = taccActivationNone,
                      .isNonTemporal = isNonTemporal},
                     {0, product_.strips()}, {tile, tile + 1},
                     packed + packedSpace() + static_cast<std::size_t>(worker) * product_.scratchFloats());
      }
      if (isNonTemporal) endNonTemporal();
    });
  }

 private:
  double weights() const { return double(description_.shape.inChannels) * description_.shape.outChannels; }
  std::size_t packedSpace() const { return (product_.packedFloats() + blockLength - 1) / blockLength * blockLength; }

  Description description_;
  PlainStrips product_;
  std::size_t parts_ = 1;  // of the tiles
};

}  // namespace

bool servesOuterProducts(const Description& d) {
  const Shape& s = d.shape;
  const auto followEachOther = [](taccLayout_t layout, int channels) {
    return layout != taccLayoutNchw16c || channels % blockLength == 0;
  };
  return d.pass == taccConvBackwardWeights && d.weightLayout == taccWeightsKcrs && s.isProduct() && s.groups == 1 &&
         s.height * s.width == 1 && followEachOther(d.inputLayout, s.inChannels) &&
         followEachOther(d.outputLayout, s.outChannels);
}

std::unique_ptr<ConvPlan> makeOuterProducts(const Description& d, const KernelSet& kernels) {
  return std::make_unique<OuterProducts>(d, kernels);
}

}  // namespace tacc::conv
