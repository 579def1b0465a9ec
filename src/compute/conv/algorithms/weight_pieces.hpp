// What of the images the gradient of the weights is summed over at once.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/plan.hpp"

namespace tacc::conv {

/// Lines of an image, or all those of some images. The lines of `isCopied` are read from a copy of the last one.
struct WeightPiece {
  int image, images;
  int fromLine, toLine;
  bool isCopied;
};

/// Such that they stay in the L2 cache while they are used for all taps and blocks, but not so few that reading and
/// writing the result over again costs more. The output channels are gone through in `outParts` tiles of `blocks`
/// blocks. `isLastCopied`: the last line of the last image is a piece of its own.
std::vector<WeightPiece> cutWeightPieces(const Description& d, double blocks, std::size_t outParts, bool isLastCopied);

/// Such that what a tile of a block and a half sees of a piece stays in the L2 cache: all tiles go through the lines of
/// a piece before the next one's.
std::vector<WeightPiece> cutWeightLines(const Shape& s);

}  // namespace tacc::conv
