#include "compute/conv/algorithms/weight_tiles.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// Cycles of a pixel for all tiles of some rows by `blocks` blocks.
double cyclesOfRows(const KernelSet& kernels, double blocks, const std::vector<WeightTiles::Part>& parts,
                    double pixels) {
  double cycles = 0;
  for (const WeightTiles::Part& rows : parts) {
    cycles += gradientCycles(kernels, blocks, rows.size()) + tileCycles(kernels, blocks, rows.size()) / pixels;
  }
  return cycles;
}

/// Of all blocks of input values and one part of the output channels.
double cyclesOfPart(const KernelSet& kernels, double blocks, const std::vector<WeightTiles::Part>& rowParts,
                    const std::vector<WeightTiles::Part>& lastRowParts, int fullBlocks, double pixels) {
  return fullBlocks * cyclesOfRows(kernels, blocks, rowParts, pixels) +
         cyclesOfRows(kernels, blocks, lastRowParts, pixels);
}

/// What the calls for a pixel cost of full blocks of input values, where equal tiles share one.
double cyclesOfCalls(const std::vector<WeightTiles::Part>& rowParts, int fullBlocks, double pixels, double ofCall) {
  const double calls = areEqual(rowParts) ? 1 : static_cast<double>(rowParts.size()) * fullBlocks;
  return calls * ofCall / pixels;
}

/// The same with as many equal parts of a block's rows as it takes.
WeightTiles withEqualRows(const KernelSet& kernels, WeightTiles tiles, int inValues, double pixels) {
  const int rows = tiles.rowParts.back().to;
  auto parts = static_cast<int>(tiles.rowParts.size());
  while (rows % parts != 0) ++parts;
  tiles.rowParts = cutParts(rows, rows / parts);
  tiles.cyclesOfPixel = 0;
  for (const WeightTiles::Part& block : tiles.blockParts) {
    tiles.cyclesOfPixel +=
        cyclesOfPart(kernels, block.size(), tiles.rowParts, tiles.lastRowParts, inValues / rows, pixels);
  }
  return tiles;
}

/// What finding out a call's arguments costs beside it, block by block of input values.
constexpr double argumentCycles = 80;

/// With what the calls cost.
double allCycles(const WeightTiles& tiles, int fullBlocks, double pixels, double ofCall = callCycles) {
  double cycles = tiles.cyclesOfPixel;
  if (!tiles.blockParts.empty())
    cycles += static_cast<double>(tiles.blockParts.size()) * cyclesOfCalls(tiles.rowParts, fullBlocks, pixels, ofCall);
  if (tiles.halfTiles > 0) cycles += tiles.halfTiles * cyclesOfCalls(tiles.halfRowParts, fullBlocks, pixels, ofCall);
  return cycles;
}

}  // namespace

std::vector<WeightTiles::Part> cutParts(int count, int limit) {
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

bool areEqual(const std::vector<WeightTiles::Part>& parts) { return parts.front().size() == parts.back().size(); }

WeightTiles chooseWeightTiles(const KernelSet& kernels, int outBlocks, int inValues, double pixels, int blockRows,
                              double besideTile) {
  WeightTiles best{};
  double bestCycles = 0;
  for (int blocks = 1; blocks <= std::min(maxBlocks, outBlocks); ++blocks) {
    const int limit = kernels.rowLimit[blocks];
    if (limit == 0) continue;
    WeightTiles tiles{};
    tiles.blockParts = cutParts(outBlocks, blocks);
    tiles.rowParts = cutParts(std::min(blockRows, inValues), limit);
    const int fullBlocks = inValues / blockRows, last = inValues % blockRows;
    if (last != 0) tiles.lastRowParts = cutParts(last, limit);
    for (const WeightTiles::Part& block : tiles.blockParts) {
      tiles.cyclesOfPixel +=
          cyclesOfPart(kernels, block.size(), tiles.rowParts, tiles.lastRowParts, fullBlocks, pixels);
    }
    const double rowParts =
        static_cast<double>(tiles.rowParts.size()) * fullBlocks + static_cast<double>(tiles.lastRowParts.size());
    const double cycles =
        tiles.cyclesOfPixel + rowParts * static_cast<double>(tiles.blockParts.size()) * besideTile / pixels;
    if (!best.blockParts.empty() && cycles >= bestCycles) continue;
    best = tiles;
    bestCycles = cycles;
  }
  return best;
}

WeightTiles chooseHalfTiles(const KernelSet& kernels, int outChannels, int inValues, double pixels, bool isProduct) {
  const int outBlocks = ceilDivide(outChannels, blockLength);
  const int fullBlocks = inValues / blockLength;
  const auto chooseWhole = [&](int blocks) {
    WeightTiles tiles = chooseWeightTiles(kernels, blocks, inValues, pixels);
    if (!isProduct || fullBlocks == 0 || kernels.fmaLanes == blockLength) return tiles;
    WeightTiles equal = withEqualRows(kernels, tiles, inValues, pixels);
    const auto cyclesOf = [&](const WeightTiles& t) {
      return allCycles(t, fullBlocks, pixels, callCycles + argumentCycles);
    };
    return cyclesOf(equal) < cyclesOf(tiles) ? equal : tiles;
  };
  WeightTiles whole = chooseWhole(outBlocks);
  const int halves = ceilDivide(outChannels, blockLength / 2);
  const int ofTile = std::min(halves, 3);
  const int limit = kernels.halfRowLimit[ceilDivide(ofTile, 2)];
  const int halfTiles = halves == 1 ? 1 : halves == 2 ? 0 : halves % 2 != 0 ? (halves - 3) / 6 * 2 + 1 : halves / 6 * 2;
  if (limit == 0 || halfTiles == 0) return whole;
  const int wholeBlocks = (halves - ofTile * halfTiles) / 2;
  WeightTiles tiles{};
  if (wholeBlocks > 0) tiles = chooseWhole(wholeBlocks);
  tiles.halfTiles = halfTiles;
  tiles.halvesOfTile = ofTile;
  tiles.halfRowParts = cutParts(std::min(blockLength, inValues), limit);
  const int last = inValues % blockLength;
  if (last != 0) tiles.lastHalfRowParts = cutParts(last, limit);
  const double ofHalfTile =
      cyclesOfPart(kernels, ofTile / 2.0, tiles.halfRowParts, tiles.lastHalfRowParts, fullBlocks, pixels);
  tiles.cyclesOfPixel += halfTiles * ofHalfTile;
  return allCycles(tiles, fullBlocks, pixels) < allCycles(whole, fullBlocks, pixels) ? tiles : whole;
}

WeightTiles chooseHalfTile(const KernelSet& kernels, int outChannels, int inValues, double pixels) {
  constexpr double ofBlock = 0.5;
  WeightTiles tiles{};
  if (kernels.halfRowLimit[1] == 0 || outChannels > blockLength / 2) return tiles;
  tiles.blockParts = {{0, 1}};
  tiles.rowParts = cutParts(inValues, kernels.halfRowLimit[1]);
  tiles.halfTiles = tiles.halvesOfTile = 1;
  tiles.cyclesOfPixel = cyclesOfRows(kernels, ofBlock, tiles.rowParts, pixels);
  return tiles;
}

void dealOut(WeightTiles& tiles, std::size_t workers, int vectors) {
  const auto haveSameSets = [&](int blocks, int others) {
    return std::all_of(tiles.rowParts.begin(), tiles.rowParts.end(), [&](const WeightTiles::Part& rows) {
      return gradientSets(vectors * blocks * rows.size()) == gradientSets(vectors * others * rows.size());
    });
  };
  std::vector<WeightTiles::Part>& parts = tiles.blockParts;
  while (parts.size() < workers) {
    const auto largest = std::max_element(parts.begin(), parts.end(),
                                          [](const auto& one, const auto& other) { return one.size() < other.size(); });
    const int size = largest->size(), half = size / 2;
    if (size == 1 || !haveSameSets(size, half) || !haveSameSets(size, size - half)) return;
    const int middle = (largest->from + largest->to + 1) / 2;
    const WeightTiles::Part behind{middle, largest->to};
    largest->to = middle;
    parts.insert(largest + 1, behind);
  }
}

}  // namespace tacc::conv
