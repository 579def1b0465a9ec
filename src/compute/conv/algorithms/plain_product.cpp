// 1x1 convolutions of NCHW on both sides, forward and backward to the data: products of matrices as they lie in memory.
// The pixels of a channel follow each other, so they take the place that output channels have elsewhere:
//
//   output[k][pixels] = sum over c of weights[k][c] * input[c][pixels]
//
// A vector is 16 pixels, and a value of the weights is broadcast. Some pixels of all channels of the input are copied
// side by side, as the kernels want it; nothing is transposed, and results go where they belong.
#include <algorithm>
#include <cstring>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Weights that every panel of pixels reads again are to be near.
constexpr std::ptrdiff_t mostWeights = 64 * 1024;

/// Rows of weights lie a multiple of whole lines of the cache apart, and an odd one, so that they do not fall on each
/// other there.
constexpr std::ptrdiff_t rowFloats(int values) {
  return std::ptrdiff_t{(values + blockLength - 1) / blockLength | 1} * blockLength;
}

class PlainProduct final : public ConvPlan {
 public:
  PlainProduct(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        kernels_(kernels),
        isForward_(d.pass == taccConvForward),
        values_(isForward_ ? d.shape.inChannels : d.shape.outChannels),
        results_(isForward_ ? d.shape.outChannels : d.shape.inChannels),
        pixels_(std::ptrdiff_t{d.shape.height} * d.shape.width),
        pixelBlocks_((pixels_ + blockLength - 1) / blockLength) {
    chooseTiles();
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * workerFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return static_cast<std::size_t>(results_) * static_cast<std::size_t>(rowFloats(values_));
  }
  double predictedSeconds() const override {
    // A line of the cache that is copied or written: mostly each is in another page. Fitted to MobileNet v2's layers.
    constexpr double ofLine = 6.5;
    const double copy = ofLine * (values_ + results_) * static_cast<double>(pixelBlocks_);
    const double bytes = double(values_ + results_) * static_cast<double>(pixels_) * shape().batch * sizeof(float);
    return std::max((cycles_ + copy) * shape().batch, transferCycles(bytes, 10)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    std::fill_n(packed, packedFloats(), 0.0F);
    for (int k = 0; k < shape().outChannels; ++k) {
      for (int c = 0; c < shape().inChannels; ++c) {
        const WeightBlock block =
            weightBlock(shape(), description_.weightLayout, 0, k / blockLength, c / blockLength, 0, 0);
        const float weight = weights[block.base + k % blockLength * block.outStep + c % blockLength * block.inStep];
        packed[isForward_ ? k * rowFloats(values_) + c : c * rowFloats(values_) + k] = weight;
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto panels = static_cast<std::size_t>((pixelBlocks_ + blocks_ - 1) / blocks_);
    executor.forEach(static_cast<std::size_t>(shape().batch) * panels, [&](std::size_t index, int worker) {
      float* const own = static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * workerFloats();
      runPanel(buffers, static_cast<std::ptrdiff_t>(index / panels),
               static_cast<std::ptrdiff_t>(index % panels) * blocks_, own);
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  /// A panel of the input, and pixels of results behind the last whole block.
  std::size_t workerFloats() const { return static_cast<std::size_t>(values_ * blocks_ + results_) * blockLength; }

  /// Results of a tile: of `tiles` that are nearly equal.
  struct Tiles {
    int blocks, count;
    double cycles;  // for all results of the blocks
  };
  Tiles tilesOf(int blocks) const {
    Tiles tiles{blocks, ceilDivide(results_, kernels_.pixelLimit[blocks]), 0};
    for (int t = 0; t < tiles.count; ++t) {
      const int rows = partSize(results_, tiles.count, t);
      tiles.cycles += values_ * stepCycles(kernels_, blocks, rows, rows) + tileCycles(kernels_, blocks, rows);
    }
    tiles.cycles += callCycles;
    return tiles;
  }
  void chooseTiles() {
    for (int blocks = 1; blocks <= maxBlocks && blocks <= pixelBlocks_; ++blocks) {
      if (kernels_.pixelLimit[blocks] == 0) continue;
      const double cycles = tilesOf(blocks).cycles * static_cast<double>(pixelBlocks_) / blocks;
      if (blocks_ != 0 && cycles >= cycles_) continue;
      blocks_ = blocks;
      cycles_ = cycles;
    }
  }

  /// Pixels of the blocks from `first` on. The last one, where it is not whole, by itself.
  void runPanel(const Buffers& buffers, std::ptrdiff_t image, std::ptrdiff_t first, float* own) const {
    const std::ptrdiff_t whole = std::min(first + blocks_, pixels_ / blockLength);
    const std::ptrdiff_t end = std::min(first + blocks_, pixelBlocks_);
    const float* const read = (isForward_ ? buffers.input : buffers.outputGradient) + image * values_ * pixels_;
    const std::ptrdiff_t at = image * results_ * pixels_;
    const float* const addend = description_.residual     ? buffers.residual + at
                                : description_.accumulate ? buffers.result + at
                                                          : nullptr;
    float* const result = buffers.result + at;
    const float* const bias = description_.bias ? buffers.bias : nullptr;
    if (whole > first) {
      const auto blocks = static_cast<int>(whole - first);
      const std::ptrdiff_t from = first * blockLength;
      copyPanel(read + from, blocks * blockLength, blocks, own);
      multiply(buffers.packedWeights, own, blocks, addend == nullptr ? nullptr : addend + from, bias, result + from,
               pixels_);
    }
    if (end == whole) return;
    const std::ptrdiff_t from = whole * blockLength;
    const std::ptrdiff_t left = pixels_ - from;
    float* const rest = own + values_ * blocks_ * blockLength;
    copyPanel(read + from, left, 1, own);
    std::fill_n(rest, results_ * blockLength, 0.0F);
    if (addend != nullptr) copyLines(addend + from, pixels_, rest, blockLength, left);
    multiply(buffers.packedWeights, own, 1, addend == nullptr ? nullptr : rest, bias, rest, blockLength);
    copyLines(rest, blockLength, result + from, pixels_, left);
  }

  /// `left` pixels of all channels that are read, side by side.
  void copyPanel(const float* from, std::ptrdiff_t left, int blocks, float* panel) const {
    const std::ptrdiff_t row = std::ptrdiff_t{blocks} * blockLength;
    for (int value = 0; value < values_; ++value, from += pixels_, panel += row) {
      if (left < row) std::fill_n(panel, row, 0.0F);
      std::memcpy(panel, from, static_cast<std::size_t>(left) * sizeof(float));
    }
  }
  /// `count` pixels of all results.
  void copyLines(const float* from, std::ptrdiff_t fromLine, float* to, std::ptrdiff_t toLine,
                 std::ptrdiff_t count) const {
    for (int row = 0; row < results_; ++row, from += fromLine, to += toLine) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    }
  }

  /// All results of some blocks of pixels; `line`: from one result's pixels to the next one's, also of the addend.
  void multiply(const float* weights, const float* panel, int blocks, const float* addend, const float* bias,
                float* output, std::ptrdiff_t line) const {
    const std::ptrdiff_t pixels = std::ptrdiff_t{blocks} * blockLength;
    if (bias != nullptr) {  // the kernels know one bias for each lane, which here is a pixel
      for (int row = 0; row < results_; ++row) {
        float* const to = output + row * line;
        for (std::ptrdiff_t p = 0; p < pixels; ++p) {
          to[p] = bias[row] + (addend == nullptr ? 0.0F : addend[row * line + p]);
        }
      }
      addend = output;
    }
    const TapRun all{0, 0, values_, BorderMask::none, false, false, 0, 0};
    const float* nothingAhead = panel;
    TileCall call{};
    call.inputPixel = rowFloats(values_);
    call.runs = &all;
    call.runCount = 1;
    call.weights = panel;
    call.weightsAhead = &nothingAhead;
    call.outputPixel = line;
    call.outputBlock = blockLength;
    call.activation = description_.activation;
    call.tiles = 1;
    const int tiles = ceilDivide(results_, kernels_.pixelLimit[blocks]);
    for (int t = 0, row = 0; t < tiles; ++t) {
      const int rows = partSize(results_, tiles, t);
      call.input = weights + row * call.inputPixel;
      call.addend = addend == nullptr ? nullptr : addend + row * line;
      call.output = output + row * line;
      kernels_.strided[blocks][rows](call);
      row += rows;
    }
  }

  Description description_;
  const KernelSet& kernels_;
  bool isForward_;
  int values_, results_;  // channels that are summed over, and that are written
  std::ptrdiff_t pixels_, pixelBlocks_;
  int blocks_ = 0;     // of pixels of a panel
  double cycles_ = 0;  // of the products of an image
};

}  // namespace

bool servesPlainProduct(const Description& d) {
  const Shape& s = d.shape;
  return d.pass != taccConvBackwardWeights && d.inputLayout == taccLayoutNchw && d.outputLayout == taccLayoutNchw &&
         s.kernelHeight == 1 && s.kernelWidth == 1 && s.strideHeight == 1 && s.strideWidth == 1 && s.padHeight == 0 &&
         s.padWidth == 0 && s.groups == 1 && std::ptrdiff_t{s.inChannels} * s.outChannels <= mostWeights;
}

std::unique_ptr<ConvPlan> makePlainProduct(const Description& d, const KernelSet& kernels) {
  return std::make_unique<PlainProduct>(d, kernels);
}

}  // namespace tacc::conv
