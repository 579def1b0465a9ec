#include "compute/conv/algorithms/few_channels_inside.hpp"

#include <algorithm>

namespace tacc::conv {
namespace {

/// Of `outs` outputs those whose kernels are inside `size` pixels.
PixelRange insideOf(int outs, int taps, int stride, int dilation, int pad, int size) {
  const int first = ceilDivide(pad, stride);
  const int room = size + pad - (taps - 1) * dilation - 1;  // where the last kernel that is inside may begin
  const int end = room < 0 ? 0 : room / stride + 1;
  return {std::min(first, outs), std::clamp(end, std::min(first, outs), outs)};
}

}  // namespace

FewChannelsInside::FewChannelsInside(const Shape& s)
    : lines(insideOf(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height)),
      columns(insideOf(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width)) {
  for (int column = 0; column < s.outWidth; ++column) {
    if (column >= columns.from && column < columns.to) continue;
    const int first = column * s.strideWidth - s.padWidth;
    const int from = first >= 0 ? 0 : ceilDivide(-first, s.dilationWidth);
    const int end = s.width <= first ? 0 : std::min(s.kernelWidth, ceilDivide(s.width - first, s.dilationWidth));
    if (from < end) {
      edges.push_back({column, {from, end}});
    } else {
      hasEmptyColumns = true;
    }
  }
}

}  // namespace tacc::conv
