#include "compute/conv/algorithms/depthwise_three.hpp"

#include <algorithm>

#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/cost.hpp"

namespace tacc::conv {
namespace {

constexpr std::ptrdiff_t bytesOfPixel = blockLength * sizeof(float);

bool isThreeWide(const Description& d) {
  const Shape& s = d.shape;
  return s.isDepthwise() && d.inputLayout == taccLayoutNchw16c && d.outputLayout == taccLayoutNchw16c &&
         !readsBfloat16(d) && s.kernelHeight <= mostThreeRows && s.kernelWidth == 3 &&
         s.strideHeight == s.strideWidth && s.strideWidth <= 2 && s.dilationHeight == 1 && s.dilationWidth == 1 &&
         s.padHeight <= std::min(s.padWidth, s.kernelHeight - 1) && s.padWidth <= 1 && s.height >= s.kernelHeight - 1;
}

/// What is outside of lines that begin with so many columns of padding.
ThreeEnds endsOf(const Shape& s) {
  const int columns = (s.outWidth - 1) * s.strideWidth + s.kernelWidth;
  return s.padWidth == 0 ? noneOutside : columns - s.padWidth > s.width ? bothOutside : leftOutside;
}

/// Whether the L1 cache has a line of the gradient, with all that it is multiplied with, for the second half of a block
/// too. Longer lines come again from the caches behind it, with a stride of 2 for few products.
bool keepsLinesOfStride(const Shape& s, const KernelSet& kernels) {
  constexpr std::ptrdiff_t mostBytes = 28 * 1024;
  const std::ptrdiff_t pixels = std::ptrdiff_t{s.kernelHeight} * s.width + s.outWidth;
  return areNearHalves(kernels.fmaLanes) && pixels * bytesOfPixel <= mostBytes;
}

}  // namespace

DepthwiseThree::DepthwiseThree(const Description& d, DepthwiseThreeKernel kernel, const DepthwiseThreeCall& call)
    : kernel_(kernel),
      call_(call),
      channels_(d.shape.inChannels),
      height_(static_cast<std::size_t>(d.shape.outHeight)) {
  const Shape& s = d.shape;
  // Of what comes from behind the L2 cache the blocks of an image follow each other.
  const double bytes = double(s.batch) * s.inBlocks() * double(s.inPlane() + s.outPlane()) * sizeof(float);
  imagesAtOnce_ = staysInL2(static_cast<std::size_t>(bytes)) ? static_cast<std::size_t>(s.batch) : 1;
}

std::optional<DepthwiseThree> DepthwiseThree::find(const Description& d, const KernelSet& kernels) {
  if (!isThreeWide(d)) return std::nullopt;
  const Shape& s = d.shape;
  if (s.outWidth > longestThreeLine && s.strideWidth == 2 && !keepsLinesOfStride(s, kernels)) return std::nullopt;
  const DepthwiseThreeKernels& all = depthwiseThreeKernels(kernels);
  DepthwiseThreeCall call{};
  call.inputBlock = s.inPlane();
  call.inputImage = s.inBlocks() * s.inPlane();
  call.gradientBlock = s.outPlane();
  call.gradientImage = s.outBlocks() * s.outPlane();
  call.inputHeight = s.height;
  call.inputWidth = s.width;
  call.gradientWidth = s.outWidth;
  call.pad = s.padHeight;
  DepthwiseThreeKernel kernel = nullptr;
  if (s.outWidth <= longestThreeLine) {
    kernel = all.line[s.kernelHeight][s.strideWidth][endsOf(s)][s.outWidth];
  } else {
    const int strips = ceilDivide(s.outWidth, longestOfThree), longest = ceilDivide(s.outWidth, strips);
    call.shortStrips = strips * longest - s.outWidth;
    call.longStrips = strips - call.shortStrips;
    kernel = all.strips[s.kernelHeight][s.strideWidth][endsOf(s)][longest];
  }
  if (kernel == nullptr) return std::nullopt;
  return DepthwiseThree(d, kernel, call);
}

void DepthwiseThree::sum(const Buffers& buffers, TaskPart blocks, TaskPart lines, bool accumulates, float* sums) const {
  DepthwiseThreeCall call = call_;
  call.blocks = static_cast<int>(blocks.to - blocks.from);
  call.channels = channels_ - static_cast<int>(blocks.from) * blockLength;
  call.sums = sums;
  call.accumulate = accumulates;
  for (std::size_t line = lines.from; line < lines.to;) {
    const auto image = static_cast<std::ptrdiff_t>(line / height_);
    const std::size_t first = line % height_;
    const std::size_t whole = first == 0 ? std::min(imagesAtOnce_, (lines.to - line) / height_) : 0;
    const std::size_t end = whole > 0 ? height_ : std::min(height_, first + lines.to - line);
    const auto block = static_cast<std::ptrdiff_t>(blocks.from);
    call.input = buffers.input + image * call.inputImage + block * call.inputBlock;
    call.gradient = buffers.outputGradient + image * call.gradientImage + block * call.gradientBlock;
    call.images = static_cast<int>(std::max<std::size_t>(1, whole));
    call.from = static_cast<int>(first);
    call.to = static_cast<int>(end);
    kernel_(call);
    call.accumulate = true;
    line += static_cast<std::size_t>(call.images) * (end - first);
  }
}

double DepthwiseThree::cycles(const Description& d, const KernelSet& kernels) {
  constexpr double ofProduct = 1.2, ofLine = 4, ofBlock = 40;
  const Shape& s = d.shape;
  const double perCycle = kernels.fmaLanes == blockLength && !hasTwoWideUnits(kernels) ? 1 : 2;
  const double vectors = double(blockLength) / kernels.fmaLanes;
  const double lines =
      insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
  const double columns = insidePairs(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width);
  return (ofProduct * lines * columns / perCycle + ofLine * s.outHeight) * vectors + ofBlock;
}

}  // namespace tacc::conv
