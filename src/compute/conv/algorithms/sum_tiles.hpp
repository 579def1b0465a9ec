// How results that are sums of few values are cut into tiles: strips of pixels, and of each tiles of some vectors of
// channels, the last of which may be narrower.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/kernels/short_sums_kernels.hpp"

namespace tacc::conv {

/// Sums of lines of values for each result.
struct SumSize {
  int lines, values;          // and values of a line
  int channels;               // of results
  int pixels;                 // of a line of them
  std::ptrdiff_t inputPixel;  // floats from what a pixel reads to what the next one does
};

class SumTiles {
 public:
  /// The cheapest by the model. `ofWholeLines`: tiles are whole lines of the cache.
  SumTiles(const KernelSet& kernels, const SumSize& size, bool ofWholeLines);

  /// A tile's channels begin at `channel`; `packed`: its weights begin, row after row of `lanes` lanes.
  struct Place {
    int channel, lanes;
    std::ptrdiff_t packed;
  };
  Place placeOf(int channel) const;
  std::size_t packedFloats() const;
  int strips() const { return strips_; }
  /// Of a strip, with the narrower one behind the others.
  int tiles() const { return tiles_ + (restVectors_ == 0 ? 0 : 1); }
  int vectors() const { return vectors_; }
  int pixels() const { return pixels_; }
  /// How often the pixels of a call are gone through: once, or where weights do not stay in the L2 cache by some tiles
  /// at a time, whose weights do.
  int passes() const;
  /// For a line of results, from kernel line to kernel line the same.
  double cycles() const { return cycles_; }

  /// Of a line; to strips().
  int firstPixel(int strip) const;

  /// Strips [from, to) of a line, whose first pixel `call` is for; `firstLine`: of the kernel, of whose lines it has as
  /// many as it says. What the call says of tiles is filled in.
  void run(const ShortSumsCall& call, int firstLine, int from, int to) const {
    run(call, firstLine, from, to, {0, tiles()});
  }

  /// Tiles [from, to) along the channels.
  struct Tiles {
    int from, to;
  };
  /// The same of some tiles; `call` is for the first channel of all.
  void run(const ShortSumsCall& call, int firstLine, int from, int to, Tiles tiles) const;

 private:
  double cyclesOfTile(const KernelSet& kernels, int vectors, int pixels) const;
  void choose(const KernelSet& kernels, bool ofWholeLines);
  void runStrips(const ShortSumsCall& call, int firstLine, int pixels, Tiles tiles) const;

  const ShortSumsKernels& kernels_;
  SumSize size_;
  int vectors_ = 0, pixels_ = 0;  // of a tile
  int tiles_ = 0;                 // of that many vectors
  int restVectors_ = 0;           // of the one behind them; 0: there is none
  int strips_ = 0, stripsAtOnce_ = 0;
  int tilesAtOnce_ = 0;  // of those of vectors_
  double cycles_ = 0;
};

}  // namespace tacc::conv
