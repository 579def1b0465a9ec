// The convolution as a product of matrices that is written out: for some pixels at a time all input values that they
// see become a row of a matrix, which OpenBLAS multiplies. It serves everything, but only by name: an OpenBLAS without
// threads bears no calls at once, and nobody knows what else in the process calls it.
#include <cblas.h>

#include <algorithm>
#include <mutex>

#include "compute/conv/activation.hpp"
#include "compute/conv/algorithms.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/weights.hpp"
#include "core/loaded_library.hpp"

namespace tacc::conv {
namespace {

/// Loaded when a program asks for this algorithm.
struct OpenBlas {
  decltype(&::cblas_sgemm) sgemm;
  int (*parallel)();  // openblas_get_parallel

  OpenBlas() {
    const LoadedLibrary library("libopenblas.so.0", "Debian's libopenblas0-serial has it");
    library.find(sgemm, "cblas_sgemm");
    library.find(parallel, "openblas_get_parallel");
  }
};

const OpenBlas& openBlas() {
  static const OpenBlas library;
  return library;
}

/// Of the matrix of input values that are multiplied at a time: half of an L2 cache.
constexpr std::size_t matrixBytes = 512 * 1024;

/// An OpenBLAS without threads of its own hands out its buffers without a lock: two calls at once take the same one.
template <class... Arguments>
void multiply(Arguments... arguments) {
  static std::mutex oneAtATime;
  const std::lock_guard lock(oneAtATime);
  openBlas().sgemm(CblasRowMajor, arguments...);
}

constexpr std::size_t roundedFloats(std::size_t floats) { return (floats + 15) / 16 * 16; }

/// The channels of a group in a tensor, as runs that follow each other in memory.
class Channels {
 public:
  Channels(taccLayout_t layout, int channels, int height, int width, int perGroup)
      : layout_(layout), perGroup_(perGroup), plane_(std::ptrdiff_t{height} * width) {
    const bool isBlocked = layout == taccLayoutNchw16c;
    pixel_ = isBlocked ? blockLength : layout == taccLayoutNhwc ? channels : 1;
    image_ = plane_ * (isBlocked ? roundUp(channels, blockLength) : channels);
  }

  /// Calls visit(floats from the pixel's first, channel within the group, how many) for each run of a group.
  template <class Visit>
  void forEachRun(int group, const Visit& visit) const {
    const int first = group * perGroup_;
    for (int c = 0; c < perGroup_;) {
      const int channel = first + c;
      int count = 1;
      std::ptrdiff_t at = channel * plane_;
      if (layout_ == taccLayoutNchw16c) {
        count = std::min(perGroup_ - c, blockLength - channel % blockLength);
        at = channel / blockLength * plane_ * blockLength + channel % blockLength;
      } else if (layout_ == taccLayoutNhwc) {
        count = perGroup_;
        at = channel;
      }
      visit(at, c, count);
      c += count;
    }
  }
  std::ptrdiff_t pixelAt(int image, std::ptrdiff_t pixel) const { return image * image_ + pixel * pixel_; }

 private:
  taccLayout_t layout_;
  int perGroup_;
  std::ptrdiff_t plane_, pixel_, image_;  // pixels, floats, floats
};

class ExplicitGemm final : public ConvPlan {
 public:
  explicit ExplicitGemm(const Description& d)
      : ConvPlan("openblas sgemm"),
        description_(d),
        in_(d.inputLayout, d.shape.inChannels, d.shape.height, d.shape.width, d.shape.inPerGroup()),
        out_(taccLayoutNchw16c, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth, d.shape.outPerGroup()),
        rows_(d.shape.inPerGroup() * d.shape.kernelHeight * d.shape.kernelWidth),
        outs_(d.shape.outPerGroup()),
        pixels_(d.shape.outHeight * d.shape.outWidth) {
    const std::size_t row = static_cast<std::size_t>(rows_) * sizeof(float);
    pixelsAtOnce_ = static_cast<int>(std::clamp<std::size_t>(matrixBytes / row, 16, 4096));
    pixelsAtOnce_ = std::min(pixelsAtOnce_, pixels_);
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * workspaceFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return description_.pass == taccConvBackwardWeights ? 0 : groupFloats() * static_cast<std::size_t>(shape().groups);
  }
  double predictedSeconds() const override {
    // Narrow products are bound by loads; the matrix is written and read.
    const double operationsPerCycle = std::min(16.0, 0.5 * outs_);
    const double matrix = static_cast<double>(shape().batch) * shape().groups * pixels_ * rows_;
    return (shape().operations() / operationsPerCycle + 2 * matrix) / assumedHertz;
  }

  /// For each group rows (r, s, c) of output channels.
  void pack(const float* weights, float* packed) const override {
    if (packedFloats() == 0) return;
    for (int group = 0; group < shape().groups; ++group) {
      forEachWeight(group, [&](std::ptrdiff_t at, std::size_t index) {
        packed[static_cast<std::size_t>(group) * groupFloats() + index] = weights[at];
      });
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto groups = static_cast<std::size_t>(shape().groups);
    if (description_.pass == taccConvBackwardWeights) {
      clearGradient(buffers.result, description_.weightLayout, shape(), description_.accumulate);
      executor.forEach(groups, [&](std::size_t group, int worker) {
        backwardWeights(buffers, static_cast<int>(group), matrixOf(buffers, worker));
      });
      return;
    }
    executor.forEach(groups * static_cast<std::size_t>(shape().batch), [&](std::size_t index, int worker) {
      const auto group = static_cast<int>(index % groups);
      const auto image = static_cast<int>(index / groups);
      if (group == 0) clearPaddingChannels(buffers.result, image);
      if (description_.pass == taccConvForward) {
        forward(buffers, image, group, matrixOf(buffers, worker));
      } else {
        backwardData(buffers, image, group, matrixOf(buffers, worker));
      }
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::size_t groupFloats() const { return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(outs_); }

  // A worker's workspace: the matrix of input values, that of output values, and the gradient of a group's weights.
  std::size_t matrixFloats() const {
    return roundedFloats(static_cast<std::size_t>(pixelsAtOnce_) * static_cast<std::size_t>(rows_));
  }
  std::size_t outputFloats() const {
    return roundedFloats(static_cast<std::size_t>(pixelsAtOnce_) * static_cast<std::size_t>(outs_));
  }
  std::size_t workspaceFloats() const {
    return matrixFloats() + outputFloats() +
           (description_.pass == taccConvBackwardWeights ? roundedFloats(groupFloats()) : 0);
  }
  float* matrixOf(const Buffers& buffers, int worker) const {
    return static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * workspaceFloats();
  }

  /// Calls visit(place in the description's layout, place in rows of output channels) for each weight of a group.
  template <class Visit>
  void forEachWeight(int group, const Visit& visit) const {
    std::size_t index = 0;
    for (int tap = 0; tap < shape().kernelHeight * shape().kernelWidth; ++tap) {
      for (int c = 0; c < shape().inPerGroup(); ++c) {
        for (int k = 0; k < outs_; ++k, ++index) {
          const WeightBlock block = weightBlock(shape(), description_.weightLayout, group, k / blockLength,
                                                c / blockLength, tap / shape().kernelWidth, tap % shape().kernelWidth);
          visit(block.base + k % blockLength * block.outStep + c % blockLength * block.inStep, index);
        }
      }
    }
  }

  /// Calls visit(input pixel, or -1 outside the image, place in the matrix) for each tap of pixels [from, to).
  template <class Visit>
  void forEachTap(int from, int to, const Visit& visit) const {
    const Shape& s = shape();
    std::ptrdiff_t at = 0;
    for (int pixel = from; pixel < to; ++pixel) {
      const int top = pixel / s.outWidth * s.strideHeight - s.padHeight;
      const int left = pixel % s.outWidth * s.strideWidth - s.padWidth;
      for (int r = 0; r < s.kernelHeight; ++r) {
        const int y = top + r * s.dilationHeight;
        for (int t = 0; t < s.kernelWidth; ++t, at += s.inPerGroup()) {
          const int x = left + t * s.dilationWidth;
          const bool isInside = y >= 0 && y < s.height && x >= 0 && x < s.width;
          visit(isInside ? std::ptrdiff_t{y} * s.width + x : -1, at);
        }
      }
    }
  }

  void gatherInput(const float* input, int image, int group, int from, int to, float* matrix) const {
    forEachTap(from, to, [&](std::ptrdiff_t pixel, std::ptrdiff_t at) {
      if (pixel < 0) {
        std::fill_n(matrix + at, shape().inPerGroup(), 0.0F);
        return;
      }
      const float* const values = input + in_.pixelAt(image, pixel);
      in_.forEachRun(group, [&](std::ptrdiff_t offset, int c, int count) {
        std::copy_n(values + offset, count, matrix + at + c);
      });
    });
  }
  void gatherOutput(const float* gradient, int image, int group, int from, int to, float* matrix) const {
    for (int pixel = from; pixel < to; ++pixel, matrix += outs_) {
      const float* const values = gradient + out_.pixelAt(image, pixel);
      out_.forEachRun(
          group, [&](std::ptrdiff_t offset, int k, int count) { std::copy_n(values + offset, count, matrix + k); });
    }
  }
  template <class Body>
  void forEachPart(const Body& body) const {
    for (int from = 0; from < pixels_; from += pixelsAtOnce_) body(from, std::min(pixels_, from + pixelsAtOnce_));
  }

  void forward(const Buffers& buffers, int image, int group, float* matrix) const {
    float* const sums = matrix + matrixFloats();
    const float* const weights = buffers.packedWeights + static_cast<std::size_t>(group) * groupFloats();
    forEachPart([&](int from, int to) {
      gatherInput(buffers.input, image, group, from, to, matrix);
      multiply(CblasNoTrans, CblasNoTrans, to - from, outs_, rows_, 1.0F, matrix, rows_, weights, outs_, 0.0F, sums,
               outs_);
      const float* sum = sums;
      for (int pixel = from; pixel < to; ++pixel, sum += outs_) {
        const std::ptrdiff_t at = out_.pixelAt(image, pixel);
        out_.forEachRun(group, [&](std::ptrdiff_t offset, int k, int count) {
          for (int i = 0; i < count; ++i) {
            float value = sum[k + i];
            if (description_.bias) value += buffers.bias[group * outs_ + k + i];
            if (description_.residual) value += buffers.residual[at + offset + i];
            buffers.result[at + offset + i] = applyActivation(description_.activation, value);
          }
        });
      }
    });
  }

  void backwardData(const Buffers& buffers, int image, int group, float* matrix) const {
    float* const gradients = matrix + matrixFloats();
    const float* const weights = buffers.packedWeights + static_cast<std::size_t>(group) * groupFloats();
    if (!description_.accumulate) {
      for (int pixel = 0; pixel < shape().height * shape().width; ++pixel) {
        float* const to = buffers.result + in_.pixelAt(image, pixel);
        in_.forEachRun(group, [&](std::ptrdiff_t offset, int, int count) { std::fill_n(to + offset, count, 0.0F); });
      }
    }
    forEachPart([&](int from, int to) {
      gatherOutput(buffers.outputGradient, image, group, from, to, gradients);
      multiply(CblasNoTrans, CblasTrans, to - from, rows_, outs_, 1.0F, gradients, outs_, weights, outs_, 0.0F, matrix,
               rows_);
      forEachTap(from, to, [&](std::ptrdiff_t pixel, std::ptrdiff_t at) {
        if (pixel < 0) return;
        float* const values = buffers.result + in_.pixelAt(image, pixel);
        in_.forEachRun(group, [&](std::ptrdiff_t offset, int c, int count) {
          for (int i = 0; i < count; ++i) values[offset + i] += matrix[at + c + i];
        });
      });
    });
  }

  void backwardWeights(const Buffers& buffers, int group, float* matrix) const {
    float* const gradients = matrix + matrixFloats();
    float* const sums = gradients + outputFloats();
    std::fill_n(sums, groupFloats(), 0.0F);
    for (int image = 0; image < shape().batch; ++image) {
      forEachPart([&](int from, int to) {
        gatherInput(buffers.input, image, group, from, to, matrix);
        gatherOutput(buffers.outputGradient, image, group, from, to, gradients);
        multiply(CblasTrans, CblasNoTrans, rows_, outs_, to - from, 1.0F, matrix, rows_, gradients, outs_, 1.0F, sums,
                 outs_);
      });
    }
    forEachWeight(group, [&](std::ptrdiff_t at, std::size_t index) {
      buffers.result[at] = sums[index] + (description_.accumulate ? buffers.result[at] : 0.0F);
    });
  }

  /// The channels of a result in taccLayoutNchw16c that only fill its last block. In a sum they are zeros already.
  void clearPaddingChannels(float* result, int image) const {
    const bool isForward = description_.pass == taccConvForward;
    const Shape& s = shape();
    const int channels = isForward ? s.outChannels : s.inChannels;
    const int height = isForward ? s.outHeight : s.height;
    const int width = isForward ? s.outWidth : s.width;
    if (channels % blockLength == 0 || description_.accumulate) return;
    float* to = result + elementAt(taccLayoutNchw16c, channels, height, width, image, channels, 0, 0);
    for (int pixel = 0; pixel < height * width; ++pixel, to += blockLength) {
      std::fill_n(to, blockLength - channels % blockLength, 0.0F);
    }
  }

  Description description_;
  Channels in_, out_;
  int rows_, outs_, pixels_;
  int pixelsAtOnce_;
};

}  // namespace

bool servesExplicitGemm(const Description& d) {
  // An OpenBLAS with threads of its own would start them behind the caller's back.
  return (d.inputLayout == taccLayoutNchw16c || d.pass != taccConvBackwardData) && openBlas().parallel() == 0;
}

std::unique_ptr<ConvPlan> makeExplicitGemm(const Description& d, const KernelSet&) {
  return std::make_unique<ExplicitGemm>(d);
}

}  // namespace tacc::conv
