// Where a kernel over an image with few channels lies wholly inside it, the image is read where it is. The columns at
// its edges, whose kernels reach into the padding, are each taken as a line from top to bottom, with the taps that are
// inside: their pixels are as many lines apart as the stride says.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/shape.hpp"

namespace tacc::conv {

struct PixelRange {
  int from, to;
  int size() const { return to - from; }
};

struct FewChannelsInside {
  explicit FewChannelsInside(const Shape& s);

  bool isEmpty() const { return lines.size() == 0 || columns.size() == 0; }
  /// Where an image, of pixels of so many floats, has what the first value of the kernel multiplies, for the first line
  /// inside and any column: at edges it may be in the padding.
  std::ptrdiff_t placeOf(const Shape& s, std::ptrdiff_t pixel, int column) const;

  /// Of the output, those for which all lines, or all columns, of the kernel are inside; may be empty.
  PixelRange lines, columns;
  struct Edge {
    int column;       // of the output
    PixelRange taps;  // columns of the kernel
  };
  /// Those that find anything inside the image.
  std::vector<Edge> edges;
  /// Some columns of the output see nothing but padding.
  bool hasEmptyColumns = false;
};

}  // namespace tacc::conv
