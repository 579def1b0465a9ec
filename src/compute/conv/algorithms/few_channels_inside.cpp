#include "compute/conv/algorithms/few_channels_inside.hpp"

#include <algorithm>

namespace tacc::conv {
namespace {

/// Of `outs` outputs those whose kernels are inside `size` pixels.
PixelRange insideOf(int outs, int taps, int stride, int dilation, int pad, int size) {
  const int first = std::min(outs, firstInside(-pad, stride));
  return {first, std::clamp(endInside((taps - 1) * dilation - pad, stride, size), first, outs)};
}

}  // namespace

FewChannelsInside::FewChannelsInside(const Shape& s)
    : lines(insideOf(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height)),
      columns(insideOf(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width)) {
  for (int column = 0; column < s.outWidth; ++column) {
    if (column >= columns.from && column < columns.to) continue;
    const int first = column * s.strideWidth - s.padWidth;
    const int from = firstInside(first, s.dilationWidth);
    const int end = std::min(s.kernelWidth, endInside(first, s.dilationWidth, s.width));
    if (from < end) {
      edges.push_back({column, {from, end}});
    } else {
      hasEmptyColumns = true;
    }
  }
}

std::ptrdiff_t FewChannelsInside::placeOf(const Shape& s, std::ptrdiff_t pixel, int column) const {
  const int line = lines.from * s.strideHeight - s.padHeight;
  return (std::ptrdiff_t{line} * s.width + column * s.strideWidth - s.padWidth) * pixel;
}

}  // namespace tacc::conv
