// Kernels that reach over a small image: taps at their ends that no result finds inside the image contribute nothing. A
// 9x9 kernel on an image of one pixel, padded to keep its size, is a 1x1 kernel. Such a convolution is run as that of
// the taps that are left, so that their weights follow each other in memory, and the gradient of the others is zero.
#include <algorithm>
#include <utility>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Taps at the ends of one dimension.
struct Ends {
  int before, behind;
  int count() const { return before + behind; }
};

/// Those that no result finds inside the image, and that can be left out.
Ends outsideTaps(int results, int taps, int stride, int dilation, int pad, int size) {
  const auto isOutside = [&](int tap) {
    const std::int64_t first = std::int64_t{tap} * dilation - pad;
    return first >= size || first + std::int64_t{results - 1} * stride < 0;
  };
  if (results == 1) {  // what is left may begin with the image
    Ends ends{0, 0};
    while (ends.before < taps && isOutside(ends.before)) ++ends.before;
    while (ends.count() < taps && isOutside(taps - 1 - ends.behind)) ++ends.behind;
    if (ends.count() < taps && ends.before * dilation == pad) return ends;
  }
  int outside = 0;  // as many at either end: then the padding stays equal, too
  while (taps - 2 * outside > 2 && (outside + 1) * dilation <= pad && isOutside(outside) &&
         isOutside(taps - 1 - outside)) {
    ++outside;
  }
  return {outside, outside};
}

struct Crop {
  Ends lines, columns;  // of the kernel
  bool isNone() const { return lines.count() == 0 && columns.count() == 0; }
};

/// The gradient of all taps is wanted, zeros too: that of the taps that are left is written once more. Where there are
/// few pixels that is most of the work, and without groups algorithms leave out themselves what is outside.
bool isWorthCopying(const Shape& s, const Crop& crop) {
  const int left = (s.kernelHeight - crop.lines.count()) * (s.kernelWidth - crop.columns.count());
  if (2 * left > s.kernelHeight * s.kernelWidth) return false;
  const double weights = double(s.outChannels) * s.inPerGroup() * s.kernelHeight * s.kernelWidth;
  const double activations =
      s.batch * (double(s.inChannels) * s.height * s.width + double(s.outChannels) * s.outHeight * s.outWidth);
  return s.groups > 1 || weights < 2 * activations;
}

Crop cropOf(const Description& d) {
  const Shape& s = d.shape;
  const Crop crop{outsideTaps(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height),
                  outsideTaps(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width)};
  return d.pass != taccConvBackwardWeights || isWorthCopying(s, crop) ? crop : Crop{{0, 0}, {0, 0}};
}

Shape cropped(const Shape& shape, const Crop& crop) {
  Shape s = shape;
  s.kernelHeight -= crop.lines.count();
  s.kernelWidth -= crop.columns.count();
  s.padHeight -= crop.lines.before * s.dilationHeight;
  s.padWidth -= crop.columns.before * s.dilationWidth;
  return s;
}

std::size_t floatsOf(const Shape& s, taccWeightLayout_t layout) {
  return weightFloats(layout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups);
}

constexpr std::size_t aligned(std::size_t floats) { return (floats + blockLength - 1) / blockLength * blockLength; }

/// Where the taps that are left are among all, in one layout of weights.
class KernelTaps {
 public:
  KernelTaps(const Description& d, const Crop& crop)
      : shape_(d.shape), layout_(d.weightLayout), crop_(crop), left_(cropped(d.shape, crop)) {}

  std::size_t leftFloats() const { return aligned(floatsOf(left_, layout_)); }

  /// Calls visit(place among all, place among those that are left, or -1, floats that follow each other) for each tap.
  template <class Visit>
  void forEach(const Visit& visit) const {
    std::ptrdiff_t whole = 0, part = 0;
    const auto kernels = [&](std::ptrdiff_t count, std::ptrdiff_t unit) {
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        for (int r = 0; r < shape_.kernelHeight; ++r) {
          const bool isLine = isLeft(r, crop_.lines, shape_.kernelHeight);
          for (int t = 0; t < shape_.kernelWidth; ++t, whole += unit) {
            const bool isTap = isLine && isLeft(t, crop_.columns, shape_.kernelWidth);
            visit(whole, isTap ? part : -1, unit);
            if (isTap) part += unit;
          }
        }
      }
    };
    if (layout_ == taccWeightsKcrs) {
      kernels(std::ptrdiff_t{shape_.outChannels} * shape_.inPerGroup(), 1);
    } else if (shape_.isDepthwise()) {
      kernels(shape_.inBlocks(), blockLength);
    } else {
      const int rest = shape_.inPerGroup() % blockLength;
      for (int i = 0; i < shape_.groups * ceilDivide(shape_.outPerGroup(), blockLength); ++i) {
        kernels(shape_.inPerGroup() / blockLength, blockLength * blockLength);
        if (rest != 0) kernels(1, std::ptrdiff_t{rest} * blockLength);
      }
    }
  }

 private:
  static bool isLeft(int tap, const Ends& ends, int taps) { return tap >= ends.before && tap < taps - ends.behind; }

  Shape shape_;
  taccWeightLayout_t layout_;
  Crop crop_;
  Shape left_;
};

/// Forward and backward to the data: packs the weights that are left.
class CroppedKernel final : public ConvPlan {
 public:
  CroppedKernel(const KernelTaps& taps, std::unique_ptr<ConvPlan> inner)
      : ConvPlan(inner->kernel()), taps_(taps), inner_(std::move(inner)) {}

  std::size_t workspaceBytes() const override { return inner_->workspaceBytes(); }
  /// Behind what the inner plan reads there is room for the weights that it packs.
  std::size_t packedFloats() const override { return aligned(inner_->packedFloats()) + taps_.leftFloats(); }
  double reorderSeconds() const override { return inner_->reorderSeconds(); }
  double predictedSeconds() const override { return inner_->predictedSeconds(); }

  void pack(const float* weights, float* packed) const override {
    float* const left = packed + aligned(inner_->packedFloats());
    taps_.forEach([&](std::ptrdiff_t whole, std::ptrdiff_t part, std::ptrdiff_t floats) {
      if (part >= 0) std::copy_n(weights + whole, floats, left + part);
    });
    inner_->pack(left, packed);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override { inner_->run(buffers, executor); }

 private:
  KernelTaps taps_;
  std::unique_ptr<ConvPlan> inner_;
};

/// Backward to the weights: the gradient of the taps that are left is made in the workspace.
class CroppedGradient final : public ConvPlan {
 public:
  CroppedGradient(const KernelTaps& taps, bool accumulates, std::unique_ptr<ConvPlan> inner)
      : ConvPlan(inner->kernel()), taps_(taps), accumulates_(accumulates), inner_(std::move(inner)) {}

  std::size_t workspaceBytes() const override { return inner_->workspaceBytes() + taps_.leftFloats() * sizeof(float); }
  double reorderSeconds() const override { return inner_->reorderSeconds(); }
  double predictedSeconds() const override { return inner_->predictedSeconds(); }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    Buffers inner = buffers;
    inner.workspaceBytes = inner_->workspaceBytes();
    inner.result = reinterpret_cast<float*>(static_cast<std::byte*>(buffers.workspace) + inner.workspaceBytes);
    inner_->run(inner, executor);
    float* const result = buffers.result;
    std::ptrdiff_t zerosFrom = 0, end = 0;  // as long runs of them as there are
    taps_.forEach([&](std::ptrdiff_t whole, std::ptrdiff_t part, std::ptrdiff_t floats) {
      end = whole + floats;
      if (part < 0) return;
      if (accumulates_) {
        for (std::ptrdiff_t i = 0; i < floats; ++i) result[whole + i] += inner.result[part + i];
        return;
      }
      std::fill(result + zerosFrom, result + whole, 0.0F);
      std::copy_n(inner.result + part, floats, result + whole);
      zerosFrom = end;
    });
    if (!accumulates_) std::fill(result + zerosFrom, result + end, 0.0F);
  }

 private:
  KernelTaps taps_;
  bool accumulates_;
  std::unique_ptr<ConvPlan> inner_;
};

/// With one result in a dimension its stride means nothing but that there is no second one.
void dropStrides(Shape& s) {
  if (s.outHeight == 1) {
    s.strideHeight = s.height + 2 * s.padHeight - s.dilationHeight * (s.kernelHeight - 1);
  }
  if (s.outWidth == 1) s.strideWidth = s.width + 2 * s.padWidth - s.dilationWidth * (s.kernelWidth - 1);
  if (s.kernelHeight == 1) s.dilationHeight = 1;
  if (s.kernelWidth == 1) s.dilationWidth = 1;
}

/// Images whose pixels are one column become those whose pixels are one line, and so do those of products of groups, if
/// they are not large: in memory they are the same, and kernels go along lines.
void layPixelsInLine(Shape& s) {
  constexpr int mostPixels = 4096;
  if (s.width == 1 && s.outWidth == 1 && s.kernelWidth == 1) {
    std::swap(s.height, s.width);
    std::swap(s.outHeight, s.outWidth);
    std::swap(s.kernelHeight, s.kernelWidth);
    std::swap(s.strideHeight, s.strideWidth);
    std::swap(s.padHeight, s.padWidth);
    std::swap(s.dilationHeight, s.dilationWidth);
  }
  if (s.isProduct() && s.groups > 1 && std::int64_t{s.height} * s.width <= mostPixels) {
    s.width = s.outWidth = s.height * s.width;
    s.height = s.outHeight = 1;
  }
}

/// Of a kernel that covers the image, without padding, there is one result: a product of all values of the image, in
/// the order of NCHW, and weights in the order of KCRS, which is the same.
void layImageInPixel(Description& d) {
  Shape& s = d.shape;
  const bool coversImage = s.kernelHeight == s.height && s.kernelWidth == s.width && s.outHeight * s.outWidth == 1 &&
                           s.padHeight + s.padWidth == 0 && s.dilationHeight * s.dilationWidth == 1;
  constexpr std::int64_t mostValues = 1 << 20;
  const std::int64_t values = std::int64_t{s.inChannels} * s.height * s.width;
  if (!coversImage || d.inputLayout != taccLayoutNchw || d.weightLayout != taccWeightsKcrs || s.groups > 1 ||
      values > mostValues) {
    return;
  }
  s.inChannels = static_cast<int>(values);
  s.height = s.width = s.kernelHeight = s.kernelWidth = s.strideHeight = s.strideWidth = 1;
}

/// The channels of one pixel follow each other in NCHW as in NHWC, whose pixels kernels read as they lie. Pixels of one
/// channel do in NHWC as in NCHW, whose lines they read where the other side is of one channel, too.
void nameLayouts(Description& d) {
  const auto isNhwcToo = [](taccLayout_t layout, int pixels) { return layout == taccLayoutNchw && pixels == 1; };
  const Shape& s = d.shape;
  if (isNhwcToo(d.inputLayout, s.height * s.width)) d.inputLayout = taccLayoutNhwc;
  if (isNhwcToo(d.outputLayout, s.outHeight * s.outWidth)) d.outputLayout = taccLayoutNhwc;
  const bool isNhwc = d.inputLayout == taccLayoutNhwc && d.outputLayout == taccLayoutNhwc;
  if (isNhwc && s.inChannels == 1 && s.outChannels == 1 && s.height * s.width > 1 && s.outHeight * s.outWidth > 1)
    d.inputLayout = d.outputLayout = taccLayoutNchw;
}

}  // namespace

Description simplified(const Description& description) {
  const Crop crop = cropOf(description);
  Description result = description;
  result.shape = cropped(description.shape, crop);
  if (description.pass == taccConvBackwardWeights && !crop.isNone()) result.accumulate = false;  // makeCropped() does
  dropStrides(result.shape);
  layPixelsInLine(result.shape);
  layImageInPixel(result);
  nameLayouts(result);
  return result;
}

std::unique_ptr<ConvPlan> makeCropped(const Description& description, std::unique_ptr<ConvPlan> inner) {
  const Crop crop = cropOf(description);
  if (crop.isNone()) return inner;
  const KernelTaps taps(description, crop);
  if (description.pass != taccConvBackwardWeights) return std::make_unique<CroppedKernel>(taps, std::move(inner));
  return std::make_unique<CroppedGradient>(taps, description.accumulate, std::move(inner));
}

}  // namespace tacc::conv
