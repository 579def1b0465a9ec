// Results of few channels in NHWC: forward to few outputs, and backward, with a stride of 1, to the data of few inputs.
// Tiles of a block of results would be mostly empty. The values of a line of the kernel, of all its taps and channels,
// follow each other in memory, so vectors hold these, and a result is an inner product for each line of the kernel:
//
//   output[pixel][k] = sum over lines r of <weights[k][r], values of line r that the pixel sees>
//
// What is read comes in the order of memory, which pays where strides leave out much of it. A pixel whose taps reach
// into the padding sums the others. Backward to the data is the same with the taps turned round.
#include <algorithm>
#include <cstdint>
#include <string>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/forward_shape.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

/// Of more results a tile that broadcasts is not half empty.
constexpr int mostResults = 8;
/// Inner products of fewer values are mostly what adding the lanes costs.
constexpr int leastDepth = 24, mostDepth = 16384;

class InnerProducts final : public ConvPlan {
 public:
  InnerProducts(const Description& d, const KernelSet& kernels, const Shape& forward)
      : ConvPlan(std::string(kernels.vectors) + " of " + std::to_string(forward.kernelWidth * forward.inChannels)),
        description_(d),
        kernels_(kernels),
        layers_(layers::kernelTable(kernels.vectors)),
        forward_(forward),
        values_(forward.kernelWidth * forward.inChannels) {
    // The pixels whose kernels lie between the ends of a line.
    left_ = std::min(forward.outWidth, ceilDivide(std::max(0, forward.padWidth), forward.strideWidth));
    const int last = forward.width + forward.padWidth - forward.kernelWidth;
    right_ = last < 0 ? left_ : std::clamp(last / forward.strideWidth + 1, left_, forward.outWidth);
    const auto lines = static_cast<std::size_t>(forward.outHeight);
    parts_ =
        balancedCut({static_cast<std::size_t>(forward.batch), lines}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * static_cast<std::size_t>(sumFloats()) * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return static_cast<std::size_t>(results() * lineWeights() * forward_.kernelHeight);
  }
  double predictedSeconds() const override {
    const Shape& c = forward_;
    const double pairs =
        insidePairs(c.outHeight, c.kernelHeight, c.strideHeight, c.dilationHeight, c.padHeight, c.height);
    // Of a sum's lanes, and of a pixel's place; of a line of the cache that comes from the L2 cache; of a tile's end.
    constexpr double ofRow = 1;
    const bool areWide = kernels_.fmaLanes == blockLength, areNear = areWide && !hasFarCaches();
    const double ofTile = areNear ? 55 : 80, ofLine = areNear ? 1 : 2.5, ofSum = areNear ? 2.5 : areWide ? 3 : 4;
    const double columns = c.outChannels, parts = ceilDivide(c.outChannels, areWide ? 4 : 3),
                 rowsOfTile = areWide ? 7 : 4;
    const double steps = ceilDivide(values_, kernels_.fmaLanes);
    // Loads of rows that lie across two lines of the cache wait for both; where caches are near, those of long rows do
    // that several lines of the kernel read over again.
    constexpr int longRow = 256;
    const bool waits = areWide && (!areNear || (values_ >= longRow && c.kernelHeight > 1));
    const std::int64_t ofStride = std::int64_t{c.strideWidth} * c.inChannels;  // floats
    const double rowLoad = ofStride % blockLength == 0 ? 0.5 : waits ? 1.75 : 1;
    const double step = std::max(columns / 2, parts * rowLoad + columns / rowsOfTile / 2) + (areWide ? 0.1 : 0.5);
    // Neighbours share what they read while it stays in the L1 cache.
    constexpr int floatsOfL1 = 8 * 1024;
    const bool areShared = !areNear || values_ <= floatsOfL1;
    const double newValues = areShared ? double(std::min<std::int64_t>(values_, ofStride)) : values_;
    // Of several lines of the kernel, each reads long pixels from another place, and waits for them.
    constexpr double ofLateLine = 3;
    constexpr int longPixel = 320;
    const bool areLate = areNear && areShared && c.kernelHeight > 1 && newValues >= longPixel;
    const double besideProducts = ofSum * columns + ofRow + newValues / blockLength * (areLate ? ofLateLine : ofLine);
    // Weights that do not stay in the L1 cache come for some pixels that go together, or for one at an end of a line.
    constexpr double weightBytes = 32;  // a cycle, from the L2 cache
    const double together = std::clamp(double(right_ - left_), 1.0, rowsOfTile);
    const double ofWeights =
        areWeightsFar() ? steps * columns * kernels_.fmaLanes * double(sizeof(float)) / weightBytes : 0;
    // A pixel by itself waits for every sum; at an end of a line it has two thirds of the taps or so.
    constexpr double latency = 4;
    const double ofAlone = std::max(parts * steps * latency, ofWeights);
    const double ofPixel = std::max(steps * step, ofAlone / together) + besideProducts;
    const double ofEdge = ofAlone * 2 / 3 + parts * ofTile;
    const double edges = pairs * (c.outWidth - (right_ - left_)) * (ofEdge - ofPixel);
    const double calls = pairs * parts * ofTile * (1 + double(c.outWidth) / static_cast<double>(pixelsAtOnce()));
    const double cycles = c.batch * (pairs * ofPixel * c.outWidth + edges + calls);
    const double bytes = touchedBytes(description_), moved = transferCycles(bytes, 9);
    // Nothing here fetches what comes next, nor do so few products hide it.
    const bool isLate = areNear && bytes > 2 * static_cast<double>(l2CacheBytes());
    return (isLate ? cycles + moved : overlappedCycles(cycles, moved)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    const Shape& s = description_.shape;
    const bool isData = description_.pass == taccConvBackwardData;
    std::fill_n(packed, packedFloats(), 0.0F);
    for (int k = 0; k < results(); ++k) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        const int line = isData ? s.kernelHeight - 1 - r : r;
        for (int value = 0; value < values_; ++value) {
          const int tap = value / forward_.inChannels, channel = value % forward_.inChannels;
          const int column = isData ? s.kernelWidth - 1 - tap : tap;
          const int out = isData ? channel : k, in = isData ? k : channel;
          const WeightBlock block =
              weightBlock(s, description_.weightLayout, 0, out / blockLength, in / blockLength, line, column);
          const float weight =
              weights[block.base + out % blockLength * block.outStep + in % blockLength * block.inStep];
          packed[(std::ptrdiff_t{r} * results() + k) * lineWeights() + value] = weight;
        }
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto batch = static_cast<std::size_t>(forward_.batch);
    executor.forEach(batch * parts_, [&](std::size_t index, int worker) {
      const auto image = static_cast<std::ptrdiff_t>(index / parts_);
      const TaskPart lines = partOf(static_cast<std::size_t>(forward_.outHeight), parts_, index % parts_);
      float* const scratch = static_cast<float*>(buffers.workspace) + worker * sumFloats();
      for (auto y = static_cast<int>(lines.from); y < static_cast<int>(lines.to); ++y)
        runLine(buffers, image, y, scratch);
    });
  }

 private:
  std::ptrdiff_t results() const { return forward_.outChannels; }
  /// Of a result, with so many zeros behind them that a part of them, up to the last one, is whole vectors, too.
  std::ptrdiff_t lineWeights() const { return roundUp(values_, blockLength) + blockLength; }
  /// Whether the L1 cache has no room for those that a call multiplies.
  bool areWeightsFar() const {
    constexpr std::ptrdiff_t bytesOfL1 = 32 * 1024;
    return results() * lineWeights() * std::ptrdiff_t{sizeof(float)} > bytesOfL1;
  }
  /// Pixels whose values of a line stay in the L1 cache while all results are computed.
  std::ptrdiff_t pixelsAtOnce() const {
    constexpr std::ptrdiff_t floats = 4096, rowsOfTiles = 24;
    return std::max(rowsOfTiles, floats / values_ / rowsOfTiles * rowsOfTiles);
  }
  /// Sums of a line.
  std::ptrdiff_t sumFloats() const {
    return (forward_.outWidth * results() + blockLength - 1) / blockLength * blockLength;
  }

  /// Line y of the results of an image.
  void runLine(const Buffers& buffers, std::ptrdiff_t image, int y, float* sums) const {
    const Shape& c = forward_;
    const bool isData = description_.pass == taccConvBackwardData;
    const float* const source =
        (isData ? buffers.outputGradient : buffers.input) + image * c.height * c.width * c.inChannels;
    const std::ptrdiff_t at = (image * c.outHeight + y) * c.outWidth * results();
    begin(buffers, at, sums);
    for (int r = 0; r < c.kernelHeight; ++r) {
      const int line = y * c.strideHeight + r * c.dilationHeight - c.padHeight;
      if (line < 0 || line >= c.height) continue;
      const float* const from = source + std::ptrdiff_t{line} * c.width * c.inChannels;
      const float* const weights = buffers.packedWeights + r * results() * lineWeights();
      for (int x = 0; x < c.outWidth; ++x) {
        if (x == left_ && x < right_) {
          sumPixels(from, weights, sums);
          x = right_ - 1;
          continue;
        }
        sumPixel(from, weights, x, sums);
      }
    }
    if (description_.activation != taccActivationNone) {
      kernels_.activate(description_.activation, sums, sumFloats() / blockLength);
    }
    std::copy_n(sums, c.outWidth * results(), buffers.result + at);
  }

  /// What the sums of a line begin with.
  void begin(const Buffers& buffers, std::ptrdiff_t at, float* sums) const {
    const std::ptrdiff_t floats = forward_.outWidth * results();
    std::fill_n(sums, sumFloats(), 0.0F);
    if (description_.bias) {
      for (std::ptrdiff_t x = 0; x < floats; x += results()) std::copy_n(buffers.bias, results(), sums + x);
    }
    const float* const addend = description_.residual     ? buffers.residual + at
                                : description_.accumulate ? buffers.result + at
                                                          : nullptr;
    for (std::ptrdiff_t i = 0; addend != nullptr && i < floats; ++i) sums[i] += addend[i];
  }

  /// Pixels that see no padding beside the line, some at a time.
  void sumPixels(const float* line, const float* weights, float* sums) const {
    const std::ptrdiff_t step = std::ptrdiff_t{forward_.strideWidth} * forward_.inChannels;
    const auto most = static_cast<int>(pixelsAtOnce());
    for (int x = left_; x < right_; x += most) {
      const float* const first = line + x * step - std::ptrdiff_t{forward_.padWidth} * forward_.inChannels;
      addProducts(first, values_, weights, x, std::min(most, right_ - x), sums);
    }
  }
  /// A pixel that sees some, with the taps that are on the line.
  void sumPixel(const float* line, const float* weights, int x, float* sums) const {
    const Shape& c = forward_;
    const int first = x * c.strideWidth - c.padWidth;
    const int from = std::clamp(first, 0, c.width), to = std::clamp(first + c.kernelWidth, from, c.width);
    if (from == to) return;
    const auto values = [&](int pixels) { return std::ptrdiff_t{pixels} * c.inChannels; };
    addProducts(line + values(from), values(to - from), weights + values(from - first), x, 1, sums);
  }

  /// Of so many values from `first` on, those of the next pixel a stride behind. Weights behind them are multiplied by
  /// zeros.
  void addProducts(const float* first, std::ptrdiff_t values, const float* weights, int x, int count,
                   float* sums) const {
    layers::InnerProductCall call{};
    call.rows = first;
    call.rowStride = std::ptrdiff_t{forward_.strideWidth} * forward_.inChannels;
    call.rowCount = count;
    call.columns = weights;
    call.columnStride = lineWeights();
    call.columnCount = forward_.outChannels;
    call.depth = values;
    call.results = sums + x * results();
    call.resultStride = results();
    call.adds = true;
    layers_.innerProducts(call);
  }

  Description description_;
  const KernelSet& kernels_;
  const layers::LayerKernels& layers_;
  Shape forward_;
  int values_;             // of a line of the kernel
  int left_, right_;       // pixels of a line between these see no padding beside it
  std::size_t parts_ = 1;  // of an image's lines
};

}  // namespace

bool servesInnerProducts(const Description& d) {
  const Shape& s = d.shape;
  const bool isData = d.pass == taccConvBackwardData;
  if (d.pass == taccConvBackwardWeights || d.inputLayout != taccLayoutNhwc || d.outputLayout != taccLayoutNhwc ||
      s.groups > 1 || (s.dilationWidth > 1 && s.kernelWidth > 1) || d.pairs.areRead || d.pairs.areWritten) {
    return false;
  }
  if (isData && (s.strideHeight > 1 || s.strideWidth > 1)) return false;
  const Shape forward = forwardShape(d);
  const std::int64_t values = std::int64_t{forward.kernelWidth} * forward.inChannels;
  return forward.outChannels <= mostResults && values >= leastDepth && values <= mostDepth;
}

std::unique_ptr<ConvPlan> makeInnerProducts(const Description& d, const KernelSet& kernels) {
  return std::make_unique<InnerProducts>(d, kernels, forwardShape(d));
}

}  // namespace tacc::conv
