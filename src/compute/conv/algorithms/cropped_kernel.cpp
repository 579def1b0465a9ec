// Kernels that reach over a small image: taps at their ends that no result finds inside the image contribute nothing. A
// 9x9 kernel on an image of one pixel, padded to keep its size, is a 1x1 kernel. Such a convolution is run as that of
// the taps that are left, so that their weights follow each other in memory, and the gradient of the others is zero.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Taps of one dimension that no result finds inside, as many at either end: then the padding stays equal, too.
int outsideTaps(int results, int taps, int stride, int dilation, int pad, int size) {
  const auto isOutside = [&](int tap) {
    const std::int64_t first = std::int64_t{tap} * dilation - pad;
    return first >= size || first + std::int64_t{results - 1} * stride < 0;
  };
  int outside = 0;
  while (taps - 2 * outside > 2 && (outside + 1) * dilation <= pad && isOutside(outside) &&
         isOutside(taps - 1 - outside)) {
    ++outside;
  }
  return outside;
}

struct Crop {
  int lines, columns;  // of the kernel, at either end
};

Crop cropOf(const Description& d) {
  const Shape& s = d.shape;
  if (d.pass == taccConvBackwardWeights) return {0, 0};  // the gradient of all taps is wanted, zeros too
  return {outsideTaps(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height),
          outsideTaps(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width)};
}

Shape cropped(const Shape& shape, const Crop& crop) {
  Shape s = shape;
  s.kernelHeight -= 2 * crop.lines;
  s.kernelWidth -= 2 * crop.columns;
  s.padHeight -= crop.lines * s.dilationHeight;
  s.padWidth -= crop.columns * s.dilationWidth;
  return s;
}

std::size_t floatsOf(const Shape& s, taccWeightLayout_t layout) {
  return weightFloats(layout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups);
}

constexpr std::size_t aligned(std::size_t floats) { return (floats + blockLength - 1) / blockLength * blockLength; }

class CroppedKernel final : public ConvPlan {
 public:
  CroppedKernel(const Description& description, const Crop& crop, std::unique_ptr<ConvPlan> inner)
      : ConvPlan(inner->kernel()),
        description_(description),
        crop_(crop),
        shape_(cropped(description.shape, crop)),
        croppedFloats_(aligned(floatsOf(shape_, description.weightLayout))),
        inner_(std::move(inner)) {}

  std::size_t workspaceBytes() const override { return inner_->workspaceBytes(); }
  /// Behind what the inner plan reads there is room for the weights that it packs.
  std::size_t packedFloats() const override { return aligned(inner_->packedFloats()) + croppedFloats_; }
  double reorderSeconds() const override { return inner_->reorderSeconds(); }
  double predictedSeconds() const override { return inner_->predictedSeconds(); }

  void pack(const float* weights, float* packed) const override {
    float* const left = packed + aligned(inner_->packedFloats());
    std::fill_n(left, croppedFloats_, 0.0F);
    forEachTap([&](std::ptrdiff_t whole, std::ptrdiff_t part) { left[part] = weights[whole]; });
    inner_->pack(left, packed);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override { inner_->run(buffers, executor); }

 private:
  /// Calls visit(where a weight is among all, where among those that are left).
  template <class Visit>
  void forEachTap(const Visit& visit) const {
    const Shape& s = description_.shape;
    for (int group = 0; group < s.groups; ++group) {
      for (int out = 0; out < ceilDivide(s.outPerGroup(), blockLength); ++out) {
        for (int in = 0; in < ceilDivide(s.inPerGroup(), blockLength); ++in) {
          for (int r = 0; r < shape_.kernelHeight; ++r) {
            for (int t = 0; t < shape_.kernelWidth; ++t) {
              visitBlock(weightBlock(s, description_.weightLayout, group, out, in, r + crop_.lines, t + crop_.columns),
                         weightBlock(shape_, description_.weightLayout, group, out, in, r, t), visit);
            }
          }
        }
      }
    }
  }
  template <class Visit>
  static void visitBlock(const WeightBlock& whole, const WeightBlock& part, const Visit& visit) {
    for (int c = 0; c < whole.ins; ++c) {
      for (int k = 0; k < whole.outs; ++k) {
        visit(whole.base + k * whole.outStep + c * whole.inStep, part.base + k * part.outStep + c * part.inStep);
      }
    }
  }

  Description description_;
  Crop crop_;
  Shape shape_;  // without the taps outside
  std::size_t croppedFloats_;
  std::unique_ptr<ConvPlan> inner_;
};

/// With one result in a dimension its stride means nothing.
void dropStrides(Shape& s) {
  if (s.height + 2 * s.padHeight == s.dilationHeight * (s.kernelHeight - 1) + 1) s.strideHeight = 1;
  if (s.width + 2 * s.padWidth == s.dilationWidth * (s.kernelWidth - 1) + 1) s.strideWidth = 1;
  if (s.kernelHeight == 1) s.dilationHeight = 1;
  if (s.kernelWidth == 1) s.dilationWidth = 1;
}

}  // namespace

Description simplified(const Description& description) {
  Description result = description;
  result.shape = cropped(description.shape, cropOf(description));
  dropStrides(result.shape);
  return result;
}

std::unique_ptr<ConvPlan> makeCropped(const Description& description, std::unique_ptr<ConvPlan> inner) {
  const Crop crop = cropOf(description);
  if (crop.lines == 0 && crop.columns == 0) return inner;
  return std::make_unique<CroppedKernel>(description, crop, std::move(inner));
}

}  // namespace tacc::conv
