// Results that are sums of few values, in NHWC on both sides: forward from few channels, and backward to the data of
// few outputs. There a tile is over before what it costs beside its products is hidden, and what is written is most of
// what moves. So tiles have kernels of their own (short_sums-inl.hpp) that go from tile to tile by themselves, and
// write whole pixels in the order of memory.
//
// One tap with strides, backward, computes the pixels that a tap has read, between zeros.
//
// Values of a line of the kernel, of all of its taps and channels, follow each other in NHWC. Where there is padding,
// what pixels at the ends of a line read is copied between zeros. Backward to the data is the same with the
// taps turned round.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/forward_shape.hpp"
#include "compute/conv/algorithms/sum_tiles.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// More values hide what a tile costs, but for so few pixels that all of them are one tile, whose weights are all that
/// moves.
constexpr int mostValues = 192, mostValuesOfTile = 4096, pixelsOfTile = 4;

/// Of so few channels, in first layers and behind them, half vectors are slower in other tiles: 11 by 11 taps of 2 and
/// 3 channels took 0.4 to 0.9 of their time.
constexpr int mostValuesOfFew = 512, channelsOfFew = 8;

/// Of products of half vectors: a step here takes fewer instructions than one of `direct`, whose pixels have places of
/// their own, which is felt while another thread shares the core.
constexpr int mostValuesOfProduct = 2048, leastPixelsOfProduct = 24;

/// Backward to the data, of one tap with strides: results lie between zeros.
bool spreads(const Description& d) {
  const Shape& s = d.shape;
  return d.pass == taccConvBackwardData && (s.strideHeight > 1 || s.strideWidth > 1) &&
         s.kernelHeight * s.kernelWidth == 1 && s.padHeight == 0 && s.padWidth == 0;
}

/// The shape of the forward convolution that computes the same, but for zeros between the results.
Shape asForward(const Description& d) {
  const Shape& s = d.shape;
  Shape c = forwardShape(d);
  if (spreads(d)) {
    c.strideHeight = c.strideWidth = 1;
    c.outHeight = s.outHeight;
    c.outWidth = s.outWidth;
    c.padHeight = c.padWidth = 0;
  }
  if (c.kernelWidth == 1) c.dilationWidth = 1;
  return c;
}

int valuesOf(const Shape& forward) { return forward.kernelHeight * forward.kernelWidth * forward.inChannels; }

/// A product of matrices is one line, of all images.
SumSize sizeOf(const Description& d, const Shape& forward) {
  const bool isProduct = forward.isProduct() && !spreads(d);
  return {forward.kernelHeight, forward.kernelWidth * forward.inChannels, forward.outChannels,
          isProduct ? forward.batch * forward.outHeight * forward.outWidth : forward.outWidth,
          std::ptrdiff_t{forward.strideWidth} * forward.inChannels};
}

bool isLongProduct(const Description& d, const Shape& forward, std::int64_t pixels) {
  return areNearHalves(d.vectorLanes) && forward.isProduct() && !spreads(d) && pixels >= leastPixelsOfProduct;
}

bool streams(const Description& d, const Shape& forward) {
  return !spreads(d) && isNonTemporalResult(d) && !d.residual && !d.accumulate &&
         forward.outChannels % blockLength == 0;
}

/// Pixels of a line of results, of which those at an end read what is outside the image: a copy of what they read lies
/// between zeros.
class EdgePixels {
 public:
  /// Strips [from, to).
  EdgePixels(const Shape& forward, const SumTiles& tiles, int from, int to)
      : from_(from), to_(to), channels_(forward.inChannels), width_(forward.width), lines_(forward.kernelHeight) {
    if (isEmpty()) return;
    begin_ = tiles.firstPixel(from) * forward.strideWidth - forward.padWidth;
    end_ = (tiles.firstPixel(to) - 1) * forward.strideWidth - forward.padWidth + forward.kernelWidth;
  }

  int from() const { return from_; }
  int to() const { return to_; }
  bool isEmpty() const { return from_ >= to_; }
  std::ptrdiff_t line() const { return std::ptrdiff_t{end_ - begin_} * channels_; }
  /// Floats of the copy, a multiple of 16.
  std::size_t floats() const { return static_cast<std::size_t>((lines_ * line() + 15) / 16 * 16); }
  double copyCycles() const {
    constexpr double perLine = 30, floatsOfCycle = 8;
    return isEmpty() ? 0 : lines_ * (perLine + static_cast<double>(line()) / floatsOfCycle);
  }

  void clear(float* copy) const { std::fill_n(copy, floats(), 0.0F); }
  /// From a line of the image to a line of the copy that has been cleared.
  void fill(const float* image, float* copy) const {
    const int first = std::max(begin_, 0), last = std::min(end_, width_);
    if (first >= last) return;
    std::memcpy(copy + std::ptrdiff_t{first - begin_} * channels_, image + std::ptrdiff_t{first} * channels_,
                static_cast<std::size_t>(last - first) * static_cast<std::size_t>(channels_) * sizeof(float));
  }

 private:
  int from_, to_;
  int channels_, width_, lines_;
  int begin_ = 0, end_ = 0;  // pixels of the image, some of them outside
};

class ShortSums final : public ConvPlan {
 public:
  ShortSums(const Description& d, const KernelSet& kernels, const Shape& forward, const SumTiles& tiles)
      : ConvPlan(std::string(kernels.vectors) + " " + std::to_string(tiles.pixels()) + "x" +
                 std::to_string(tiles.vectors())),
        description_(d),
        forward_(forward),
        tiles_(tiles),
        left_(forward, tiles, 0, stripsOfLeft()),
        right_(forward, tiles, std::max(left_.to(), firstOfRight()), tiles.strips()),
        isNonTemporal_(streams(d, forward)),
        areShort_(kernels.fmaLanes < blockLength),
        areHalves_(kernels.fmaLanes == blockLength / 2),
        hasWideUnits_(hasTwoWideUnits(kernels)),
        spreads_(spreads(d)),
        fetchesOutput_(areShort_ || valuesOf(forward) <= mostFetching),
        fetchesInput_(areShort_ && !hasFarCaches() && readBytes() > coreModel().lastCacheBytes) {
    cutWork();
  }

  std::size_t workspaceBytes() const override {
    return biasWorkspaceBytes(description_) +
           scratchFloats() * sizeof(float) * static_cast<std::size_t>(description_.maxWorkers);
  }
  std::size_t packedFloats() const override { return tiles_.packedFloats(); }
  double predictedSeconds() const override {
    const Shape& c = forward_;
    double cycles = callCycles + tiles_.cycles();
    if (!isProduct()) {
      constexpr double ofLine = 100;
      // Strips of long vectors wait for lines of the kernel to begin anew.
      const double ofStrip = hasWideUnits_ && !hasFarCaches() && c.kernelHeight > 1 ? 18 : 0;
      const double inside =
          insidePairs(c.outHeight, c.kernelHeight, c.strideHeight, c.dilationHeight, c.padHeight, c.height) /
          (double(c.outHeight) * c.kernelHeight);
      const double copied = left_.copyCycles() + right_.copyCycles();
      cycles =
          double(c.batch) * c.outHeight * (ofLine + ofStrip * tiles_.strips() + inside * (tiles_.cycles() + copied));
    }
    const double written = double(c.batch) * static_cast<double>(imageStep()) * c.outChannels * sizeof(float);
    constexpr double clearedBytes = 32;    // a cycle
    constexpr double ofClearedLine = 140;  // where two long products a cycle leave no time for it
    const bool isNear = hasWideUnits_ && !hasFarCaches();
    if (spreads_ && isNear) cycles += ofClearedLine * c.batch * c.outHeight;
    const double products = cycles, cleared = spreads_ ? written / clearedBytes : 0;
    cycles += cleared;
    const double read = readBytes();
    constexpr double bytesOfMemory = 12;
    // Some tiles at a time go through all pixels where weights do not stay in the L2 cache.
    const double weights = tiles_.passes() > 1 ? static_cast<double>(packedFloats() * sizeof(float)) : 0;
    const double brought = weights + tiles_.passes() * read;
    const double moved =
        std::max(plainlyStoredCycles(written, read),
                 isNonTemporal_ ? streamedCycles(written, bytesOfMemory) + transferCycles(brought, bytesOfMemory)
                                : transferCycles(written + brought, bytesOfMemory));
    // Products of short vectors take long enough to hide what is fetched meanwhile.
    const double near = storingCycles(written, cycles);
    // Over those of the cache no hardware looks ahead, and nothing here fetches them.
    constexpr double bytesOfSkipping = 3, bytesOfFetching = 4;
    const double leastLate = static_cast<double>(l2CacheBytes()) * (areShort_ ? 0.5 : 2);
    const bool isLate = skipsLines() && !hasFarCaches() && read > leastLate;
    // What is written drives what is read out of the last cache, too.
    const bool isDrivenOut = areShort_ && !hasFarCaches() && read > coreModel().lastCacheBytes / 2 &&
                             read + written > coreModel().lastCacheBytes;
    // Nor does it over memory as soon as tiles of long vectors would need it.
    const bool isOfMemory = isNear && read + written > coreModel().lastCacheBytes;
    const double late = isLate                         ? read / bytesOfSkipping
                        : fetchesInput_ || isDrivenOut ? read / bytesOfFetching
                        : isOfMemory                   ? read / 9
                                                       : 0;
    // Between zeros a result of half vectors is read from memory before it goes there.
    constexpr double bytesOfSpread = 6;
    const bool isReadToSpread =
        spreads_ && areHalves_ && !hasFarCaches() && layers::isTooLargeForCaches(static_cast<std::size_t>(written));
    const double spread = isReadToSpread ? written / bytesOfSpread : 0;
    if (spreads_ && isNear) return (late + spreadCycles(products, std::max(cleared, moved))) / assumedHertz;
    return (late + spread + unfetchedCycles(written) + unevenCycles(products) +
            std::max(near, areShort_ ? std::max(cycles, moved) : overlappedCycles(cycles, moved))) /
           assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    const Shape& s = description_.shape;
    std::fill_n(packed, packedFloats(), 0.0F);
    for (int out = 0; out < s.outBlocks(); ++out) {
      for (int in = 0; in < s.inBlocks(); ++in) {
        for (int r = 0; r < s.kernelHeight; ++r) {
          for (int t = 0; t < s.kernelWidth; ++t) {
            packBlock(weights, weightBlock(s, description_.weightLayout, 0, out, in, r, t), out * blockLength,
                      in * blockLength, isForward() ? r : s.kernelHeight - 1 - r,
                      isForward() ? t : s.kernelWidth - 1 - t, packed);
          }
        }
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const ShortSumsCall call = callOf(buffers);
    if (isProduct()) {
      executor.forEach(tileParts_ * parts_, [&](std::size_t index, int) {
        const TaskPart some = partOf(static_cast<std::size_t>(tiles_.strips()), parts_, index % parts_);
        const TaskPart along = partOf(static_cast<std::size_t>(tiles_.tiles()), tileParts_, index / parts_);
        const auto first = static_cast<int>(some.from);
        const int pixel = tiles_.firstPixel(first);
        tiles_.run(from(call, pixel, pixel), 0, first, static_cast<int>(some.to),
                   {static_cast<int>(along.from), static_cast<int>(along.to)});
        if (call.isNonTemporal) endNonTemporal();
      });
      return;
    }
    float* const scratch = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(description_) / sizeof(float);
    executor.forEach(static_cast<std::size_t>(forward_.batch) * parts_, [&](std::size_t index, int worker) {
      const auto image = static_cast<std::ptrdiff_t>(index / parts_);
      const TaskPart lines = partOf(static_cast<std::size_t>(forward_.outHeight), parts_, index % parts_);
      runLines(from(call, image * forward_.height * forward_.width, image * imageStep()), static_cast<int>(lines.from),
               static_cast<int>(lines.to), scratch + static_cast<std::size_t>(worker) * scratchFloats());
      if (call.isNonTemporal) endNonTemporal();
    });
  }

 private:
  /// Zeros are there before the products between them begin; long products hide some of what moves.
  static double spreadCycles(double products, double moved) {
    constexpr double most = 0.7, ofLonger = 0.5;
    return products + moved - std::min(most * moved, ofLonger * std::max(0.0, products - moved));
  }
  /// Whether a result of so many bytes is read from memory, as it goes there, because it is stored plainly. Where
  /// caches are near; long vectors of one unit have not been measured.
  bool isReadToWrite(double written) const {
    return (hasWideUnits_ || areShort_) && !hasFarCaches() && !isNonTemporal_ && !spreads_ &&
           written > coreModel().lastCacheBytes;
  }
  /// Where it is, what moves takes.
  double plainlyStoredCycles(double written, double read) const {
    constexpr double bytesOfRead = 12;
    const double bytesOfWritten = areShort_ ? 5 : 8;
    return isReadToWrite(written) ? written / bytesOfWritten + read / bytesOfRead : 0;
  }
  /// Where it is and nothing fetches it before, what stores wait for beside.
  double unfetchedCycles(double written) const {
    constexpr double ofLine = 6;
    return isReadToWrite(written) && !fetchesOutput_ ? ofLine * written / (blockLength * sizeof(float)) : 0;
  }
  /// With what storing `written` bytes to the L2 cache takes. From a quarter of that cache on it takes longer, and some
  /// of it is not hidden behind the products.
  double storingCycles(double written, double products) const {
    constexpr double ofLine = 4.5, ofLineMore = 2, notHidden = 0.3;
    const double quarter = static_cast<double>(l2CacheBytes()) / 4;
    const double part = std::clamp(written / quarter - 1, 0.0, 1.0);
    const double lines = written / (blockLength * sizeof(float));
    const double stored = storedCycles(written, lines, ofLine + ofLineMore * part);
    const double whole = std::max(products, stored) + notHidden * part * std::min(products, stored);
    // Half of what ends first is not hidden, but behind long products, or of pixels of a single vector.
    constexpr double hidden = 0.05;
    const double cut = cutCycles();
    const bool isHidden = cut == 0 || forward_.outChannels <= blockLength;
    return std::max(cut, whole) + (isHidden ? 0 : std::max(0.0, std::min(cut, whole) / 2 - hidden * whole));
  }

  /// Where caches are near, of wide vectors and pixels that are no whole lines of the cache: most stores are to two of
  /// them.
  double cutCycles() const {
    constexpr double ofStore = 3.9;
    const Shape& c = forward_;
    const bool isCut = hasWideUnits_ && !hasFarCaches() && c.outChannels % blockLength != 0;
    const double lines = double(c.outChannels) / blockLength;  // of a pixel, each of which ends within a store
    const double ofPart = lines > 1 ? 0.5 : 0;                 // of a vector, behind whole ones
    return isCut ? ofStore * (lines + ofPart) * c.batch * c.outHeight * c.outWidth : 0;
  }

  /// Of vectors of half a block, and pixels that are no whole ones: stores to two lines of the cache, which so many
  /// cycles of products hide, of sums of several values; and those of the last channels, which are several.
  double unevenCycles(double products) const {
    constexpr double ofStore = 2, ofLast = 4, ofHidden = 0.35;
    constexpr int lanes = blockLength / 2, leastHiding = 8;
    constexpr double pixelsOfPlane = 300;
    const Shape& c = forward_;
    if (!areHalves_ || hasFarCaches() || c.outChannels % lanes == 0) return 0;
    const double pixels = double(c.batch) * c.outHeight * c.outWidth;
    // Of small planes lines begin and end too often for products to hide much.
    const double ofPlane = std::min(1.0, double(c.outHeight) * c.outWidth / pixelsOfPlane);
    const double hidden = valuesOf(forward_) < leastHiding ? 0 : ofHidden * ofPlane * products;
    return ofLast * pixels + std::max(0.0, ofStore * ceilDivide(c.outChannels, lanes) * pixels - hidden);
  }

  /// Lines of the cache that strides leave out between pixels are not read.
  bool skipsLines() const {
    return (double(forward_.strideWidth) - forward_.kernelWidth) * forward_.inChannels > blockLength;
  }
  /// Without lines of the image that strides leave out.
  double readBytes() const {
    const Shape& c = forward_;
    const double lines = std::min<double>(c.height, double(c.outHeight) * c.kernelHeight);
    const double pixels = skipsLines() ? std::min<double>(c.width, double(c.outWidth) * c.kernelWidth) : c.width;
    return double(c.batch) * lines * pixels * c.inChannels * static_cast<double>(sizeof(float));
  }

  /// Where vectors are long, products of more values than these take as long as fetching what they are written to.
  static constexpr int mostFetching = 16;

  bool isForward() const { return description_.pass == taccConvForward; }
  bool isProduct() const { return forward_.isProduct() && !spreads_; }
  // From result to result, line to line and image to image of the tensor, in pixels.
  std::ptrdiff_t pixelStep() const { return spreads_ ? description_.shape.strideWidth : 1; }
  std::ptrdiff_t lineStep() const {
    const Shape& s = description_.shape;
    return spreads_ ? std::ptrdiff_t{s.strideHeight} * s.width : forward_.outWidth;
  }
  std::ptrdiff_t imageStep() const {
    const Shape& s = description_.shape;
    return spreads_ ? std::ptrdiff_t{s.height} * s.width : std::ptrdiff_t{forward_.outHeight} * forward_.outWidth;
  }
  /// The lines of the tensor that line `line` of the results is the first one of.
  void clearLines(float* image, int line) const {
    const std::ptrdiff_t first = line * lineStep();
    const std::ptrdiff_t end = line + 1 == forward_.outHeight ? imageStep() : first + lineStep();
    const std::ptrdiff_t channels = forward_.outChannels;
    std::memset(image + first * channels, 0, static_cast<std::size_t>((end - first) * channels) * sizeof(float));
  }
  std::size_t scratchFloats() const { return left_.floats() + right_.floats(); }

  void cutWork() {
    const auto workers = static_cast<std::size_t>(description_.maxWorkers);
    if (!isProduct()) {
      const auto images = static_cast<std::size_t>(forward_.batch);
      parts_ = balancedCut({images, static_cast<std::size_t>(forward_.outHeight)}, workers).rowParts;
      return;
    }
    const auto strips = static_cast<std::size_t>(tiles_.strips()), tiles = static_cast<std::size_t>(tiles_.tiles());
    // Rather so that what is more, the pixels or their weights, is read once.
    const bool areWeightsLess = static_cast<double>(packedFloats() * sizeof(float)) < readBytes();
    const TaskCut cut =
        balancedCut(areWeightsLess ? DivisibleWork{1, tiles, strips} : DivisibleWork{1, strips, tiles}, workers);
    parts_ = areWeightsLess ? cut.columnParts : cut.rowParts;
    tileParts_ = areWeightsLess ? cut.rowParts : cut.columnParts;
  }

  /// Strips of a line that read pixels before the image; the first of those that read some behind it.
  int stripsOfLeft() const {
    int strips = 0;
    while (!isProduct() && strips < tiles_.strips() &&
           tiles_.firstPixel(strips) * forward_.strideWidth < forward_.padWidth)
      ++strips;
    return strips;
  }
  int firstOfRight() const {
    int strip = tiles_.strips();
    const auto end = [&](int pixel) { return pixel * forward_.strideWidth - forward_.padWidth + forward_.kernelWidth; };
    while (!isProduct() && strip > 0 && end(tiles_.firstPixel(strip) - 1) > forward_.width) --strip;
    return strip;
  }

  void packBlock(const float* weights, const WeightBlock& block, int firstOut, int firstIn, int line, int column,
                 float* packed) const {
    const int row = (line * forward_.kernelWidth + column) * forward_.inChannels;
    for (int k = 0; k < block.outs; ++k) {
      for (int c = 0; c < block.ins; ++c) {
        const int result = isForward() ? firstOut + k : firstIn + c, value = isForward() ? firstIn + c : firstOut + k;
        const SumTiles::Place place = tiles_.placeOf(result);
        packed[place.packed + std::ptrdiff_t{row + value} * place.lanes + result - place.channel] =
            weights[block.base + k * block.outStep + c * block.inStep];
      }
    }
  }

  /// Of everything, from the first pixel on.
  ShortSumsCall callOf(const Buffers& buffers) const {
    ShortSumsCall call{};
    call.input = isForward() ? buffers.input : buffers.outputGradient;
    call.inputPixel = std::ptrdiff_t{forward_.strideWidth} * forward_.inChannels;
    call.lines = forward_.kernelHeight;
    call.values = forward_.kernelWidth * forward_.inChannels;
    call.weights = buffers.packedWeights;
    call.bias = paddedBias(description_, buffers);
    call.addend = description_.residual ? buffers.residual : description_.accumulate ? buffers.result : nullptr;
    call.output = buffers.result;
    call.outputPixel = pixelStep() * forward_.outChannels;
    call.activation = description_.activation;
    call.isNonTemporal = isNonTemporal_ && isAligned(buffers.result);
    call.fetchesInput = fetchesInput_;
    call.outputAhead = fetchesOutput_ && !call.isNonTemporal ? 1 : 0;
    return call;
  }

  /// The same from other pixels on, of the input and of the result.
  ShortSumsCall from(ShortSumsCall call, std::ptrdiff_t inPixel, std::ptrdiff_t outPixel) const {
    call.input += inPixel * forward_.inChannels;
    call.output += outPixel * forward_.outChannels;
    if (call.addend != nullptr) call.addend += outPixel * forward_.outChannels;
    return call;
  }

  /// Lines [first, end) of the result of an image.
  void runLines(const ShortSumsCall& image, int first, int end, float* scratch) const {
    const Shape& c = forward_;
    if (!left_.isEmpty()) left_.clear(scratch);
    if (!right_.isEmpty()) right_.clear(scratch + left_.floats());
    for (int line = first; line < end; ++line) {
      const int read = line * c.strideHeight - c.padHeight;  // by the kernel's first line
      const int kernelLine = std::min(c.kernelHeight, firstInside(read, c.dilationHeight));
      const int kernelEnd = std::min(c.kernelHeight, endInside(read, c.dilationHeight, c.height));
      const std::ptrdiff_t pixel =
          kernelLine < kernelEnd ? std::ptrdiff_t{read + kernelLine * c.dilationHeight} * c.width : 0;
      if (spreads_ && !description_.accumulate) clearLines(image.output, line);
      ShortSumsCall call = from(image, pixel, line * lineStep());
      call.lines = std::max(0, kernelEnd - kernelLine);
      call.inputLine = std::ptrdiff_t{c.dilationHeight} * c.width * c.inChannels;
      runEdge(left_, call, kernelLine, scratch);
      if (left_.to() < right_.from()) {
        const int firstPixel = tiles_.firstPixel(left_.to());
        tiles_.run(from(call, firstPixel * c.strideWidth - c.padWidth, firstPixel * pixelStep()), kernelLine,
                   left_.to(), right_.from());
      }
      runEdge(right_, call, kernelLine, scratch + left_.floats());
    }
  }

  /// `line`: from the beginning of the lines of the image and of the result on.
  void runEdge(const EdgePixels& edge, const ShortSumsCall& line, int kernelLine, float* copy) const {
    if (edge.isEmpty()) return;
    for (int r = 0; r < line.lines; ++r) edge.fill(line.input + r * line.inputLine, copy + r * edge.line());
    ShortSumsCall call = from(line, 0, tiles_.firstPixel(edge.from()));
    call.input = copy;
    call.inputLine = edge.line();
    tiles_.run(call, kernelLine, edge.from(), edge.to());
  }

  Description description_;
  Shape forward_;  // of the forward convolution that computes the same
  SumTiles tiles_;
  EdgePixels left_, right_;
  bool isNonTemporal_;
  bool areShort_;   // vectors: less than a line of the cache
  bool areHalves_;  // the same: half a line, stored in parts by several stores
  bool hasWideUnits_;
  bool spreads_;
  bool fetchesOutput_, fetchesInput_;
  std::size_t parts_ = 1;      // of the strips of a product, or of an image's lines
  std::size_t tileParts_ = 1;  // of a product's tiles along the channels
};

}  // namespace

bool servesShortSums(const Description& d) {
  const Shape& s = d.shape;
  const bool isBackward = d.pass == taccConvBackwardData;
  if (d.pass == taccConvBackwardWeights || s.groups != 1 || d.inputLayout != taccLayoutNhwc ||
      d.outputLayout != taccLayoutNhwc || d.pairs.areRead || d.pairs.areWritten)
    return false;
  if (isBackward && (s.strideHeight != 1 || s.strideWidth != 1) && !spreads(d)) return false;
  const Shape forward = asForward(d);
  const std::int64_t pixels = std::int64_t{s.batch} * forward.outHeight * forward.outWidth;
  const std::int64_t values = std::int64_t{s.kernelHeight} * s.kernelWidth * forward.inChannels;
  const std::int64_t weights = values * roundUp(forward.outChannels, blockLength);
  if (forward.padHeight < 0 || forward.padWidth < 0 || forward.dilationWidth != 1 ||
      pixels > std::numeric_limits<int>::max())
    return false;
  if (values <= mostValuesOfProduct && isLongProduct(d, forward, pixels)) return true;
  const bool areFewChannels = areNearHalves(d.vectorLanes) && forward.inChannels <= channelsOfFew;
  const int most = areFewChannels ? mostValuesOfFew : mostValues;
  return values <= (pixels <= pixelsOfTile ? mostValuesOfTile : most) &&
         staysInL2(static_cast<std::size_t>(weights) * sizeof(float));
}

std::unique_ptr<ConvPlan> makeShortSums(const Description& d, const KernelSet& kernels) {
  const Shape forward = asForward(d);
  return std::make_unique<ShortSums>(d, kernels, forward, SumTiles(kernels, sizeOf(d, forward), streams(d, forward)));
}

}  // namespace tacc::conv
