// The gradients of channel-wise convolutions that are no convolutions themselves: of the weights, and of the input
// where there is a stride. Tap by tap along the lines; each value is multiplied once per tap, so it is a matter of
// loads.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/weight_tiles.hpp"
#include "compute/conv/weights.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

constexpr int maxTaps = 64;

class DepthwiseGradients final : public Plan {
 public:
  DepthwiseGradients(const Description& d, const KernelSet& kernels)
      : Plan(std::string(kernels.vectors)),
        description_(d),
        kernels_(layers::kernelTable(kernels.vectors)),
        lanes_(kernels.fmaLanes) {}

  std::size_t packedFloats() const override {
    if (description_.pass == taccConvBackwardWeights) return 0;
    return static_cast<std::size_t>(shape().inBlocks()) * static_cast<std::size_t>(taps()) * blockLength;
  }
  double predictedSeconds() const override {
    const double pixels = double(shape().batch) * shape().inBlocks() * shape().outHeight * shape().outWidth;
    return 2 * pixels * taps() * blockLength / lanes_ / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    if (packedFloats() == 0) return;
    std::fill_n(packed, packedFloats(), 0.0F);
    forEachWeight(0, shape().inChannels, [&](std::ptrdiff_t at, std::ptrdiff_t index) { packed[index] = weights[at]; });
  }

  void run(const Buffers& buffers, const Executor& executor) const override {
    const auto blocks = static_cast<std::size_t>(shape().inBlocks());
    if (description_.pass == taccConvBackwardWeights) {
      clearGradient(buffers.result, description_.weightLayout, shape(), description_.accumulate);
      executor.forEach(blocks, [&](std::size_t block, int) { backwardWeights(buffers, static_cast<int>(block)); });
      return;
    }
    executor.forEach(blocks * static_cast<std::size_t>(shape().batch), [&](std::size_t plane, int) {
      backwardData(buffers, static_cast<int>(plane / blocks), static_cast<int>(plane % blocks));
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }

  /// Calls visit(place in the description's layout, place in [block][tap][16]) for the weights of channels [from, to).
  template <class Visit>
  void forEachWeight(int from, int to, const Visit& visit) const {
    for (int c = from; c < to; ++c) {
      for (int tap = 0; tap < taps(); ++tap) {
        const WeightBlock block = weightBlock(shape(), description_.weightLayout, c, 0, 0, tap / shape().kernelWidth,
                                              tap % shape().kernelWidth);
        visit(block.base, (std::ptrdiff_t{c / blockLength} * taps() + tap) * blockLength + c % blockLength);
      }
    }
  }

  /// Calls visit(tap, first float of the output's line, of the input's, pixels) for what lies inside a plane.
  template <class Visit>
  void forEachLine(const Visit& visit) const {
    const Shape& s = shape();
    for (int y = 0; y < s.outHeight; ++y) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        const int line = y * s.strideHeight - s.padHeight + r * s.dilationHeight;
        if (line < 0 || line >= s.height) continue;
        for (int t = 0; t < s.kernelWidth; ++t) {
          const int offset = t * s.dilationWidth - s.padWidth;
          const int from = firstInside(offset, s.strideWidth);
          const int to = std::min(s.outWidth, endInside(offset, s.strideWidth, s.width));
          if (from >= to) continue;
          const std::ptrdiff_t column = std::ptrdiff_t{from} * s.strideWidth + offset;
          visit(r * s.kernelWidth + t, (std::ptrdiff_t{y} * s.outWidth + from) * blockLength,
                (std::ptrdiff_t{line} * s.width + column) * blockLength, to - from);
        }
      }
    }
  }

  void backwardWeights(const Buffers& buffers, int block) const {
    alignas(64) float sums[maxTaps * blockLength] = {};
    for (int image = 0; image < shape().batch; ++image) {
      const std::ptrdiff_t plane = std::ptrdiff_t{image} * shape().inBlocks() + block;
      const float* const gradient = buffers.outputGradient + plane * shape().outPlane();
      const float* const input = buffers.input + plane * shape().inPlane();
      forEachLine([&](int tap, std::ptrdiff_t out, std::ptrdiff_t in, int pixels) {
        kernels_.sumProducts(gradient + out, input + in, std::ptrdiff_t{shape().strideWidth} * blockLength, pixels,
                             sums + tap * blockLength);
      });
    }
    const std::ptrdiff_t first = std::ptrdiff_t{block} * taps() * blockLength;
    const int from = block * blockLength;
    forEachWeight(from, std::min(shape().inChannels, from + blockLength), [&](std::ptrdiff_t at, std::ptrdiff_t index) {
      float& result = buffers.result[at];
      result = sums[index - first] + (description_.accumulate ? result : 0.0F);
    });
  }

  void backwardData(const Buffers& buffers, int image, int block) const {
    const std::ptrdiff_t plane = std::ptrdiff_t{image} * shape().inBlocks() + block;
    const float* const gradient = buffers.outputGradient + plane * shape().outPlane();
    const float* const weights = buffers.packedWeights + std::ptrdiff_t{block} * taps() * blockLength;
    float* const result = buffers.result + plane * shape().inPlane();
    if (!description_.accumulate) std::fill_n(result, shape().inPlane(), 0.0F);
    forEachLine([&](int tap, std::ptrdiff_t out, std::ptrdiff_t in, int pixels) {
      kernels_.addProducts(gradient + out, weights + tap * blockLength, result + in,
                           std::ptrdiff_t{shape().strideWidth} * blockLength, pixels);
    });
  }

  Description description_;
  const layers::KernelTable& kernels_;
  int lanes_;
};

}  // namespace

bool servesDepthwiseGradients(const Description& d) {
  return d.shape.isDepthwise() && d.pass != taccConvForward && d.inputLayout == taccLayoutNchw16c &&
         std::int64_t{d.shape.kernelHeight} * d.shape.kernelWidth <= maxTaps;
}

std::unique_ptr<Plan> makeDepthwiseGradients(const Description& d, const KernelSet& kernels) {
  return std::make_unique<DepthwiseGradients>(d, kernels);
}

}  // namespace tacc::conv
