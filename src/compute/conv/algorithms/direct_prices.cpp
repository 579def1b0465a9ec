// What tiles of a correlation cost by the model, and with it their choice.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/algorithms/tap_fit.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

constexpr std::size_t bytesOfRow = blockLength * sizeof(float);

/// A cycle, of weights that come from memory.
constexpr double bytesOfWeights = 9;

// What a run of values costs beside its products. Permuted, several of them are one, where a block is one vector.
constexpr double cyclesOfRun = 4, cyclesOfPermutedRun = 1;
/// More of a run of a single value, where a tile of one long vector is over before what a run costs beside it; less of
/// several, and none from so many on.
constexpr double cyclesOfShortRun = 8, leastLongRun = 7;

constexpr double bytesOfL1 = 32 * 1024;

/// What reading a value costs whose line of the cache another pixel of the tile has driven out of the L1 cache.
constexpr double cyclesOfLostLine = 0.6;

}  // namespace

double DirectDriver::insideLines() const {
  if (shape_.taps.empty()) return 1;
  double inside = 0;
  for (const Tap& tap : shape_.taps) {
    // Lines before the first and behind the last one that the tap finds.
    const int before = tap.dy >= 0 ? 0 : std::min(shape_.outHeight, ceilDivide(-tap.dy, shape_.strideHeight));
    const int left = shape_.inHeight - tap.dy;
    const int end = left <= 0 ? 0 : std::min(shape_.outHeight, ceilDivide(left, shape_.strideHeight));
    inside += std::max(0, end - before);
  }
  return inside / (static_cast<double>(shape_.taps.size()) * shape_.outHeight);
}

double DirectDriver::tilesOfTap(int tiles, double inside) const {
  int found = 0;
  for (const Tap& tap : shape_.taps) {
    for (int t = 0, x = 0; t < tiles; ++t) {
      const int pixels = partSize(shape_.outWidth, tiles, t);
      found += fitTap(tap.dx, shape_.strideWidth, x, pixels, shape_.inWidth, mostOut()).used > 0;
      x += pixels;
    }
  }
  return std::max(1.0, inside * shape_.outHeight * found / static_cast<double>(shape_.taps.size()));
}

double DirectDriver::cyclesOfSharedHalf() const {
  constexpr double ofThree = 1.85, ofPair = 2.5, ofOne = 3.6, ofFarRow = 0.4;
  if (hasFarCaches()) return ofThree;
  int columns = 0;  // of the first line of the kernel that any result finds
  while (columns < static_cast<int>(shape_.taps.size()) &&
         shape_.taps[static_cast<std::size_t>(columns)].dy == shape_.taps.front().dy)
    ++columns;
  const int rest = columns % 3;
  // With strides two taps side by side share nothing, but three do.
  const double ofRest = rest == 2 && shape_.strideWidth == 1 ? ofPair : ofOne;
  const double shared = (columns - rest) * ofThree + rest * ofRest;
  // Weights, and the lanes that they are for, which the L1 cache does not keep from tile to tile.
  const bool areFar = 2 * rows_ * bytesOfRow > static_cast<std::size_t>(bytesOfL1 / 2);
  return shared / columns + (areFar ? ofFarRow : 0);
}

double DirectDriver::cyclesOfLine(double blocks, int tiles, double inside) const {
  if (shape_.taps.empty()) return callCycles + 1.5 * blocks * shape_.outWidth;  // zeros
  // Weights that come late hold up a kernel that has no registers for them.
  const bool areFar = !staysInL2(packedFloats() * sizeof(float));
  const int vectors = static_cast<int>(blocks * blockLength / kernels_.fmaLanes);
  // Permuted, taps side by side share what is permuted.
  const bool isShared = shape_.strideWidth <= 2 && shape_.taps.size() > 1 && shape_.taps[0].dy == shape_.taps[1].dy &&
                        std::abs(shape_.taps[0].dx - shape_.taps[1].dx) == 1;
  const double ofSharedHalf = cyclesOfSharedHalf();
  // Tiles of an image behind the first one find few weights in the L1 cache.
  const double near = !areFar && stayInL1(rows_ * static_cast<std::size_t>(std::ceil(blocks)) * bytesOfRow)
                          ? 1 - 1.0 / (double(tiles) * shape_.outHeight)
                          : 0;
  // The first tile that a tap finds waits for weights that come from far caches.
  const double all = std::max(shape_.weightBytes, double(packedFloats() * sizeof(float)));
  const double ofFarBlock = farTransferCycles(all, bytesOfWeights) / all * bytesOfRow;
  const double first = ofFarBlock == 0 ? 0 : 1 / (shape_.imagesOfWeights * tilesOfTap(tiles, inside));
  // What of that is not hidden. Of one stream of weights hardware hides more than of runs, during which what comes
  // next is fetched.
  const bool isMemory = all > coreModel().lastCacheBytes, isStream = shape_.taps.size() == 1;
  const auto notHidden = [&](double far, double there) {
    if (isMemory) return (isStream ? 0.8 : 0.75) * far;
    return isStream ? 0.3 * far : std::max(0.0, 0.65 * far - 0.2 * there);
  };
  constexpr double permutedLatency = 3;  // of one tile it hides behind another's
  const auto cyclesOfRow = [&](int pixels, int used) {
    // What is read for all lanes is a load, of which two begin in a cycle. Permutations of vectors of half a block take
    // more than three times as long as products, on a Zen 3.
    if (shape_.isPermuted) {
      const bool isHalf = 2 * kernels_.fmaLanes == blockLength && kernels_.permutedLanes > 1;
      const double ofShared = shape_.takesOneValue ? 1.05 : isHalf ? ofSharedHalf : 1.15;
      const double ofOther = shape_.takesOneValue ? 1.2 : isHalf ? 3.6 : 1.7;
      return std::max(permutedLatency, (isShared ? ofShared : ofOther) * productCycles(kernels_, blocks, used));
    }
    // A step of few pixels is over before its weights are there.
    constexpr double cyclesOfFarBlock = 3;
    const double arriving = areFar ? cyclesOfFarBlock * blocks : 0;
    const double late = areFar && heldWeights(kernels_.registers, vectors, pixels) < vectors ? 0.5 : 0;
    // Values that do not come in runs have addresses of their own.
    // A core that has enough to do with the multiply-adds hides them.
    const double step = (1 - near) * stepCycles(kernels_, blocks, pixels, used) +
                        near * stepCycles(kernels_, blocks, pixels, used, true);
    const double there = std::max(arriving, step + late) * (shape_.isScattered && hasTwoWideUnits(kernels_) ? 1.1 : 1);
    return std::max(there + notHidden(first * ofFarBlock * blocks, there), first * ofFarBlock * blocks);
  };
  // With strides most of every part of a page that is fetched is not used, so input is better read fewer times.
  const double inputCycles = shape_.strideWidth > 1 && !shape_.isScattered ? 0.02 : 0;
  // Short steps feel it too when what is fetched for the next block of channels takes their places.
  const int kept = linesKept(shape_.strideWidth * shape_.inPixel) / (kernels_.fmaLanes < blockLength ? 2 : 1);
  // Taps that lie above each other leave out the same pixels.
  std::map<int, int> columns;  // where a tap reads -> how many taps
  for (const Tap& tap : shape_.taps) ++columns[tap.dx];
  const double ofTap =
      static_cast<double>(rows_) * inside / std::max<double>(1, static_cast<double>(shape_.taps.size()));
  const double runsOfTap = shape_.isScattered ? 0 : inside * static_cast<double>(shape_.inCounts.size());
  const double valuesOfRun = runsOfTap > 0 ? ofTap / runsOfTap : 0;
  const double ofPermutedRun = kernels_.fmaLanes == blockLength ? cyclesOfPermutedRun : coreModel().permutedRun;
  const bool areShort = vectors == 1 && hasTwoWideUnits(kernels_) && !hasFarCaches() && shape_.taps.size() > 1;
  const double ofShortRun =
      areShort ? cyclesOfShortRun * std::clamp((leastLongRun - valuesOfRun) / (leastLongRun - 1), 0.0, 1.0) : 0;
  const auto cyclesOfTaps = [&](int taps, int pixels, int used) {
    const double row = cyclesOfRow(pixels, used) + (used < kept ? inputCycles : inputCycles + cyclesOfLostLine) * used;
    // Sums that wait for themselves leave time for what a run costs beside.
    const double waiting = std::max(0.0, latencyCycles - productCycles(kernels_, blocks, used));
    const double ofRun = shape_.isPermuted ? ofPermutedRun : cyclesOfRun + ofShortRun;
    return taps * (ofTap * row + runsOfTap * std::max(0.0, ofRun - valuesOfRun * waiting));
  };
  // As makeTiles() does.
  const auto cyclesOfTile = [&](const auto& self, int x, int pixels) -> double {
    double cycles = tileCycles(kernels_, blocks, pixels);
    for (const auto& [dx, taps] : columns) {
      const TapFit fit = fitTap(dx, shape_.strideWidth, x, pixels, shape_.inWidth, mostOut());
      if (fit.used == 0) continue;
      if (!fit.mask) return callCycles + self(self, x, pixels / 2) + self(self, x + pixels / 2, pixels - pixels / 2);
      cycles += cyclesOfTaps(taps, pixels, fit.used);
    }
    return cycles;
  };
  const auto isInside = [&](int x, int pixels) {
    return columns.empty() || (x * shape_.strideWidth + columns.begin()->first >= 0 &&
                               (x + pixels - 1) * shape_.strideWidth + columns.rbegin()->first < shape_.inWidth);
  };
  const int least = shape_.outWidth / tiles;
  double whole[2] = {-1, -1};  // of a tile without a mask, of that many pixels and of one more
  double cycles = callCycles;
  for (int t = 0, x = 0; t < tiles; ++t) {
    const int pixels = partSize(shape_.outWidth, tiles, t);
    if (isInside(x, pixels)) {
      double& known = whole[pixels - least];
      if (known < 0) known = cyclesOfTile(cyclesOfTile, x, pixels);
      cycles += known;
    } else {
      cycles += callCycles + cyclesOfTile(cyclesOfTile, x, pixels);
    }
    x += pixels;
  }
  return cycles;
}

double DirectDriver::apartLineCycles(int blocks, double products) const {
  // Of a line of the cache by itself; those that follow each other hardware asks for together. Products of shorter
  // vectors take long enough to hide it.
  constexpr double ofLine = 11;
  // Where pixels are no whole lines, most stores are to two of them, for which sums of few values do not wait.
  constexpr double ofCutLine = 50;
  const double lines = double(shape_.outHeight) * shape_.outWidth * shape_.outBlocks;
  if (!hasApartBlocks()) return 0;
  if (!hasFarCaches()) return nearLineCycles(blocks, lines, products);
  if (staysInL2(static_cast<std::size_t>(lines * shape_.images) * bytesOfRow)) return 0;
  const double apart = kernels_.fmaLanes == blockLength ? lines * ofLine / blocks : 0;
  return apart + (shape_.isCut && shape_.outBlocks > blocks ? std::max(0.0, ofCutLine * lines - products) : 0);
}

double DirectDriver::nearLineCycles(int blocks, double lines, double products) const {
  // Of a line of the cache: of those of a pixel that are written by several groups of blocks, or by one of two blocks,
  // and of those that the tiles of two groups write. Products hide some of it.
  constexpr double ofPart = 1.5, ofPair = 1.2, ofCutLine = 1, hidden = 0.05;
  if (!hasTwoWideUnits(kernels_) || lines * shape_.images * static_cast<double>(bytesOfRow) <= bytesOfL1) return 0;
  const bool isParted = shape_.outBlocks > blocks, isCut = isParted && shape_.isCut;
  double ofLine = isCut ? ofCutLine : 0;
  if (!shape_.skipsPixels) ofLine += isParted ? ofPart : shape_.isCut ? 0 : ofPair;
  return std::max(0.0, ofLine * lines - hidden * products);
}

double DirectDriver::storingCycles() const {
  // Of a line of the cache. Of pixels whose blocks follow each other, the lines of a tile lie the further apart, and
  // are on the fewer places of the L1 cache, the more blocks there are.
  constexpr double ofLine = 5.2, ofApartLine = 6, ofBlock = 0.1, mostOfApartLine = 9.5;
  // Of fewer channels than a block several pixels share a line.
  const double partOfLine = std::min<double>(1, double(shape_.outPixel) / blockLength);
  const double lines = double(shape_.outHeight) * shape_.outWidth * shape_.outBlocks * partOfLine;
  const double cycles = hasApartBlocks() ? std::min(mostOfApartLine, ofApartLine + ofBlock * shape_.outBlocks) : ofLine;
  return storedCycles(lines * bytesOfRow * shape_.images, lines, cycles);
}

DirectDriver::Blocking DirectDriver::chooseBlocking(int outBlocks) const {
  Blocking best{};
  const double inside = insideLines();
  for (int blocks = 1; blocks <= std::min(maxBlocks, outBlocks); ++blocks) {
    const int limit = shape_.isPermuted ? kernels_.permutedPixelLimit : kernels_.pixelLimit[blocks];
    if (limit == 0) continue;
    const int groups = ceilDivide(outBlocks, blocks);
    const int smaller = outBlocks / groups;
    const int larger = outBlocks % groups;  // groups of one block more
    // The largest tiles may be slower, where they read weights over and over.
    for (int size = limit; size >= std::max(1, limit - 2); --size) {
      const int tiles = ceilDivide(shape_.outWidth, size);
      double cycles = (groups - larger) * cyclesOfLine(smaller, tiles, inside);
      if (larger > 0) cycles += larger * cyclesOfLine(smaller + 1, tiles, inside);
      cycles *= shape_.outHeight;
      cycles += apartLineCycles(blocks, cycles);
      if (best.blocks == 0 || cycles < best.cycles) best = {blocks, tiles, cycles};
    }
  }
  return best;
}

std::optional<DirectDriver::Blocking> DirectDriver::chooseHalf(Blocking& whole) const {
  const bool canHalve = !shape_.isScattered && !shape_.isPermuted && !shape_.taps.empty();
  if (!canHalve || shape_.lastOuts > blockLength / 2) return std::nullopt;
  const int blocks = std::min(shape_.outBlocks, 2);
  Blocking half{};
  const double inside = insideLines();
  const int limit = kernels_.halfPixelLimit[blocks];
  for (int size = limit; size > limit / 2; --size) {
    const int tiles = ceilDivide(shape_.outWidth, size);
    const double cycles = shape_.outHeight * cyclesOfLine(blocks - 0.5, tiles, inside);
    if (half.blocks == 0 || cycles < half.cycles) half = {blocks, tiles, cycles};
  }
  if (half.blocks == 0) return std::nullopt;
  const Blocking before = shape_.outBlocks > half.blocks ? chooseBlocking(shape_.outBlocks - half.blocks) : Blocking{};
  if (before.cycles + half.cycles >= whole.cycles) return std::nullopt;
  whole = before;
  return half;
}

}  // namespace tacc::conv
