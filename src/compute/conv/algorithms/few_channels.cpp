#include "compute/conv/algorithms/few_channels.hpp"

#include <algorithm>
#include <cstring>

#include "compute/conv/cost.hpp"

namespace tacc::conv {
namespace {

/// Zeros that are written without asking how many are needed: those that are too many are overwritten, as what lies
/// behind them is written later, or is the end of the scratch.
constexpr std::ptrdiff_t clearedAtOnce = 16;

void clearMargin(float* to, std::ptrdiff_t floats) {
  if (floats == 0) return;
  if (floats <= clearedAtOnce) {
    std::fill_n(to, clearedAtOnce, 0.0F);
  } else {
    std::fill_n(to, floats, 0.0F);
  }
}

}  // namespace

bool isFewChannels(const Description& d, bool isDilated) {
  const bool isOfPlanes = d.inputLayout == taccLayoutNchw || d.shape.inChannels == 1;
  const bool canBeApart = isDilated && isOfPlanes;
  return (d.inputLayout == taccLayoutNchw || d.inputLayout == taccLayoutNhwc) && d.shape.inChannels <= fewChannels &&
         d.shape.groups == 1 && (d.shape.dilationWidth == 1 || canBeApart);
}

FewChannelsImage::FewChannelsImage(const Description& d, bool isWhole)
    : shape_(d.shape),
      isNhwc_(d.inputLayout == taccLayoutNhwc && d.shape.inChannels > 1),  // pixels of one channel are a plane
      isWhole_(isWhole),
      isCopied_(shape_.padHeight != 0 || shape_.padWidth != 0 || phases() != 1) {
  const int width = roundUp(shape_.width + 2 * shape_.padWidth, phases());
  line_ = std::ptrdiff_t{width} * pixel();
  linesAtOnce_ = shape_.outHeight;
  if (!isCopied_) {
    plane_ = line_ * shape_.height;
    return;
  }
  constexpr std::ptrdiff_t scratchBytes = 96 * 1024;
  const std::ptrdiff_t ofOutputLine =
      line_ * blocks() * shape_.strideHeight * static_cast<std::ptrdiff_t>(sizeof(float));
  linesAtOnce_ = static_cast<int>(std::clamp<std::ptrdiff_t>(scratchBytes / ofOutputLine, 1, shape_.outHeight));
  const int lines = (linesAtOnce_ - 1) * shape_.strideHeight + (shape_.kernelHeight - 1) * shape_.dilationHeight + 1;
  plane_ = line_ * lines;
  scratchFloats_ = static_cast<std::size_t>((plane_ * blocks() + 15) / 16 * 16 + clearedAtOnce);
}

double FewChannelsImage::copyCycles() const {
  if (!isCopied_) return 0;
  const double perLine = 20, floatsOfCycle = phases() == 1 ? 8 : 0.5;
  const int lines = linesAtOnce_ * shape_.strideHeight + (shape_.kernelHeight - 1) * shape_.dilationHeight;
  const double read = std::min(1.0, double(shape_.kernelHeight) / shape_.strideHeight);
  const double parts = double(shape_.outHeight) / linesAtOnce_;
  return parts * read * lines * blocks() * (perLine + static_cast<double>(line_) / floatsOfCycle);
}

FewChannelsImage::Inside FewChannelsImage::insideFrom(int line, int endLine) const {
  const auto insideOf = [this](int y) {
    const int first = y * shape_.strideHeight - shape_.padHeight;  // that the kernel's first line reads
    const int before = firstInside(first, shape_.dilationHeight);
    const int end = endInside(first, shape_.dilationHeight, shape_.height);
    return Inside{1, std::min(before, shape_.kernelHeight), std::min(end, shape_.kernelHeight)};
  };
  Inside inside = insideOf(line);
  while (line + inside.lines < endLine) {
    const Inside next = insideOf(line + inside.lines);
    if (next.first != inside.first || next.end != inside.end) break;
    ++inside.lines;
  }
  return inside;
}

double FewChannelsImage::insidePart() const {
  return insidePairs(shape_.outHeight, shape_.kernelHeight, shape_.strideHeight, shape_.dilationHeight,
                     shape_.padHeight, shape_.height) /
         (double(shape_.outHeight) * shape_.kernelHeight);
}

bool FewChannelsImage::isLineRead(int line) const {
  if (shape_.kernelHeight >= shape_.strideHeight) return true;
  for (int r = 0; r < shape_.kernelHeight; ++r) {
    const int first = r * shape_.dilationHeight;
    if (line >= first && (line - first) % shape_.strideHeight == 0) return true;
  }
  return false;
}

void FewChannelsImage::copyLine(const float* from, float* to) const {
  const std::ptrdiff_t margin = shape_.padWidth * pixel(), floats = shape_.width * pixel();
  clearMargin(to, margin);
  std::memcpy(to + margin, from, static_cast<std::size_t>(floats) * sizeof(float));
  clearMargin(to + margin + floats, margin);
}

void FewChannelsImage::copyPhases(const float* from, float* to) const {
  for (int phase = 0; phase < phases(); ++phase) {
    std::ptrdiff_t column = phase - shape_.padWidth;
    for (std::ptrdiff_t i = 0; i < phaseLine(); ++i, column += phases()) {
      *to++ = column >= 0 && column < shape_.width ? from[column] : 0.0F;
    }
  }
}

const float* FewChannelsImage::lines(const float* image, int from, int to, float* scratch) const {
  const std::ptrdiff_t sourceLine = shape_.width * pixel();
  const int first = from * shape_.strideHeight - shape_.padHeight;
  if (!isCopied_) return image + first * sourceLine;
  const int count = (to - from - 1) * shape_.strideHeight + (shape_.kernelHeight - 1) * shape_.dilationHeight + 1;
  for (int block = 0; block < blocks(); ++block) {
    const float* const source = image + block * sourceLine * shape_.height;
    for (int i = 0; i < count; ++i) {
      if (!isLineRead(i)) continue;
      float* const target = scratch + block * plane_ + i * line_;
      const int y = first + i;
      if (y < 0 || y >= shape_.height) {
        std::fill_n(target, line_, 0.0F);
        continue;
      }
      if (phases() > 1) {
        copyPhases(source + y * sourceLine, target);
      } else {
        copyLine(source + y * sourceLine, target);
      }
    }
  }
  return scratch;
}

}  // namespace tacc::conv
