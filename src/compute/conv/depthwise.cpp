// Channel-wise convolutions, forward and, with stride 1, backward to the input, which is the same with the kernel
// turned round. Bound by loads: each value is multiplied once per tap.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/weight_tiles.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

constexpr int maxTaps = 64;

/// One line of output in terms of lines of input.
struct Geometry {
  int inHeight, inWidth, outHeight, outWidth;
  int padHeight, padWidth;
};

class Depthwise final : public Plan {
 public:
  Depthwise(const Description& d, const KernelSet& kernels)
      : Plan(std::string(kernels.vectors) + " 8x1"),
        description_(d),
        kernels_(kernels),
        isForward_(d.pass == taccConvForward) {
    const Shape& s = shape();
    geometry_ = isForward_ ? Geometry{s.height, s.width, s.outHeight, s.outWidth, s.padHeight, s.padWidth}
                           : Geometry{s.outHeight,
                                      s.outWidth,
                                      s.height,
                                      s.width,
                                      s.dilationHeight * (s.kernelHeight - 1) - s.padHeight,
                                      s.dilationWidth * (s.kernelWidth - 1) - s.padWidth};
  }

  std::size_t workspaceBytes() const override { return biasWorkspaceBytes(description_); }
  std::size_t packedFloats() const override {
    return static_cast<std::size_t>(shape().inBlocks()) * static_cast<std::size_t>(taps()) * blockLength;
  }
  double predictedSeconds() const override {
    const double pixels = double(shape().batch) * shape().inBlocks() * geometry_.outHeight * geometry_.outWidth;
    return pixels * taps() * blockLength / kernels_.fmaLanes / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    std::fill_n(packed, packedFloats(), 0.0F);
    for (int c = 0; c < shape().inChannels; ++c) {
      for (int tap = 0; tap < taps(); ++tap) {
        const WeightBlock block = weightBlock(shape(), description_.weightLayout, c, 0, 0, tap / shape().kernelWidth,
                                              tap % shape().kernelWidth);
        const int to = isForward_ ? tap : taps() - 1 - tap;
        packed[((c / blockLength) * taps() + to) * blockLength + c % blockLength] = weights[block.base];
      }
    }
  }

  void run(const Buffers& buffers, const Executor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    const auto blocks = static_cast<std::size_t>(shape().inBlocks());
    executor.forEach(static_cast<std::size_t>(shape().batch) * blocks, [&](std::size_t index, int) {
      const auto plane = static_cast<std::ptrdiff_t>(index);
      const auto block = static_cast<std::ptrdiff_t>(index % blocks);
      const std::ptrdiff_t out = plane * geometry_.outHeight * geometry_.outWidth * blockLength;
      const float* const input = isForward_ ? buffers.input : buffers.outputGradient;
      const float* const addend =
          description_.residual ? buffers.residual : (description_.accumulate ? buffers.result : nullptr);
      runPlane(input + plane * geometry_.inHeight * geometry_.inWidth * blockLength,
               buffers.packedWeights + block * taps() * blockLength,
               bias == nullptr ? nullptr : bias + block * blockLength, addend == nullptr ? nullptr : addend + out,
               buffers.result + out);
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }
  int strideHeight() const { return isForward_ ? shape().strideHeight : 1; }
  int strideWidth() const { return isForward_ ? shape().strideWidth : 1; }

  void runPlane(const float* input, const float* weights, const float* bias, const float* addend, float* output) const {
    const Shape& s = shape();
    // Columns between these see all taps.
    const int inner = std::min(geometry_.outWidth, firstInside(-geometry_.padWidth, strideWidth()));
    const int outer = std::clamp(
        endInside(s.dilationWidth * (s.kernelWidth - 1) - geometry_.padWidth, strideWidth(), geometry_.inWidth), inner,
        geometry_.outWidth);
    std::ptrdiff_t offsets[maxTaps];
    const float* rows[maxTaps];
    DepthwiseCall call{};
    call.inputPixel = std::ptrdiff_t{strideWidth()} * blockLength;
    call.taps = offsets;
    call.weights = rows;
    call.bias = bias;
    call.outputPixel = blockLength;
    call.relu = description_.relu;
    for (int y = 0; y < geometry_.outHeight; ++y) {
      for (int x = 0; x < geometry_.outWidth; x += call.pixels) {
        call.pixels = x == inner && outer > inner ? outer - inner : 1;
        call.tapCount = 0;
        for (int r = 0; r < s.kernelHeight; ++r) {
          const int line = y * strideHeight() - geometry_.padHeight + r * s.dilationHeight;
          if (line < 0 || line >= geometry_.inHeight) continue;
          for (int t = 0; t < s.kernelWidth; ++t) {
            const int column = x * strideWidth() - geometry_.padWidth + t * s.dilationWidth;
            if (column < 0 || column >= geometry_.inWidth) continue;
            offsets[call.tapCount] = (std::ptrdiff_t{line} * geometry_.inWidth + column) * blockLength;
            rows[call.tapCount++] = weights + (r * s.kernelWidth + t) * blockLength;
          }
        }
        const std::ptrdiff_t out = (std::ptrdiff_t{y} * geometry_.outWidth + x) * blockLength;
        call.input = input;
        call.addend = addend == nullptr ? nullptr : addend + out;
        call.output = output + out;
        kernels_.depthwise(call);
      }
    }
  }

  Description description_;
  const KernelSet& kernels_;
  bool isForward_;
  Geometry geometry_{};
};

}  // namespace

bool servesDepthwise(const Description& d) {
  const Shape& s = d.shape;
  const bool isBackwardData = d.pass == taccConvBackwardData && s.strideHeight == 1 && s.strideWidth == 1;
  return s.isDepthwise() && d.inputLayout == taccLayoutNchw16c && (d.pass == taccConvForward || isBackwardData) &&
         std::int64_t{s.kernelHeight} * s.kernelWidth <= maxTaps;
}

std::unique_ptr<Plan> makeDepthwise(const Description& d, const KernelSet& kernels) {
  return std::make_unique<Depthwise>(d, kernels);
}

}  // namespace tacc::conv
