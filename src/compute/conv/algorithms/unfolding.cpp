#include "compute/conv/algorithms/unfolding.hpp"

#include <algorithm>
#include <cstring>

namespace tacc::conv {

/// Of a tap: what it adds to a column, and the columns of the output whose value is inside.
struct Unfolding::Columns {
  int dx, from, to;
};

Unfolding::Columns Unfolding::columnsOf(int tap) const {
  const int dx = tap * shape_.dilationWidth - shape_.padWidth;
  const int from = std::min(shape_.outWidth, firstInside(dx, shape_.strideWidth));
  return {dx, from, std::clamp(endInside(dx, shape_.strideWidth, shape_.width), from, shape_.outWidth)};
}

void Unfolding::copy(const float* channels, std::ptrdiff_t first, std::ptrdiff_t count, float* to,
                     std::ptrdiff_t line) const {
  const Shape& s = shape_;
  const std::ptrdiff_t plane = std::ptrdiff_t{s.height} * s.width;
  for (int c = 0; c < s.inPerGroup(); ++c) {
    for (int r = 0; r < s.kernelHeight; ++r) {
      const int dy = r * s.dilationHeight - s.padHeight;
      for (int t = 0; t < s.kernelWidth; ++t, to += line) {
        const Columns columns = columnsOf(t);
        if (isShifted()) {
          copyShifted(channels + c * plane, columns, dy, first, count, to);
        } else {
          copyLines(channels + c * plane, columns, dy, first, count, to);
        }
      }
    }
  }
}

/// All at once, and then zeros in the columns that lie outside.
void Unfolding::copyShifted(const float* plane, const Columns& columns, int dy, std::ptrdiff_t first,
                            std::ptrdiff_t count, float* to) const {
  const std::ptrdiff_t width = shape_.width, floats = shape_.height * width;
  const std::ptrdiff_t shift = first + dy * width + columns.dx;
  const std::ptrdiff_t begin = std::clamp<std::ptrdiff_t>(-shift, 0, count);
  const std::ptrdiff_t end = std::clamp<std::ptrdiff_t>(floats - shift, begin, count);
  std::fill(to, to + begin, 0.0F);
  if (end > begin)
    std::memcpy(to + begin, plane + shift + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  std::fill(to + end, to + count, 0.0F);
  clearOutside(columns, first, count, to);
}

/// In the columns that lie outside, of lines as long as the input's.
void Unfolding::clearOutside(const Columns& columns, std::ptrdiff_t first, std::ptrdiff_t count, float* pixels) const {
  const std::ptrdiff_t width = shape_.width, last = first + count;
  const auto clear = [&](std::ptrdiff_t from, std::ptrdiff_t behind) {
    if (from == behind) return;
    for (std::ptrdiff_t line = first / width * width; line < last; line += width) {
      const std::ptrdiff_t stop = std::min(last, line + behind);
      for (std::ptrdiff_t pixel = std::max(first, line + from); pixel < stop; ++pixel) pixels[pixel - first] = 0;
    }
  };
  clear(0, columns.from);
  clear(columns.to, width);
}

void Unfolding::addBack(float* lines, std::ptrdiff_t line, std::ptrdiff_t first, std::ptrdiff_t count, int channels,
                        float* to) const {
  const Shape& s = shape_;
  const std::ptrdiff_t plane = std::ptrdiff_t{s.height} * s.width;
  for (int c = 0; c < channels; ++c, to += plane) {
    for (int r = 0; r < s.kernelHeight; ++r) {
      const int dy = r * s.dilationHeight - s.padHeight;
      for (int t = 0; t < s.kernelWidth; ++t, lines += line) {
        const Columns columns = columnsOf(t);
        if (!isShifted()) {
          addLines(lines, columns, dy, first, count, to);
          continue;
        }
        clearOutside(columns, first, count, lines);
        const std::ptrdiff_t shift = first + dy * std::ptrdiff_t{s.width} + columns.dx;
        const std::ptrdiff_t begin = std::clamp<std::ptrdiff_t>(-shift, 0, count);
        const std::ptrdiff_t end = std::clamp<std::ptrdiff_t>(plane - shift, begin, count);
        for (std::ptrdiff_t pixel = begin; pixel < end; ++pixel) to[shift + pixel] += lines[pixel];
      }
    }
  }
}

void Unfolding::addLines(const float* from, const Columns& columns, int dy, std::ptrdiff_t first, std::ptrdiff_t count,
                         float* plane) const {
  const Shape& s = shape_;
  int x = static_cast<int>(first % s.outWidth);
  for (auto y = static_cast<int>(first / s.outWidth); count > 0; ++y, x = 0) {
    const int end = static_cast<int>(std::min<std::ptrdiff_t>(s.outWidth, x + count));
    const int line = y * s.strideHeight + dy;
    if (line >= 0 && line < s.height) {
      const int begin = std::clamp(columns.from, x, end);
      const int behind = std::clamp(columns.to, begin, end);
      const std::ptrdiff_t pixels = std::ptrdiff_t{line} * s.width + columns.dx;
      if (s.strideWidth == 1) {
        for (int column = begin; column < behind; ++column) plane[pixels + column] += from[column - x];
      } else {
        for (int column = begin; column < behind; ++column) {
          plane[pixels + std::ptrdiff_t{column} * s.strideWidth] += from[column - x];
        }
      }
    }
    from += end - x;
    count -= end - x;
  }
}

void Unfolding::copyLines(const float* plane, const Columns& columns, int dy, std::ptrdiff_t first,
                          std::ptrdiff_t count, float* to) const {
  const Shape& s = shape_;
  const auto firstLine = static_cast<int>(first / s.outWidth);
  int x = static_cast<int>(first % s.outWidth);
  for (int y = firstLine; count > 0; ++y, x = 0) {
    const int end = static_cast<int>(std::min<std::ptrdiff_t>(s.outWidth, x + count));
    const int line = y * s.strideHeight + dy;
    const bool isInside = line >= 0 && line < s.height;
    const int from = isInside ? std::clamp(columns.from, x, end) : end;
    const int behind = isInside ? std::clamp(columns.to, from, end) : end;
    const std::ptrdiff_t pixels = std::ptrdiff_t{line} * s.width + columns.dx;
    for (int column = x; column < from; ++column) to[column - x] = 0;
    if (s.strideWidth == 1) {
      for (int column = from; column < behind; ++column) to[column - x] = plane[pixels + column];
    } else {
      for (int column = from; column < behind; ++column)
        to[column - x] = plane[pixels + std::ptrdiff_t{column} * s.strideWidth];
    }
    for (int column = behind; column < end; ++column) to[column - x] = 0;
    to += end - x;
    count -= end - x;
  }
}

double Unfolding::cycles(std::ptrdiff_t pixelsAtOnce) const {
  if (!isNeeded()) return 0;
  // Of a line of the output that has other neighbours than the input's, of one that is not copied whole, and of pixels.
  constexpr double ofCall = 30, ofLine = 20, ofEdges = 5, ofPixel = 0.2, ofStridedPixel = 1.2;
  const double pixels = double(shape_.outHeight) * shape_.outWidth;
  const double lines = shape_.outHeight * (!isShifted() ? ofLine : shape_.kernelWidth > 1 ? ofEdges : 0);
  return values() * (ofCall * pixels / static_cast<double>(pixelsAtOnce) + lines +
                     pixels * (shape_.strideWidth == 1 ? ofPixel : ofStridedPixel));
}

}  // namespace tacc::conv
