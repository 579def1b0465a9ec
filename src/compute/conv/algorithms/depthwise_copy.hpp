// Channel-wise lines from a copy. Where pixels of NHWC are 2 KiB or a multiple of it apart, those of a line share one
// or two sets of the L1 cache: a line of results finds none of what the one above it has read. In a copy of some blocks
// of channels pixels follow each other, and the copy reads each once, in the order of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/layout.hpp"

namespace tacc::conv {

/// Lines of the input that results of a channel-wise call depend on.
struct DepthwiseLinesRead {
  int from, to;
};
inline DepthwiseLinesRead linesRead(const DepthwiseCall& call) {
  const int reach = call.dilationHeight * (call.kernelHeight - 1);
  int first = call.from * call.strideHeight - call.padHeight;
  int last = (call.to - 1) * call.strideHeight - call.padHeight + reach;
  if (call.spreadsLines) {
    first = std::max(0, call.from + call.padHeight - reach) / call.strideHeight;
    last = (call.to - 1 + call.padHeight) / call.strideHeight;
  }
  first = std::clamp(first, 0, call.inputHeight);
  return {first, std::clamp(last + 1, first, call.inputHeight)};
}

/// At most, for that many lines of results.
inline int mostLinesRead(const DepthwiseCall& call, int results) {
  const int reach = call.dilationHeight * (call.kernelHeight - 1);
  const int most =
      call.spreadsLines ? (results - 1 + reach) / call.strideHeight + 2 : (results - 1) * call.strideHeight + reach + 1;
  return std::min(call.inputHeight, most);
}

/// Numbers from pixel to pixel of a copy: an odd number of lines of the cache, so that pixels use all sets.
constexpr std::ptrdiff_t pixelOfCopy(int blocks) { return std::ptrdiff_t{blocks | 1} * blockLength; }

/// The same call, reading from `copy`, which it fills. Numbers are of float32 or bfloat16.
inline DepthwiseCall withCopy(const DepthwiseCall& call, float* copy, std::size_t bytesOfNumber) {
  const DepthwiseLinesRead lines = linesRead(call);
  const std::ptrdiff_t pixels = std::ptrdiff_t{lines.to - lines.from} * call.inputWidth;
  const std::ptrdiff_t step = pixelOfCopy(call.blocks);
  const auto bytes = static_cast<std::ptrdiff_t>(bytesOfNumber);
  const auto* from = reinterpret_cast<const std::byte*>(call.input) +
                     std::ptrdiff_t{lines.from} * call.inputWidth * call.inputPixel * bytes;
  auto* to = reinterpret_cast<std::byte*>(copy);
  for (std::ptrdiff_t pixel = 0; pixel < pixels; ++pixel, from += call.inputPixel * bytes, to += step * bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(call.blocks) * blockLength * bytesOfNumber);
  }
  DepthwiseCall ofCopy = call;
  ofCopy.input = copy;
  ofCopy.inputPixel = step;
  ofCopy.inputHeight = lines.to - lines.from;
  ofCopy.padHeight += call.spreadsLines ? -lines.from * call.strideHeight : lines.from;
  return ofCopy;
}

}  // namespace tacc::conv
