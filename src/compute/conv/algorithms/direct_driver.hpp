// Correlation of blocked images: what a convolution is forward, and, with other taps, backward to its input.
//
// For every output pixel (y, x) and channel
//   output(y, x) = sum over taps and channels of weight * input(y * strideHeight + tap.dy, x * strideWidth + tap.dx)
// where input outside the image counts as zero and is not read: the masks of tiles leave those products out, so nothing
// is padded and nothing is multiplied by zero.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

struct Tap {
  int dy, dx;
};

/// Strides are in floats, of one image.
struct DirectShape {
  std::vector<int> inCounts;  // values of a pixel in each block of input channels: 16, the last one fewer
  int inHeight, inWidth;
  std::ptrdiff_t inPixel, inLine, inPlane;  // from pixel to pixel, line to line, block to block
  int outBlocks;
  int lastOuts = blockLength;  // channels of the last of these
  bool isCut = false;          // behind which another pixel begins, as in NHWC: no more than they are written
  int images = 1;              // that are written one after the other, as far as prices go
  bool skipsPixels = false;    // of the tensor that is written: others are between, as far as prices go
  int outHeight, outWidth;
  std::ptrdiff_t outPixel, outLine, outPlane;
  int strideHeight, strideWidth;
  std::vector<Tap> taps;
  /// The blocks of input are short: the kernel takes one value after the other. No tap may leave the image then.
  bool isScattered = false;
  /// Every output channel takes its own value: the kernel permutes. There is one block of output then, and a block
  /// of input has as many steps as its count says.
  bool isPermuted = false;
  /// The same for all lanes of a vector, which the kernel reads for all of them at once.
  bool takesOneValue = false;
  /// Channel of the first block of input where its values begin.
  int firstValue = 0;
  /// With one tap: a line of output is computed for all channels before the next one, and every group fetches a part of
  /// the next line of input. For input from behind the L2 cache, most of whose lines of the cache a stride leaves
  /// out: hardware does not look ahead over those.
  bool goesByLine = false;
  /// Groups that share pixels of both tensors, in NHWC, and go through the same tiles in turn.
  int groupsOfPixel = 1;
  /// For prices: bytes of all weights that are gone through before the same come again, where these are more than the
  /// driver's own, and for how many images each is read at a time.
  double weightBytes = 0;
  int imagesOfWeights = 1;
};

/// Several blocks of output channels that the kernel computes together.
struct OutGroup {
  int firstBlock;
  int blocks;
  std::ptrdiff_t packed;  // where their weights begin, in floats
  bool endsWithin;        // half of the last one has no channels, and is not computed
};

/// Weights of a group of outputs that are read for all tiles before the next ones are.
inline constexpr std::size_t weightBytesAtOnce = 256 * 1024;

/// Parts of memory, each of `floats` floats, that begin `step` floats apart.
struct MemoryParts {
  const float* first = nullptr;
  int count = 0;
  std::ptrdiff_t floats = 0, step = 0;
};

/// What one call of DirectDriver::run computes.
struct DirectRun {
  const float* input;  // of the first image, pixel (0, 0)
  const float* packed;
  const float* bias;    // outBlocks * 16 floats, or null
  const float* addend;  // laid out as the output and may be it; or null
  float* output;
  int images;
  std::ptrdiff_t inImage, outImage;  // from image to image
  std::size_t firstTile, endTile;
  std::size_t firstGroup, endGroup;
  taccActivation_t activation;
  const std::int32_t* lanes = nullptr;  // if permuted: TileCall's, for all rows of packed weights
  const std::int32_t* offsets = nullptr;
  /// The weights that are used next are brought into the L2 cache, up to this end: where they come from behind it.
  const float* weightsEnd = nullptr;
  /// The first group of outputs brings the input into the L2 cache: where it comes from behind it.
  bool fetchesInput = false;
  /// The output is stored non-temporally, unless something is added to it.
  bool isNonTemporal = false;
  /// If scattered: the taps that count, the others are outside the image for all tiles of the run; all if there are
  /// none.
  std::size_t firstTap = 0, endTap = 0;
  /// In place of weights, this is brought into the L2 cache: for who reads it next.
  MemoryParts fetched{};
  /// With kernels of pairs: the output and what is added to it are bfloat16, of a float each two. The driver
  /// sumsAtOnce() then.
  bool writesPairs = false;
};

/// What was stored non-temporally is seen by other threads before anything that is written later. Once for all tiles:
/// behind each call it would wait for memory over and over.
void endNonTemporal();

/// Immutable once made.
class DirectDriver {
 public:
  DirectDriver(DirectShape shape, const KernelSet& kernels);

  /// Tiles of one image, line by line, and how many of them keep the input of one pass in the L2 cache. A group that
  /// ends within a block may have smaller ones of its own: where a part of the tiles is asked for it computes an equal
  /// part of them.
  std::size_t tiles() const { return tiles_.size(); }
  std::size_t tilesAtOnce() const { return tilesAtOnce_; }
  /// How many of them, at most, are to be computed for all outputs before the next ones: all, unless blocks of a pixel
  /// follow each other in a result that leaves the L2 cache. Other orders would bring each of its lines there as often
  /// as there are groups of outputs.
  std::size_t tilesInOrder() const { return tilesInOrder_; }
  /// Tiles of one line of the output. All lines have as many when no tap leaves the image.
  std::size_t tilesOfLine() const { return tiles_.size() / static_cast<std::size_t>(shape_.outHeight); }
  /// The pixel that a tile of the only line begins with; behind the last tile the end of the line.
  int firstPixel(std::size_t tile) const {
    return tile == tiles_.size() ? shape_.outWidth : static_cast<int>(tiles_[tile].output / shape_.outPixel);
  }
  /// No group has tiles of its own.
  bool areTilesAlike() const { return halfTiles_.empty(); }
  const std::vector<OutGroup>& groups() const { return groups_; }
  std::size_t packedFloats() const;
  /// All input channels of a result before it is written.
  bool sumsAtOnce() const { return chunkBlocks_ >= shape_.inCounts.size(); }
  /// What is read of one image.
  std::size_t inputBytes() const;
  /// Pixels x blocks of the kernel that does most of the work, e.g. "14x2".
  std::string tileName() const;
  /// Cycles for one image by the model.
  double cycles() const { return cycles_; }
  /// What storing one takes, however little is multiplied, if all of its lines of the cache are stored in one go.
  double storingCycles() const;

  /// Orders the weights as run() reads them: write(to, outBlock, inBlock, tap, value) writes the 16 output channels of
  /// one input value to `to`.
  template <class Write>
  void pack(float* packed, const Write& write) const {
    for (const OutGroup& group : groups_) {
      float* to = packed + group.packed;
      forEachValue([&](int in, int tap, int value) {
        for (int b = 0; b < group.blocks; ++b, to += blockLength) write(to, group.firstBlock + b, in, tap, value);
      });
    }
  }

  /// Without any tap, which only phases of a backward pass are, `addend` is the output itself.
  void run(const DirectRun& what) const;

 private:
  /// Calls visit(block of input, tap, value) in the order of the weights: tap by tap if scattered, so that some of them
  /// follow each other, and otherwise block by block.
  template <class Visit>
  void forEachValue(const Visit& visit) const {
    const auto ins = static_cast<int>(shape_.inCounts.size());
    const auto taps = static_cast<int>(shape_.taps.size());
    for (int i = 0; i < ins * taps; ++i) {
      const int in = shape_.isScattered ? i % ins : i / taps;
      const int tap = shape_.isScattered ? i / ins : i % taps;
      for (int value = 0; value < shape_.inCounts[static_cast<std::size_t>(in)]; ++value) visit(in, tap, value);
    }
  }

  /// Zeros for the output, which nothing is read for.
  void clear(const DirectRun& what) const;
  template <class Clear>
  void clearPixels(const DirectRun& what, const Clear& clear) const;
  /// Floats from a tile to one that is right behind it.
  std::ptrdiff_t inputOf(int pixels) const { return pixels * shape_.strideWidth * shape_.inPixel; }
  std::ptrdiff_t outputOf(int pixels) const { return pixels * shape_.outPixel; }

  struct Tile {
    std::ptrdiff_t input, output;
    int pixels;
    int list;
    int following;  // tiles behind it that differ from it only in where they are, each as far from the one before
  };
  /// The runs of one kind of tile: `taps` for each block of input channels, from `first` on.
  struct List {
    std::size_t first;
    int taps;
  };
  struct Blocking {
    int blocks;
    int tilesOfLine;  // of output, before those with a mask that no kernel has are halved
    double cycles;    // for one image by the model
  };

  /// Whether blocks of a pixel of the result follow each other.
  bool hasApartBlocks() const { return shape_.outPixel > blockLength && shape_.outPlane == blockLength; }
  /// What writing an image costs whose blocks of a pixel follow each other, `blocks` of them at once, where it is too
  /// large for the L2 cache: beside its products, which take so many cycles.
  double apartLineCycles(int blocks, double products) const;
  /// Of that, where caches are near, of so many lines of the cache.
  double nearLineCycles(int blocks, double lines, double products) const;
  /// For so many blocks of output.
  Blocking chooseBlocking(int outBlocks) const;
  /// For the last block and a half of output, or the only half, where it can be computed without the other half and it
  /// is faster to.
  /// `whole` becomes the blocking of the blocks before, whose `blocks` are 0 if there are none. Without a value nothing
  /// changes.
  std::optional<Blocking> chooseHalf(Blocking& whole) const;
  /// Pixels that a mask of the kernels can leave out at either end of a tile.
  int mostOut() const;
  /// The pairs of a line of the output and a tap whose line is inside the image.
  double insideLines() const;
  /// Of an image, with so many tiles a line: those for which the weights of a tap are read, on average.
  double tilesOfTap(int tiles, double inside) const;
  /// Cycles for a line of the output, by blocks and tiles. `inside`: the part of the taps' lines that is inside the
  /// image.
  double cyclesOfLine(double blocks, int tiles, double inside) const;
  /// Permuted, where a vector is half a block: of a row and pixel, in those of products alone, where taps that lie side
  /// by side share what is permuted: three, then, without a stride, two of those that are left.
  double cyclesOfSharedHalf() const;
  /// No other tap of its line reads what this one does, for pixels further to the left.
  bool reachesFurthest(const Tap& tap) const;
  /// Of the first blocks of output.
  void makeGroups(int outBlocks, int blocks);
  std::vector<Tile> makeTiles(int tilesOfLine);
  /// For the runs of the newest list: which of each line of the image fetches what comes behind the line.
  void findNext(const List& list, int pixels);
  void makeValues();
  void findFollowing(std::vector<Tile>& tiles) const;
  void chooseChunks();
  void chooseOrder();

  DirectShape shape_;
  const KernelSet& kernels_;
  std::vector<Tile> tiles_;
  std::vector<Tile> halfTiles_;  // of the group that ends within a block, if they are others
  std::vector<List> lists_;
  std::vector<TapRun> runs_;
  std::vector<std::ptrdiff_t> values_;  // if scattered, in place of the runs
  std::vector<OutGroup> groups_;
  std::size_t rows_ = 0;                    // of packed weights of one block
  std::vector<std::ptrdiff_t> rowsBefore_;  // of these, before those of each block of input, and all
  std::size_t chunkBlocks_ = 0;             // blocks of input channels that are summed at once
  std::size_t tilesAtOnce_ = 0, tilesInOrder_ = 0;
  double cycles_ = 0;
};

}  // namespace tacc::conv
