// The convolution by its definition: for what no other algorithm serves, slowly.
#include <algorithm>

#include "compute/conv/activation.hpp"
#include "compute/conv/algorithms.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

class Reference final : public ConvPlan {
 public:
  Reference(const Description& d) : ConvPlan("scalar"), description_(d) {}

  std::size_t packedFloats() const override {
    if (description_.pass == taccConvBackwardWeights) return 0;
    return weightFloats(description_.weightLayout, shape().outChannels, shape().inChannels, shape().kernelHeight,
                        shape().kernelWidth, shape().groups);
  }
  double predictedSeconds() const override { return shape().operations() / assumedHertz; }
  void pack(const float* weights, float* packed) const override { std::copy_n(weights, packedFloats(), packed); }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const Shape& s = shape();
    const auto batch = static_cast<std::size_t>(s.batch);
    switch (description_.pass) {
      case taccConvForward:
        // Padding channels too: they become zeros.
        executor.forEach(batch * static_cast<std::size_t>(s.outBlocks() * blockLength), [&](std::size_t index, int) {
          const int channels = s.outBlocks() * blockLength;
          forward(buffers, static_cast<int>(index) / channels, static_cast<int>(index) % channels);
        });
        break;
      case taccConvBackwardData:
        executor.forEach(batch * static_cast<std::size_t>(s.inBlocks() * blockLength), [&](std::size_t index, int) {
          const int channels = s.inBlocks() * blockLength;
          backwardData(buffers, static_cast<int>(index) / channels, static_cast<int>(index) % channels);
        });
        break;
      case taccConvBackwardWeights:
        clearGradient(buffers.result, description_.weightLayout, shape(), description_.accumulate);
        executor.forEach(static_cast<std::size_t>(s.outChannels),
                         [&](std::size_t index, int) { backwardWeights(buffers, static_cast<int>(index)); });
        break;
    }
  }

 private:
  const Shape& shape() const { return description_.shape; }

  /// Input channel `c` of the group of output channel `k`.
  std::ptrdiff_t weightAt(int k, int c, int r, int t) const {
    const int group = k / shape().outPerGroup();
    const int out = k % shape().outPerGroup();
    const WeightBlock block =
        weightBlock(shape(), description_.weightLayout, group, out / blockLength, c / blockLength, r, t);
    return block.base + (out % blockLength) * block.outStep + (c % blockLength) * block.inStep;
  }
  std::ptrdiff_t inputAt(taccLayout_t layout, int n, int c, int y, int x) const {
    return elementAt(layout, shape().inChannels, shape().height, shape().width, n, c, y, x);
  }
  std::ptrdiff_t outputAt(int n, int k, int y, int x) const {
    return elementAt(taccLayoutNchw16c, shape().outChannels, shape().outHeight, shape().outWidth, n, k, y, x);
  }
  /// The input's line or column for an output's and a tap's; outside the image when not in [0, size).
  int lineOf(int y, int r) const { return y * shape().strideHeight - shape().padHeight + r * shape().dilationHeight; }
  int columnOf(int x, int t) const { return x * shape().strideWidth - shape().padWidth + t * shape().dilationWidth; }

  void forward(const Buffers& buffers, int n, int k) const {
    const Shape& s = shape();
    for (int y = 0; y < s.outHeight; ++y) {
      for (int x = 0; x < s.outWidth; ++x) {
        float sum = 0;
        if (k < s.outChannels) {
          if (description_.bias) sum = buffers.bias[k];
          const int firstIn = k / s.outPerGroup() * s.inPerGroup();
          for (int c = 0; c < s.inPerGroup(); ++c) {
            for (int r = 0; r < s.kernelHeight; ++r) {
              const int line = lineOf(y, r);
              if (line < 0 || line >= s.height) continue;
              for (int t = 0; t < s.kernelWidth; ++t) {
                const int column = columnOf(x, t);
                if (column < 0 || column >= s.width) continue;
                sum += buffers.input[inputAt(description_.inputLayout, n, firstIn + c, line, column)] *
                       buffers.packedWeights[weightAt(k, c, r, t)];
              }
            }
          }
          if (description_.residual) sum += buffers.residual[outputAt(n, k, y, x)];
        }
        buffers.result[outputAt(n, k, y, x)] = applyActivation(description_.activation, sum);
      }
    }
  }

  void backwardData(const Buffers& buffers, int n, int channel) const {
    const Shape& s = shape();
    const bool isPadding = channel >= s.inChannels;
    const int group = isPadding ? 0 : channel / s.inPerGroup();
    for (int y = 0; y < s.height; ++y) {
      for (int x = 0; x < s.width; ++x) {
        float& result = buffers.result[inputAt(taccLayoutNchw16c, n, channel, y, x)];
        float sum = description_.accumulate ? result : 0.0F;
        for (int k = 0; k < s.outPerGroup() && !isPadding; ++k) {
          const int out = group * s.outPerGroup() + k;
          for (int r = 0; r < s.kernelHeight; ++r) {
            const int line = y + s.padHeight - r * s.dilationHeight;
            if (line < 0 || line % s.strideHeight != 0 || line / s.strideHeight >= s.outHeight) continue;
            for (int t = 0; t < s.kernelWidth; ++t) {
              const int column = x + s.padWidth - t * s.dilationWidth;
              if (column < 0 || column % s.strideWidth != 0 || column / s.strideWidth >= s.outWidth) continue;
              sum += buffers.outputGradient[outputAt(n, out, line / s.strideHeight, column / s.strideWidth)] *
                     buffers.packedWeights[weightAt(out, channel % s.inPerGroup(), r, t)];
            }
          }
        }
        result = sum;
      }
    }
  }

  void backwardWeights(const Buffers& buffers, int k) const {
    const Shape& s = shape();
    const int firstIn = k / s.outPerGroup() * s.inPerGroup();
    for (int c = 0; c < s.inPerGroup(); ++c) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        for (int t = 0; t < s.kernelWidth; ++t) {
          float& result = buffers.result[weightAt(k, c, r, t)];
          float sum = description_.accumulate ? result : 0.0F;
          for (int n = 0; n < s.batch; ++n) {
            for (int y = 0; y < s.outHeight; ++y) {
              const int line = lineOf(y, r);
              if (line < 0 || line >= s.height) continue;
              for (int x = 0; x < s.outWidth; ++x) {
                const int column = columnOf(x, t);
                if (column < 0 || column >= s.width) continue;
                sum += buffers.outputGradient[outputAt(n, k, y, x)] *
                       buffers.input[inputAt(description_.inputLayout, n, firstIn + c, line, column)];
              }
            }
          }
          result = sum;
        }
      }
    }
  }

  Description description_;
};

}  // namespace

bool servesReference(const Description& d) {
  return d.inputLayout == taccLayoutNchw16c || d.pass != taccConvBackwardData;
}

std::unique_ptr<ConvPlan> makeReference(const Description& d, const KernelSet&) {
  return std::make_unique<Reference>(d);
}

}  // namespace tacc::conv
