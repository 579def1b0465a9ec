// How the gradients of weights are cut into tiles of registers.
#pragma once

#include <vector>

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

struct WeightTiles {
  struct Part {
    int from, to;
    int size() const { return to - from; }
  };
  std::vector<Part> blockParts;    // of the blocks of output channels, the larger ones first
  std::vector<Part> rowParts;      // of a full block of input values
  std::vector<Part> lastRowParts;  // of the last one, which may have fewer
  double cyclesOfPixel;            // for one tap and all channels
};

/// The cut that the model finds fastest; input values come in blocks of `blockRows`, and a tile sees about `pixels`
/// pixels before it is written.
WeightTiles chooseWeightTiles(const KernelSet& kernels, int outBlocks, int inValues, double pixels,
                              int blockRows = blockLength);

/// The first output coordinate whose input coordinate, at * stride + offset, is not before 0.
constexpr int firstInside(int offset, int stride) { return offset >= 0 ? 0 : (-offset + stride - 1) / stride; }
/// The end of those whose input coordinate is before `size`.
constexpr int endInside(int offset, int stride, int size) {
  return size - offset <= 0 ? 0 : (size - offset + stride - 1) / stride;
}

}  // namespace tacc::conv
