#include "compute/conv/algorithms/direct_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compute/conv/algorithms/tap_fit.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

// As weightBytesAtOnce a part of an L2 cache of 1 MiB. Larger ones gain nothing, smaller ones lose little.
constexpr std::size_t inputBytesAtOnce = 384 * 1024;

/// Lines of few pixels read more weights, for what they multiply, than the L2 cache gives: theirs stay in the L1 cache.
constexpr int pixelsOfFew = 5;
constexpr std::size_t weightBytesOfFew = 36 * 1024;

/// What a permuted tile costs beside, whatever its width: its tables of lanes.
constexpr double cyclesOfPermutedTile = 20;

}  // namespace

DirectDriver::DirectDriver(DirectShape shape, const KernelSet& kernels) : shape_(std::move(shape)), kernels_(kernels) {
  rowsBefore_.push_back(0);
  for (const int count : shape_.inCounts) {
    rowsBefore_.push_back(rowsBefore_.back() + count * static_cast<std::ptrdiff_t>(shape_.taps.size()));
  }
  rows_ = static_cast<std::size_t>(rowsBefore_.back());
  Blocking whole = chooseBlocking(shape_.outBlocks);
  const std::optional<Blocking> half = chooseHalf(whole);
  cycles_ = whole.cycles + (half ? half->cycles : 0);
  const int wholeBlocks = shape_.outBlocks - (half ? half->blocks : 0);
  if (wholeBlocks > 0) {
    makeGroups(wholeBlocks, whole.blocks);
    tiles_ = makeTiles(whole.tilesOfLine);
  }
  if (half) {
    groups_.push_back(
        {wholeBlocks, half->blocks, static_cast<std::ptrdiff_t>(wholeBlocks * rows_ * blockLength), true});
    (wholeBlocks > 0 ? halfTiles_ : tiles_) = makeTiles(half->tilesOfLine);
  }
  if (shape_.isPermuted) cycles_ += cyclesOfPermutedTile * static_cast<double>(tiles_.size() * groups_.size());
  if (shape_.isScattered) makeValues();
  chooseChunks();
}

int DirectDriver::mostOut() const {
  const bool isEveryPixel = shape_.strideWidth * shape_.inPixel == kernels_.blockPixel;
  return isEveryPixel && !shape_.isPermuted ? mostMasked : mostMaskedOfStride;
}

bool DirectDriver::reachesFurthest(const Tap& tap) const {
  return std::none_of(shape_.taps.begin(), shape_.taps.end(),
                      [&](const Tap& other) { return other.dy == tap.dy && other.dx == tap.dx + shape_.strideWidth; });
}

void DirectDriver::makeGroups(int outBlocks, int blocks) {
  const int count = ceilDivide(outBlocks, blocks);
  int first = 0;
  for (int g = 0; g < count; ++g) {
    const int here = partSize(outBlocks, count, g);
    groups_.push_back({first, here, static_cast<std::ptrdiff_t>(first * rows_ * blockLength), false});
    first += here;
  }
}

std::size_t DirectDriver::packedFloats() const {
  return rows_ * static_cast<std::size_t>(shape_.outBlocks) * blockLength;
}

std::size_t DirectDriver::inputBytes() const {
  const std::size_t outPixels = static_cast<std::size_t>(shape_.outHeight) * static_cast<std::size_t>(shape_.outWidth);
  const std::size_t inPixels = static_cast<std::size_t>(shape_.inHeight) * static_cast<std::size_t>(shape_.inWidth);
  const std::size_t usedPixels = std::min(inPixels, outPixels * std::max<std::size_t>(1, shape_.taps.size()));
  return shape_.inCounts.size() * blockLength * sizeof(float) * usedPixels;
}

std::string DirectDriver::tileName() const {
  int pixels = 0;
  for (const Tile& tile : tiles_) pixels = std::max(pixels, tile.pixels);
  return fmt::format("{}x{}", pixels, groups_.front().blocks - (groups_.front().endsWithin ? 0.5 : 0.0));
}

std::vector<DirectDriver::Tile> DirectDriver::makeTiles(int tilesOfLine) {
  std::vector<Tile> tiles;
  std::map<std::vector<int>, int> known;  // what a tile leaves out -> its list
  const int tapCount = static_cast<int>(shape_.taps.size());
  // Appends the tile of `pixels` pixels at (y, x), or two halves of it if it has a mask that no kernel has.
  const auto add = [&](const auto& self, int y, int x, int pixels) -> void {
    std::vector<int> key = {pixels};
    for (const Tap& tap : shape_.taps) {
      const int line = y * shape_.strideHeight + tap.dy;
      const TapFit fit = fitTap(tap.dx, shape_.strideWidth, x, pixels, shape_.inWidth, mostOut());
      if (line < 0 || line >= shape_.inHeight || fit.used == 0) {
        key.push_back(-1);
      } else if (fit.mask) {
        key.push_back(static_cast<int>(*fit.mask));
      } else {
        self(self, y, x, pixels / 2);
        self(self, y, x + pixels / 2, pixels - pixels / 2);
        return;
      }
    }
    const auto [entry, isNew] = known.try_emplace(key, static_cast<int>(lists_.size()));
    if (isNew) {
      const int used = static_cast<int>(std::count_if(key.begin() + 1, key.end(), [](int mask) { return mask >= 0; }));
      lists_.push_back({runs_.size(), used});
      std::ptrdiff_t weights = 0;
      for (std::size_t in = 0; in < shape_.inCounts.size(); ++in) {
        const std::size_t firstRun = runs_.size();
        for (int t = 0; t < tapCount; ++t, weights += shape_.inCounts[in] * std::ptrdiff_t{blockLength}) {
          const int mask = key[static_cast<std::size_t>(t) + 1];
          const Tap& tap = shape_.taps[static_cast<std::size_t>(t)];
          const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(in) * shape_.inPlane + tap.dy * shape_.inLine +
                                    tap.dx * shape_.inPixel + (in == 0 ? shape_.firstValue : 0);
          if (mask < 0) continue;
          runs_.push_back(
              {at, weights, shape_.inCounts[in], static_cast<BorderMask>(mask), reachesFurthest(tap), false, 0, 0});
        }
        for (std::size_t next = runs_.size(); next-- > firstRun + 1;) {
          TapRun& run = runs_[next - 1];
          const bool isNext = runs_[next].input == run.input + shape_.inPixel &&
                              runs_[next].weights == run.weights + run.count * std::ptrdiff_t{blockLength};
          if (isNext) run.following = static_cast<std::int16_t>(runs_[next].following + 1);
        }
      }
      findNext(lists_.back(), pixels);
    }
    tiles.push_back({y * shape_.strideHeight * shape_.inLine + x * shape_.strideWidth * shape_.inPixel,
                     y * shape_.outLine + x * shape_.outPixel, pixels, entry->second, 0});
  };
  for (int y = 0; y < shape_.outHeight; ++y) {
    for (int t = 0, x = 0; t < tilesOfLine; ++t) {
      const int pixels = partSize(shape_.outWidth, tilesOfLine, t);
      add(add, y, x, pixels);
      x += pixels;
    }
  }
  findFollowing(tiles);
  return tiles;
}

void DirectDriver::findNext(const List& list, int pixels) {
  const std::size_t end = runs_.size();
  for (std::size_t first = list.first; first < end;) {
    const std::size_t next = first + static_cast<std::size_t>(runs_[first].following) + 1;
    for (std::size_t r = next; r-- > first;) {
      if (runs_[r].mask != BorderMask::none) continue;
      runs_[r].fetchesNext = true;
      // Behind the last line comes the first one of the tile to the right.
      runs_[r].next = next < end ? runs_[next].input : runs_[list.first].input + inputOf(pixels);
      break;
    }
    first = next;
  }
}

void DirectDriver::findFollowing(std::vector<Tile>& tiles) const {
  for (std::size_t t = tiles.size(); t-- > 1;) {
    Tile& tile = tiles[t - 1];
    const Tile& next = tiles[t];
    const bool isLike = next.list == tile.list && next.pixels == tile.pixels &&
                        next.input == tile.input + inputOf(tile.pixels) &&
                        next.output == tile.output + outputOf(tile.pixels);
    tile.following = isLike ? next.following + 1 : 0;
  }
}

void DirectDriver::makeValues() {
  forEachValue([&](int in, int t, int value) {
    const Tap& tap = shape_.taps[static_cast<std::size_t>(t)];
    values_.push_back(in * shape_.inPlane + tap.dy * shape_.inLine + tap.dx * shape_.inPixel + value);
  });
}

void DirectDriver::chooseChunks() {
  const std::size_t inBlocks = shape_.inCounts.size();
  const int mostBlocks = std::max(groups_.front().blocks, groups_.back().blocks);
  const std::size_t weightBytes = rows_ * static_cast<std::size_t>(mostBlocks) * blockLength * sizeof(float);
  // Weights of a block of input, beside those of others.
  const bool isOfPairs = kernels_.blockPixel < blockLength;
  int pixels = 0;
  for (const Tile& tile : tiles_) pixels = std::max(pixels, tile.pixels);
  const bool areFew =
      pixels <= pixelsOfFew && shape_.outHeight > 1 && !isOfPairs && weightBytes / inBlocks <= weightBytesOfFew;
  const std::size_t bytesAtOnce = areFew ? weightBytesOfFew : weightBytesAtOnce;
  const std::size_t chunks =
      shape_.isScattered ? 1 : std::clamp<std::size_t>((weightBytes + bytesAtOnce - 1) / bytesAtOnce, 1, inBlocks);
  chunkBlocks_ = (inBlocks + chunks - 1) / chunks;
  const std::size_t outPixels = static_cast<std::size_t>(shape_.outHeight) * static_cast<std::size_t>(shape_.outWidth);
  const std::size_t parts =
      std::clamp<std::size_t>(inputBytes() / inputBytesAtOnce, 1, std::max<std::size_t>(1, outPixels / 56));
  tilesAtOnce_ = shape_.goesByLine ? tilesOfLine() : std::max<std::size_t>(1, (tiles_.size() + parts - 1) / parts);
  chooseOrder();
  tilesAtOnce_ = std::min(tilesAtOnce_, tilesInOrder_);
}

void DirectDriver::chooseOrder() {
  tilesInOrder_ = tiles_.size();
  if (!hasApartBlocks() || (groups_.size() == 1 && shape_.groupsOfPixel == 1)) return;
  const double outBytes = double(shape_.outHeight) * shape_.outWidth * double(shape_.outPixel) * sizeof(float);
  const std::size_t weights = packedFloats() * sizeof(float) * static_cast<std::size_t>(shape_.groupsOfPixel);
  if (staysInL2(static_cast<std::size_t>(outBytes * shape_.images)) || !staysInL2(2 * weights)) return;
  const double parts = outBytes / (static_cast<double>(l2CacheBytes()) / 4);
  tilesInOrder_ =
      static_cast<std::size_t>(std::clamp(static_cast<double>(tiles_.size()) / parts, 1.0, double(tiles_.size())));
}

}  // namespace tacc::conv
