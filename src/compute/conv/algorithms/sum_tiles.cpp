#include "compute/conv/algorithms/sum_tiles.hpp"

#include <algorithm>
#include <cmath>

#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// Results of a call that has two kinds of tiles: lines of the cache that both write are still in the L1 cache.
constexpr std::ptrdiff_t bytesOfStrips = 16 * 1024;

/// Pixels of a tile at most. A line of the cache of each of them is read value after value: as many as fall on each
/// other have to stay in the L1 cache, beside one of weights. Of other vectors than half ones, and far caches, that has
/// not been measured.
int pixelsReadAtOnce(const KernelSet& kernels, std::ptrdiff_t inputPixel) {
  return areNearHalves(kernels.fmaLanes) ? std::min(mostSumPixels, linesKept(inputPixel) - 1) : mostSumPixels;
}

}  // namespace

SumTiles::SumTiles(const KernelSet& kernels, const SumSize& size, bool ofWholeLines)
    : kernels_(shortSumsKernels(kernels)), size_(size) {
  choose(kernels, ofWholeLines);
  const std::ptrdiff_t bytesOfStrip =
      std::ptrdiff_t{pixels_} * size_.channels * static_cast<std::ptrdiff_t>(sizeof(float));
  const auto tileBytes =
      static_cast<std::size_t>(size_.lines * size_.values * vectors_ * kernels_.lanes) * sizeof(float);
  const bool areKept = staysInL2(packedFloats() * sizeof(float));
  tilesAtOnce_ =
      areKept ? std::max(1, tiles_) : static_cast<int>(std::max<std::size_t>(1, l2CacheBytes() / 4 / tileBytes));
  const bool areAlike = restVectors_ == 0 || tiles_ == 0 || !areKept;
  stripsAtOnce_ = areAlike ? strips_ : static_cast<int>(std::max<std::ptrdiff_t>(1, bytesOfStrips / bytesOfStrip));
  constexpr double ofCall = 90;  // of tiles of the other kind
  if (!areAlike) cycles_ += ofCall * ceilDivide(strips_, stripsAtOnce_);
}

double SumTiles::cyclesOfTile(const KernelSet& kernels, int vectors, int pixels) const {
  constexpr double ofTile = 8, ofPixel = 1.5;
  // Where products of long vectors are as many as fill the core, lines that begin anew are felt.
  const double ofAnew = hasFarCaches() ? 30 : 15;
  const double ofLine = size_.lines > 1 && kernels.fmaLanes == blockLength ? ofAnew : 7;
  const double blocks = double(vectors) * kernels_.lanes / blockLength;
  const double loads = 0.5 * (vectors + pixels);
  // As in stepCycles(): of just enough chains of multiply-adds some wait for themselves.
  const double slack = 1 + std::abs(vectors * pixels / 2.0 - latencyCycles);
  constexpr double weightBytes = 48;                                                 // a cycle, from the L2 cache
  const double waiting = vectors * pixels <= 6 ? latencyCycles / 2 : latencyCycles;  // small tiles have two sums
  const double step = std::max({productCycles(kernels, blocks, pixels), loads, waiting,
                                double(vectors) * kernels_.lanes * sizeof(float) / weightBytes}) +
                      0.25 + 1 / (slack * slack);
  const double products = size_.lines * (ofLine + size_.values * step);
  return ofTile + ofPixel * pixels + std::max(products, double(vectors) * pixels);
}

void SumTiles::choose(const KernelSet& kernels, bool ofWholeLines) {
  const int all = ceilDivide(size_.channels, kernels_.lanes);
  const bool isCut = size_.channels % kernels_.lanes != 0;
  const int most = pixelsReadAtOnce(kernels, size_.inputPixel);
  for (int vectors = 1; vectors <= std::min(mostSumVectors, all); ++vectors) {
    if (ofWholeLines && vectors * kernels_.lanes % blockLength != 0) continue;
    const int strips = ceilDivide(size_.pixels, std::min(kernels_.pixels[vectors], most));
    const int pixels = ceilDivide(size_.pixels, strips);
    const int whole = isCut ? all - 1 : all;  // a vector with fewer channels is in a tile of its own kind
    const int tiles = whole / vectors, rest = all - tiles * vectors;
    const double cycles = strips * (tiles * cyclesOfTile(kernels, vectors, pixels) +
                                    (rest == 0 ? 0 : cyclesOfTile(kernels, rest, pixels)));
    if (vectors_ != 0 && cycles >= cycles_) continue;
    vectors_ = vectors;
    pixels_ = pixels;
    tiles_ = tiles;
    restVectors_ = rest;
    strips_ = strips;
    cycles_ = cycles;
  }
}

SumTiles::Place SumTiles::placeOf(int channel) const {
  const int lanes = vectors_ * kernels_.lanes;
  const int tile = std::min(channel / lanes, tiles_);
  const std::ptrdiff_t before = std::ptrdiff_t{tile} * lanes * size_.lines * size_.values;
  return {tile * lanes, tile < tiles_ ? lanes : restVectors_ * kernels_.lanes, before};
}

std::size_t SumTiles::packedFloats() const {
  return static_cast<std::size_t>((tiles_ * vectors_ + restVectors_) * kernels_.lanes) *
         static_cast<std::size_t>(size_.lines * size_.values);
}

int SumTiles::passes() const { return std::max(1, ceilDivide(tiles_, tilesAtOnce_)); }

int SumTiles::firstPixel(int strip) const {
  const int least = size_.pixels / strips_, larger = size_.pixels % strips_;  // so many strips have a pixel more
  return strip * least + std::min(strip, larger);
}

void SumTiles::run(const ShortSumsCall& given, int firstLine, int from, int to, Tiles tiles) const {
  const int least = size_.pixels / strips_, larger = size_.pixels % strips_;
  ShortSumsCall call = given;
  for (int strip = from; strip < to; strip += call.strips) {
    const bool isLarger = strip < larger;
    call.strips = std::min({stripsAtOnce_, to - strip, (isLarger ? larger : strips_) - strip});
    const std::ptrdiff_t pixel = firstPixel(strip) - firstPixel(from);
    call.input = given.input + pixel * call.inputPixel;
    call.output = given.output + pixel * call.outputPixel;
    if (given.addend != nullptr) call.addend = given.addend + pixel * call.outputPixel;
    runStrips(call, firstLine, isLarger ? least + 1 : least, tiles);
  }
}

void SumTiles::runStrips(const ShortSumsCall& given, int firstLine, int pixels, Tiles which) const {
  ShortSumsCall call = given;
  const Place first = placeOf(std::min(which.from, tiles_) * vectors_ * kernels_.lanes);
  call.weights += first.packed;
  call.output += first.channel;
  if (call.bias != nullptr) call.bias += first.channel;
  if (call.addend != nullptr) call.addend += first.channel;
  const auto runTiles = [&](int tiles, int vectors, int lastLanes) {
    if (tiles == 0 || vectors == 0) return;
    const int lanes = vectors * kernels_.lanes;
    call.tiles = tiles;
    call.lastLanes = lastLanes;
    call.weightsTile = std::ptrdiff_t{lanes} * size_.lines * size_.values;
    // Where a strip is large its next tile takes the place of the next strip.
    const std::ptrdiff_t ofStrip = pixels * call.outputPixel;
    const bool isSmall = ofStrip * static_cast<std::ptrdiff_t>(sizeof(float)) <= bytesOfStrips;
    if (given.outputAhead != 0) call.outputAhead = isSmall ? ofStrip : lanes;
    const float* const weights = call.weights;
    call.weights += std::ptrdiff_t{firstLine} * size_.values * lanes;
    kernels_.sums[vectors][pixels](call);
    const std::ptrdiff_t done = std::ptrdiff_t{tiles} * lanes;
    call.weights = weights + tiles * call.weightsTile;
    call.output += done;
    if (call.bias != nullptr) call.bias += done;
    if (call.addend != nullptr) call.addend += done;
  };
  const int end = std::min(which.to, tiles_);
  for (int tile = which.from; tile < end; tile += tilesAtOnce_) {
    runTiles(std::min(tilesAtOnce_, end - tile), vectors_, 0);
  }
  if (which.to > tiles_) runTiles(1, restVectors_, size_.channels % kernels_.lanes);
}

}  // namespace tacc::conv
