#include "compute/conv/algorithms/joined_lines.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// For a pixel of a tile: multiply-adds; or loads, of which a single vector of outputs makes one for each product; or
/// sums that wait for themselves.
double pixelCycles(const KernelSet& kernels, int blocks, int lines, int columns) {
  constexpr double loop = 0.5, loadsOfCycle = 1.7;  // two are never kept up where each product has one
  const int sums = lines * columns;
  const double loads = sums + 2.0 * blocks * blockLength / kernels.fmaLanes;
  return std::max({productCycles(kernels, blocks, sums), loads / loadsOfCycle, latencyCycles}) + loop;
}

}  // namespace

std::optional<JoinedTiles> chooseJoinedTiles(const KernelSet& kernels, int outBlocks, int lines, int columns,
                                             double linesOfCall, double pixels) {
  constexpr double ofSum = 2;  // is cleared, added to what is there, and stored
  // Of a block's gradient, each time that it is read: from the L1 cache where a line of a tile's blocks stays there.
  constexpr double ofNear = 0.5, ofFar = 2, bytesOfL1 = 24 * 1024;
  std::optional<JoinedTiles> best;
  double bestCycles = 0;
  if (columns > mostJoinedColumns) return best;
  const JoinedLinesKernels& joined = joinedLinesKernels(kernels);
  for (int blocks = 1; blocks <= std::min(maxBlocks, outBlocks); ++blocks) {
    int most = std::min(lines, mostJoinedLines);
    while (most > 1 && joined.sum[blocks][most][columns] == nullptr) --most;
    if (most < 2 || kernels.rowLimit[blocks] == 0) continue;
    const double ofRead = pixels * blocks * blockLength * sizeof(float) > bytesOfL1 ? ofFar : ofNear;
    JoinedTiles tiles{cutParts(outBlocks, blocks), cutParts(lines, most), most, 0, 0, 0};
    for (const WeightTiles::Part& outs : tiles.blockParts) {
      for (const WeightTiles::Part& some : tiles.lineParts) {
        tiles.cyclesOfPixel += pixelCycles(kernels, outs.size(), some.size(), columns) + ofRead * outs.size();
        tiles.cyclesOfLine += lineCycles + some.size();
        tiles.cyclesOfCall += callCycles + ofSum * some.size() * columns * outs.size() * blockLength / kernels.fmaLanes;
      }
    }
    const double cycles =
        tiles.cyclesOfPixel + tiles.cyclesOfLine / pixels + tiles.cyclesOfCall / (pixels * linesOfCall);
    if (best && cycles >= bestCycles) continue;
    best = tiles;
    bestCycles = cycles;
  }
  return best;
}

}  // namespace tacc::conv
