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
