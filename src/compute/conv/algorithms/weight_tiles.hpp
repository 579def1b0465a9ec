// How the gradients of weights are cut into tiles of registers.
#pragma once

#include <cstddef>
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
  /// Behind these blocks of output channels tiles of a block and a half follow each other. Every other one begins with
  /// the second half of a block. Where there is half a block of output channels, it is the only tile.
  int halfTiles = 0, halvesOfTile = 3;
  std::vector<Part> halfRowParts, lastHalfRowParts;  // their rows
  double cyclesOfPixel;                              // for one tap and all channels
};

/// The cut that the model finds fastest; input values come in blocks of `blockRows`, and a tile sees about `pixels`
/// pixels before it is written. `besideTile`: cycles that a tile costs beside them, as its call and its lines do, where
/// that is more for more tiles.
WeightTiles chooseWeightTiles(const KernelSet& kernels, int outBlocks, int inValues, double pixels,
                              int blockRows = blockLength, double besideTile = 0);

/// The same, but as many of `outChannels` in tiles of a block and a half, or half a one, as there are places for, where
/// the kernels have these and that is faster. A last block of at most half a block is computed by half then.
/// `isProduct`: of one tap, where equal tiles of all full blocks of input values share a call, which of few pixels is
/// worth more than larger tiles.
WeightTiles chooseHalfTiles(const KernelSet& kernels, int outChannels, int inValues, double pixels, bool isProduct);

/// Tiles of half a block, of so few output channels, and all rows of as many input values; no `halfTiles` where the
/// kernels have none, or there are more channels.
WeightTiles chooseHalfTile(const KernelSet& kernels, int outChannels, int inValues, double pixels);

/// The fewest nearly equal parts of at most `limit`, the larger ones first.
std::vector<WeightTiles::Part> cutParts(int count, int limit);

/// Tiles of one call: those of a block of input values and the same results, if they have equally many rows.
bool areEqual(const std::vector<WeightTiles::Part>& parts);

/// Tiles of fewer blocks, until there are as many as workers: a lone tile would keep one of them busy alone. Unless,
/// with `vectors` in a block, that changed how many sums a kernel makes of each value, and so the bits.
void dealOut(WeightTiles& tiles, std::size_t workers, int vectors);

}  // namespace tacc::conv
