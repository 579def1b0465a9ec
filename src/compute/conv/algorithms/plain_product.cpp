// 1x1 convolutions of NCHW on both sides, forward and backward to the data: products of matrices as they lie in memory.
// The pixels of a channel follow each other, so they take the place that output channels have elsewhere:
//
//   output[k][pixels] = sum over c of weights[k][c] * input[c][pixels]
//
// A vector is 16 pixels, and a value of the weights is broadcast. Nothing is copied nor transposed, but for pixels
// behind the last whole vector. What the next strip of pixels reads is fetched, as hardware does not look ahead over
// channels: mostly each is in another page.
#include <algorithm>
#include <cstring>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/kernels/plain_kernels.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Weights that every strip of pixels reads again are to be near.
constexpr std::ptrdiff_t mostWeights = 1024 * 1024;

class PlainProduct final : public ConvPlan {
 public:
  PlainProduct(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        kernels_(plainKernels(kernels)),
        isForward_(d.pass == taccConvForward),
        values_(isForward_ ? d.shape.inChannels : d.shape.outChannels),
        results_(isForward_ ? d.shape.outChannels : d.shape.inChannels),
        pixels_(std::ptrdiff_t{d.shape.height} * d.shape.width) {
    chooseTiles(kernels);
    const auto images = static_cast<std::size_t>(d.shape.batch);
    const auto workers = static_cast<std::size_t>(d.maxWorkers);
    if (workers > 1 && images < 4 * workers) parts_ = std::min(strips(), (4 * workers + images - 1) / images);
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * workerFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return static_cast<std::size_t>(results_) * static_cast<std::size_t>(values_);
  }
  double predictedSeconds() const override {
    const double bytes = double(values_ + results_) * static_cast<double>(pixels_) * shape().batch * sizeof(float);
    return std::max(cycles_ * shape().batch, transferCycles(bytes, 10)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (const TaskPart& tile : tiles_) {
      float* to = packed + tile.from * static_cast<std::size_t>(values_);
      for (int value = 0; value < values_; ++value) {
        for (auto row = static_cast<int>(tile.from); row < static_cast<int>(tile.to); ++row) {
          const int out = isForward_ ? row : value;
          const int in = isForward_ ? value : row;
          const WeightBlock block =
              weightBlock(shape(), description_.weightLayout, 0, out / blockLength, in / blockLength, 0, 0);
          *to++ = weights[block.base + out % blockLength * block.outStep + in % blockLength * block.inStep];
        }
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    executor.forEach(static_cast<std::size_t>(shape().batch) * parts_, [&](std::size_t index, int worker) {
      float* const own = static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * workerFloats();
      runStrips(buffers, static_cast<std::ptrdiff_t>(index / parts_), partOf(strips(), parts_, index % parts_), own);
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::ptrdiff_t stripPixels() const { return std::ptrdiff_t{blocks_} * plainBlock; }
  std::size_t strips() const { return static_cast<std::size_t>((pixels_ + stripPixels() - 1) / stripPixels()); }
  /// Pixels behind the last whole vector, of what is read and of results.
  std::size_t workerFloats() const { return static_cast<std::size_t>(values_ + results_) * plainBlock; }

  /// Cycles of a strip of that many blocks.
  double stripCycles(const KernelSet& kernels, int blocks) const {
    // Of a line of the cache that comes from another page or goes there, and of a tile's sums that begin and end.
    constexpr double ofLine = 1.5, ofSum = 1.5;
    const int count = ceilDivide(results_, kernels_.rows[blocks]);
    double cycles = ofLine * blocks * (values_ + results_);
    for (int t = 0; t < count; ++t) {
      const int rows = partSize(results_, count, t);
      const double vectors = double(blocks) * blockLength / kernels.fmaLanes;
      const double step =
          std::max({productCycles(kernels, blocks, rows), latencyCycles, (vectors + rows + blocks) / 2});
      cycles += values_ * (step + 0.3) + ofSum * vectors * rows + callCycles / 2;
    }
    return cycles;
  }
  void chooseTiles(const KernelSet& kernels) {
    const double wholeBlocks = static_cast<double>((pixels_ + plainBlock - 1) / plainBlock);
    for (int blocks = 1; blocks <= mostPlainBlocks; ++blocks) {
      if (kernels_.rows[blocks] == 0) continue;
      const double cycles = stripCycles(kernels, blocks) * wholeBlocks / blocks;
      if (blocks_ != 0 && cycles >= cycles_) continue;
      blocks_ = blocks;
      cycles_ = cycles;
    }
    const auto count = static_cast<std::size_t>(ceilDivide(results_, kernels_.rows[blocks_]));
    for (std::size_t t = 0; t < count; ++t) tiles_.push_back(partOf(static_cast<std::size_t>(results_), count, t));
  }

  void runStrips(const Buffers& buffers, std::ptrdiff_t image, TaskPart strips, float* own) const {
    const float* const read = (isForward_ ? buffers.input : buffers.outputGradient) + image * values_ * pixels_;
    const std::ptrdiff_t at = image * results_ * pixels_;
    const float* const addend = description_.residual     ? buffers.residual + at
                                : description_.accumulate ? buffers.result + at
                                                          : nullptr;
    float* const result = buffers.result + at;
    const bool isNonTemporal = isNonTemporalResult(description_) && addend == nullptr && pixels_ % plainBlock == 0 &&
                               isAligned(buffers.result);
    const auto end = std::min(pixels_, static_cast<std::ptrdiff_t>(strips.to) * stripPixels());
    auto pixel = static_cast<std::ptrdiff_t>(strips.from) * stripPixels();
    const auto run = [&](int blocks, const float* from, std::ptrdiff_t fromLine, const float* added, float* to,
                         std::ptrdiff_t toLine) {
      PlainProductCall call{};
      call.input = from;
      call.inputLine = fromLine;
      call.values = values_;
      call.outputLine = toLine;
      call.activation = description_.activation;
      call.isNonTemporal = isNonTemporal;
      call.ahead = stripPixels();
      for (const TaskPart& tile : tiles_) {
        const auto row = static_cast<std::ptrdiff_t>(tile.from);
        call.weights = buffers.packedWeights + row * values_;
        call.bias = description_.bias ? buffers.bias + row : nullptr;
        call.addend = added == nullptr ? nullptr : added + row * toLine;
        call.output = to + row * toLine;
        kernels_.product[blocks][tile.to - tile.from](call);
        call.ahead = 0;
      }
    };
    while (end - pixel >= plainBlock) {
      const int blocks = end - pixel >= stripPixels() ? blocks_ : 1;
      run(blocks, read + pixel, pixels_, addend == nullptr ? nullptr : addend + pixel, result + pixel, pixels_);
      pixel += blocks * plainBlock;
    }
    if (pixel < end) {
      const std::ptrdiff_t left = end - pixel;
      float* const results = own + values_ * std::ptrdiff_t{plainBlock};
      std::fill_n(own, workerFloats(), 0.0F);
      copyLines(read + pixel, pixels_, own, plainBlock, values_, left);
      if (addend != nullptr) copyLines(addend + pixel, pixels_, results, plainBlock, results_, left);
      run(1, own, plainBlock, addend == nullptr ? nullptr : results, results, plainBlock);
      copyLines(results, plainBlock, result + pixel, pixels_, results_, left);
    }
    if (isNonTemporal) endNonTemporal();
  }

  /// `count` pixels of some channels.
  static void copyLines(const float* from, std::ptrdiff_t fromLine, float* to, std::ptrdiff_t toLine, int channels,
                        std::ptrdiff_t count) {
    for (int channel = 0; channel < channels; ++channel, from += fromLine, to += toLine) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    }
  }

  Description description_;
  const PlainKernels& kernels_;
  bool isForward_;
  int values_, results_;  // channels that are summed over, and that are written
  std::ptrdiff_t pixels_;
  int blocks_ = 0;               // of a strip
  std::vector<TaskPart> tiles_;  // of the results
  double cycles_ = 0;            // of an image
  std::size_t parts_ = 1;        // of an image's strips
};

}  // namespace

bool servesPlainProduct(const Description& d) {
  return d.pass != taccConvBackwardWeights && isPlainProduct(d) &&
         std::ptrdiff_t{d.shape.inChannels} * d.shape.outChannels <= mostWeights;
}

std::unique_ptr<ConvPlan> makePlainProduct(const Description& d, const KernelSet& kernels) {
  return std::make_unique<PlainProduct>(d, kernels);
}

}  // namespace tacc::conv
