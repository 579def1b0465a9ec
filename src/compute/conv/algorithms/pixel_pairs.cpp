#include "compute/conv/algorithms/pixel_pairs.hpp"

#include <algorithm>

#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

/// Numbers that one task joins.
constexpr std::size_t numbersOfTask = 16 * 1024;

/// Pairs that no tap shares with another one.
bool areCompact(const Description& d) {
  const Shape& s = d.shape;
  // Half a pixel is a number of floats.
  const auto areEven = [](taccLayout_t layout, int channels) { return layout != taccLayoutNhwc || channels % 2 == 0; };
  constexpr std::int64_t most = 1 << 30;  // are counted in int
  return s.kernelHeight * s.kernelWidth == 1 && s.padHeight + s.padWidth == 0 &&
         std::int64_t{s.outHeight} * s.outWidth < most && areEven(d.inputLayout, s.inChannels) &&
         areEven(d.outputLayout, s.outChannels);
}

Description joinedOf(Description d) {
  d.isBfloat16 = false;
  d.pairs = {.areRead = true, .areWritten = false, .areCompact = areCompact(d)};
  if (!d.pairs.areCompact) return d;
  Shape& s = d.shape;
  s.height = s.outHeight;
  s.width = s.outWidth;
  s.strideHeight = s.strideWidth = 1;
  return d;
}

}  // namespace

PixelPairs::PixelPairs(const Description& d, const KernelSet& kernels)
    : joined_(joinedOf(d)),
      kernels_(kernels),
      outWidth_(d.shape.outWidth),
      outPixels_(d.shape.outHeight * d.shape.outWidth),
      input_(tensorOf(d.inputLayout, d.shape.inChannels, d.shape.height, d.shape.width, d.shape.strideHeight,
                      d.shape.strideWidth)),
      gradient_(tensorOf(d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth, 1, 1)) {}

PixelPairs::Tensor PixelPairs::tensorOf(taccLayout_t layout, int channels, int height, int width, int strideHeight,
                                        int strideWidth) const {
  Tensor tensor{};
  const int batch = joined_.shape.batch;
  tensor.numbers = tensorFloats(layout, batch, channels, height, width);
  tensor.steps = blockSteps(layout, channels, height, width);
  tensor.width = width;
  tensor.strideHeight = strideHeight;
  tensor.strideWidth = strideWidth;
  if (!joined_.pairs.areCompact) {
    tensor.floats = tensor.numbers;
    return tensor;
  }
  tensor.planes = layout == taccLayoutNhwc ? batch : batch * ceilDivide(channels, blockLength);
  tensor.plane = std::ptrdiff_t{height} * width * tensor.steps.pixel;
  tensor.copyPlane = std::ptrdiff_t{ceilDivide(outPixels_, 2)} * tensor.steps.pixel;
  tensor.floats = static_cast<std::size_t>(tensor.planes) * static_cast<std::size_t>(tensor.copyPlane);
  return tensor;
}

void PixelPairs::joinInput(const std::uint16_t* from, float* to, const TaskExecutor& executor) const {
  join(input_, from, to, executor);
}

void PixelPairs::joinGradient(const std::uint16_t* from, float* to, const TaskExecutor& executor) const {
  join(gradient_, from, to, executor);
}

void PixelPairs::join(const Tensor& tensor, const std::uint16_t* from, float* to, const TaskExecutor& executor) const {
  if (!joined_.pairs.areCompact) {
    joinEach(tensor, from, to, executor);
    return;
  }
  const auto pairs = static_cast<std::size_t>(ceilDivide(outPixels_, 2));
  const std::size_t numbersOfPlane = 2 * pairs * static_cast<std::size_t>(tensor.steps.pixel);
  const std::size_t pieces = (numbersOfPlane + numbersOfTask - 1) / numbersOfTask;
  executor.forEach(static_cast<std::size_t>(tensor.planes) * pieces, [&](std::size_t index, int) {
    const TaskPart part = partOf(pairs, pieces, index % pieces);
    const auto plane = static_cast<std::ptrdiff_t>(index / pieces);
    joinSome(tensor, from + plane * tensor.plane, to + plane * tensor.copyPlane, static_cast<int>(part.from),
             static_cast<int>(part.to));
  });
}

void PixelPairs::joinEach(const Tensor& tensor, const std::uint16_t* from, float* to,
                          const TaskExecutor& executor) const {
  // The last pixels have none behind them.
  const auto distance = static_cast<std::size_t>(tensor.steps.pixel * tensor.strideWidth);
  const std::size_t joined = tensor.numbers - std::min(tensor.numbers, distance);
  const std::size_t pieces = (tensor.numbers + numbersOfTask - 1) / numbersOfTask;
  executor.forEach(pieces, [&](std::size_t index, int) {
    const TaskPart part = partOf(tensor.numbers, pieces, index);
    const std::size_t middle = std::clamp(joined, part.from, part.to);
    if (part.from < middle)
      kernels_.joinPairs({from + part.from, from + part.from + distance, 0, to + part.from, 1, middle - part.from});
    if (middle < part.to) kernels_.joinPairs({from + middle, nullptr, 0, to + middle, 1, part.to - middle});
  });
}

void PixelPairs::joinSome(const Tensor& tensor, const std::uint16_t* from, float* to, int first, int end) const {
  const std::ptrdiff_t numbers = tensor.steps.pixel;
  // Without strides all lines are one.
  const bool isOneLine = tensor.strideHeight * tensor.strideWidth == 1;
  const int width = isOneLine ? outPixels_ : outWidth_;
  const std::ptrdiff_t step = tensor.strideWidth * numbers;
  const std::ptrdiff_t line = std::ptrdiff_t{tensor.strideHeight} * tensor.width * numbers;
  const auto at = [&](int pixel) { return from + pixel / width * line + pixel % width * step; };
  for (int pair = first; pair < end;) {
    const int pixel = 2 * pair, left = width - pixel % width;
    const int pairs = std::min(end - pair, std::max(1, left / 2));
    const std::uint16_t* const second = pixel + 1 < outPixels_ ? at(pixel + 1) : nullptr;
    kernels_.joinPairs({at(pixel), second, 2 * step, to + pair * numbers, pairs, static_cast<std::size_t>(numbers)});
    pair += pairs;
  }
}

}  // namespace tacc::conv
