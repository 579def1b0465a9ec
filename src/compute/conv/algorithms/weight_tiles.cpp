#include "compute/conv/algorithms/weight_tiles.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// The fewest nearly equal parts of at most `limit`, the larger ones first.
std::vector<WeightTiles::Part> cut(int count, int limit) {
  const int parts = ceilDivide(count, limit);
  std::vector<WeightTiles::Part> result;
  int from = 0;
  for (int i = 0; i < parts; ++i) {
    const int size = partSize(count, parts, i);
    result.push_back({from, from + size});
    from += size;
  }
  return result;
}

}  // namespace

WeightTiles chooseWeightTiles(const KernelSet& kernels, int outBlocks, int inValues, double pixels, int blockRows) {
  const auto cycles = [&](const WeightTiles::Part& blocks, const WeightTiles::Part& rows) {
    return gradientCycles(kernels, blocks.size(), rows.size()) +
           tileCycles(kernels, blocks.size(), rows.size()) / pixels;
  };
  WeightTiles best{};
  for (int blocks = 1; blocks <= std::min(maxBlocks, outBlocks); ++blocks) {
    const int limit = kernels.rowLimit[blocks];
    if (limit == 0) continue;
    WeightTiles tiles{};
    tiles.blockParts = cut(outBlocks, blocks);
    tiles.rowParts = cut(std::min(blockRows, inValues), limit);
    const int last = inValues % blockRows;
    if (last != 0) tiles.lastRowParts = cut(last, limit);
    const int fullBlocks = inValues / blockRows;
    for (const WeightTiles::Part& block : tiles.blockParts) {
      for (const WeightTiles::Part& rows : tiles.rowParts) {
        tiles.cyclesOfPixel += fullBlocks * cycles(block, rows);
      }
      for (const WeightTiles::Part& rows : tiles.lastRowParts) {
        tiles.cyclesOfPixel += cycles(block, rows);
      }
    }
    if (best.blockParts.empty() || tiles.cyclesOfPixel < best.cyclesOfPixel) best = tiles;
  }
  return best;
}

}  // namespace tacc::conv
