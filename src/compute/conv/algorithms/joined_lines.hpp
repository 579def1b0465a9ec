// How the gradients of weights of few channels are cut into tiles of several lines of the kernel, of one channel or of
// several: a line by itself has few sums for each vector of the output's gradient that is read.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compute/conv/algorithms/weight_tiles.hpp"
#include "compute/conv/kernels/joined_lines_kernels.hpp"

namespace tacc::conv {

struct JoinedTiles {
  std::vector<WeightTiles::Part> blockParts;  // of the blocks of output channels, the larger ones first
  /// Of the lines: the fewest nearly equal tiles, of one line too where there is nothing to join it with.
  std::vector<WeightTiles::Part> lineParts;
  int lines;                                         // of a tile, at most
  double cyclesOfPixel, cyclesOfLine, cyclesOfCall;  // of all tiles
};

/// The cut that the model finds fastest of `lines` lines of `columns` values each, for calls that see so many lines of
/// so many pixels; without a value where registers hold no two lines.
std::optional<JoinedTiles> chooseJoinedTiles(const KernelSet& kernels, int outBlocks, int lines, int columns,
                                             double linesOfCall, double pixels);

}  // namespace tacc::conv
