// What DirectDriver::run does: tiles of groups of outputs, a chunk of input channels after the other.
#include <algorithm>
#include <cstring>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/algorithms/streamed_pixels.hpp"
#include "core/error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacc::conv {
namespace {

/// Tiles of a call behind which it is asked what to fetch next.
constexpr int tilesOfFetch = 2;

/// Zeros for the 16 channels of a pixel, or what there is of them.
void clearPixel(float* to, int channels) {
  if (channels == blockLength) {
    std::memset(to, 0, blockLength * sizeof(float));  // of a size that the compiler knows
  } else {
    std::memset(to, 0, static_cast<std::size_t>(channels) * sizeof(float));
  }
}

}  // namespace

void endNonTemporal() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void DirectDriver::clear(const DirectRun& what) const {
  if (what.writesPairs) return clearPixels(what, [](float* to, int) { std::fill_n(to, blockLength / 2, 0.0F); });
  if (!what.isNonTemporal || shape_.isCut) return clearPixels(what, clearPixel);
  clearPixels(what, [](float* to, int) { clearPixelNonTemporal(to); });
  endNonTemporal();
}

template <class Clear>
void DirectDriver::clearPixels(const DirectRun& what, const Clear& clear) const {
  for (std::size_t g = what.firstGroup; g < what.endGroup; ++g) {
    for (int block = 0; block < groups_[g].blocks; ++block) {
      const std::ptrdiff_t plane = (groups_[g].firstBlock + block) * shape_.outPlane;
      const bool isLast = groups_[g].firstBlock + block == shape_.outBlocks - 1;
      const int channels = shape_.isCut && isLast ? shape_.lastOuts : blockLength;
      for (int image = 0; image < what.images; ++image) {
        for (std::size_t t = what.firstTile; t < what.endTile; ++t) {
          float* to = what.output + image * what.outImage + plane + tiles_[t].output;
          for (int p = 0; p < tiles_[t].pixels; ++p, to += shape_.outPixel) clear(to, channels);
        }
      }
    }
  }
}

void DirectDriver::run(const DirectRun& what) const {
  if (shape_.taps.empty()) {
    if (what.addend == nullptr) clear(what);
    return;
  }
  if (what.writesPairs && !sumsAtOnce()) fail(taccInternalError, "parts of sums are not kept in bfloat16");
  const std::size_t inBlocks = shape_.inCounts.size();
  const std::ptrdiff_t pixelStride = shape_.inPixel * shape_.strideWidth;
  const bool hasOwnKernel = pixelStride == 1 || pixelStride == 2 || pixelStride == 4;
  const auto& kernels = shape_.isScattered                       ? kernels_.scattered[hasOwnKernel ? pixelStride : 0]
                        : pixelStride == kernels_.blockPixel     ? kernels_.tile
                        : pixelStride == 2 * kernels_.blockPixel ? kernels_.everySecond
                                                                 : kernels_.strided;
  const auto& halfKernels = pixelStride == kernels_.blockPixel ? kernels_.tileHalf : kernels_.stridedHalf;
  TileCall call{};
  bool isNonTemporal = false;
  const std::size_t valuesOfTap = values_.size() / shape_.taps.size();
  const std::size_t firstValue = what.firstTap * valuesOfTap;
  call.values = values_.data() + firstValue;
  call.valueCount = static_cast<int>((what.endTap == 0 ? values_.size() : what.endTap * valuesOfTap) - firstValue);
  call.inputPixel = pixelStride;
  call.outputPixel = shape_.outPixel;
  call.writesPairs = what.writesPairs;
  call.outputBlock = shape_.outPlane;
  MemoryParts fetched = what.fetched;
  const float* fetchedNext = fetched.first;
  call.lanes = what.lanes;
  call.offsets = what.offsets;
  for (std::size_t g = what.firstGroup; g < what.endGroup; ++g) {
    const OutGroup& group = groups_[g];
    const TileKernel* const ofPixels = group.endsWithin                 ? halfKernels[group.blocks]
                                       : !shape_.isPermuted             ? kernels[group.blocks]
                                       : pixelStride == blockLength     ? kernels_.permuted
                                       : pixelStride == 2 * blockLength ? kernels_.permutedEverySecond
                                                                        : kernels_.permutedStrided;
    const bool hasOwnTiles = group.endsWithin && !halfTiles_.empty();
    const std::vector<Tile>& tiles = hasOwnTiles ? halfTiles_ : tiles_;
    const auto tileOf = [&](std::size_t t) { return hasOwnTiles ? t * halfTiles_.size() / tiles_.size() : t; };
    const std::size_t firstTile = tileOf(what.firstTile), endTile = tileOf(what.endTile);
    const std::ptrdiff_t plane = group.firstBlock * shape_.outPlane;
    const bool endsCut = shape_.isCut && group.firstBlock + group.blocks == shape_.outBlocks;
    call.lastChannels = endsCut ? shape_.lastOuts : 0;
    call.weights = what.packed + group.packed + static_cast<std::ptrdiff_t>(firstValue) * group.blocks * blockLength;
    const bool fetches = what.fetchesInput && (shape_.goesByLine || g == what.firstGroup);
    call.fetchFirst = static_cast<int>(g - what.firstGroup);
    call.fetchStep = shape_.goesByLine ? static_cast<int>(what.endGroup - what.firstGroup) : 1;
    for (std::size_t from = 0; from < inBlocks; from += chunkBlocks_) {
      const std::size_t to = std::min(inBlocks, from + chunkBlocks_);
      const float* ahead = call.weights + rowsBefore_[to] * group.blocks * blockLength;
      call.weightsAhead = fetched.count > 0 ? &fetchedNext : &ahead;
      if (what.weightsEnd != nullptr) {  // as many as are used now
        const std::ptrdiff_t used = (rowsBefore_[to] - rowsBefore_[from]) * group.blocks * blockLength;
        call.weightsEnd = ahead + std::min(used, what.weightsEnd - ahead);
      }
      call.bias = from == 0 && what.bias != nullptr ? what.bias + group.firstBlock * blockLength : nullptr;
      call.activation = to == inBlocks ? what.activation : taccActivationNone;
      isNonTemporal = call.isNonTemporal =
          what.isNonTemporal && !shape_.isCut && what.addend == nullptr && chunkBlocks_ >= inBlocks;
      for (int image = 0; image < what.images; ++image) {
        const float* const input = what.input + image * what.inImage;
        float* const output = what.output + image * what.outImage + plane;
        const float* const addend =
            from > 0 ? output : (what.addend != nullptr ? what.addend + image * what.outImage + plane : nullptr);
        for (std::size_t t = firstTile; t < endTile; t += static_cast<std::size_t>(call.tiles)) {
          const Tile& tile = tiles[t];
          call.tiles = std::min(tile.following + 1, static_cast<int>(endTile - t));
          call.inputTile = inputOf(tile.pixels);
          const bool fetchesLines = shape_.goesByLine || shape_.isPermuted;
          call.fetchDistance = !fetches ? 0 : fetchesLines ? shape_.strideHeight * shape_.inLine : call.inputTile;
          call.outputTile = outputOf(tile.pixels);
          const List& list = lists_[static_cast<std::size_t>(tile.list)];
          call.runs = runs_.data() + list.first + from * static_cast<std::size_t>(list.taps);
          call.runCount = static_cast<int>(to - from) * list.taps;
          call.input = input + tile.input;
          call.output = output + tile.output;
          if (fetched.count > 0) {
            call.tiles = std::min(call.tiles, tilesOfFetch);
            const float* end = fetched.first + fetched.floats;
            if (fetchedNext >= end && --fetched.count > 0) {
              fetchedNext = fetched.first += fetched.step;
              end = fetchedNext + fetched.floats;
            }
            call.weightsEnd = end;
          }
          call.addend = addend != nullptr ? addend + tile.output : nullptr;
          ofPixels[tile.pixels](call);
        }
      }
    }
  }
  if (isNonTemporal) endNonTemporal();
}

}  // namespace tacc::conv
