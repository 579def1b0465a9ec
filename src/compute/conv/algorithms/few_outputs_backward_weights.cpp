// Gradient of the weights of a layer with few output channels: the gradient kernel with its operands in each other's
// place. Vectors are of input channels, of which there are many, and broadcast are the output's gradients, so no lanes
// of a block are multiplied that no channel fills, and the input, mostly the larger tensor, is read once in order.
#include <fmt/format.h>

#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/weight_tiles.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

class FewOutputs final : public ConvPlan {
 public:
  FewOutputs(const Description& d, const KernelSet& kernels, const WeightTiles& tiles)
      : ConvPlan(fmt::format("{} {}x{}", kernels.vectors, tiles.lastRowParts.front().size(),
                             tiles.blockParts.front().size())),
        description_(d),
        kernels_(kernels),
        tiles_(tiles),
        readsFromMemory_(readsFromMemory(d)),
        in_(blockSteps(d.inputLayout, d.shape.inChannels, d.shape.height, d.shape.width)),
        out_(blockSteps(d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth)) {
    // Lines whose input is still in the L2 cache when the next tap reads it, of as many blocks as a tile has.
    const Shape& s = shape();
    const double lineBytes =
        double(tiles_.blockParts.front().size() * s.strideHeight * s.width + s.outWidth) * blockLength * sizeof(float);
    const double wanted = static_cast<double>(l2CacheBytes()) / 4 / lineBytes;
    linesAtOnce_ = static_cast<int>(std::clamp(wanted, 1.0, 1e6));
    // Parts of the pixels are summed apart and added in order: as many for any number of workers.
    constexpr double pixelsOfPart = 4096, mostParts = 16;
    const double parts = std::min(mostParts / static_cast<double>(tiles_.blockParts.size()), pixels() / pixelsOfPart);
    pixelParts_ = static_cast<std::size_t>(std::clamp(parts, 1.0, double(lines())));
  }

  std::size_t workspaceBytes() const override { return pixelParts_ * sumFloats() * sizeof(float); }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double linePairs =
        s.batch * insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
    const double columnPairs =
        insidePairs(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width);
    const double tiles = static_cast<double>(tiles_.blockParts.size() * tiles_.lastRowParts.size());
    const double calls = std::max<double>(static_cast<double>(pixelParts_), double(lines()) / linesAtOnce_);
    const double beside =
        tiles * s.kernelWidth * (calls * s.kernelHeight * callCycles + (areLinesOne() ? 0 : linePairs * lineCycles));
    // In blocks a line of the cache is written for each sum of an output channel.
    constexpr double cyclesOfBlock = 200, cyclesOfSum = 3.5;
    const double ofBlocks =
        description_.weightLayout == taccWeightsBlocked ? cyclesOfBlock * taps() * s.inBlocks() : 0.0;
    const double delivered = std::max(cyclesOfSum * static_cast<double>(sumFloats() * pixelParts_), ofBlocks);
    // Strides leave out pixels that no tap reads.
    const double used = double(std::min(s.height, s.outHeight * s.kernelHeight)) *
                        double(std::min(s.width, s.outWidth * s.kernelWidth)) * blockLength;
    const double bytes = s.batch * (s.inBlocks() * used + static_cast<double>(s.outPlane())) * sizeof(float);
    const double summed = linePairs * columnPairs * tiles_.cyclesOfPixel * ofModel();
    return std::max(summed + beside + delivered, transferCycles(bytes, 12)) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const sums = static_cast<float*>(buffers.workspace);
    executor.forEach(pixelParts_ * tiles_.blockParts.size(), [&](std::size_t index, int) {
      const std::size_t part = index % pixelParts_;
      sumPart(buffers, tiles_.blockParts[index / pixelParts_], partOf(lines(), pixelParts_, part),
              sums + part * sumFloats());
    });
    for (std::size_t part = 1; part < pixelParts_; ++part) {
      for (std::size_t i = 0; i < sumFloats(); ++i) sums[i] += sums[part * sumFloats() + i];
    }
    deliver(sums, buffers.result);
  }

 private:
  /// What a pixel of all tiles takes of what the model says, where vectors are half a block: sums of one output, or of
  /// two by one block, wait for what they are made of, and those of four by one are as quick as can be.
  double ofModel() const {
    constexpr double ofFew = 1.5, ofFour = 0.92;
    if (!areNearHalves(kernels_.fmaLanes)) return 1;
    double model = 0, cycles = 0;
    for (const WeightTiles::Part& blocks : tiles_.blockParts) {
      for (const WeightTiles::Part& outputs : tiles_.lastRowParts) {
        const double ofTile = gradientCycles(kernels_, blocks.size(), outputs.size());
        const bool isOneBlock = blocks.size() == 1;
        const bool areFew = outputs.size() == 1 || (outputs.size() == 2 && isOneBlock);
        model += ofTile;
        cycles += ofTile * (areFew ? ofFew : outputs.size() == 4 && isOneBlock ? ofFour : 1);
      }
    }
    return cycles / model;
  }
  const Shape& shape() const { return description_.shape; }
  double pixels() const { return double(shape().batch) * shape().outHeight * shape().outWidth; }
  std::size_t lines() const {
    return static_cast<std::size_t>(shape().batch) * static_cast<std::size_t>(shape().outHeight);
  }
  /// Of an image, without a gap between them.
  bool areLinesOne() const { return shape().isProduct(); }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }
  /// Sums are [tap][output channel][input channel], of all blocks.
  std::ptrdiff_t sumRow() const { return std::ptrdiff_t{shape().inBlocks()} * blockLength; }
  std::ptrdiff_t sumsOfTap() const { return shape().outChannels * sumRow(); }
  std::size_t sumFloats() const { return static_cast<std::size_t>(taps() * sumsOfTap()); }

  /// Some lines of all images, for some blocks of input channels.
  void sumPart(const Buffers& buffers, WeightTiles::Part blocks, TaskPart lines, float* sums) const {
    const Shape& s = shape();
    for (std::ptrdiff_t row = 0; row < taps() * std::ptrdiff_t{s.outChannels}; ++row) {
      std::fill_n(sums + row * sumRow() + blocks.from * blockLength, blocks.size() * blockLength, 0.0F);
    }
    const auto height = static_cast<std::size_t>(s.outHeight);
    const auto most = static_cast<std::size_t>(linesAtOnce_);
    for (std::size_t line = lines.from; line < lines.to;) {
      const std::size_t y = line % height;
      const std::size_t whole = y == 0 ? std::min(most, lines.to - line) / height : 0;  // images
      const std::size_t count = whole > 0 ? height : std::min({most, height - y, lines.to - line});
      sumLines(buffers, blocks, static_cast<std::ptrdiff_t>(line / height), std::max(1, static_cast<int>(whole)),
               static_cast<int>(y), static_cast<int>(y + count), sums);
      line += std::max<std::size_t>(1, whole) * count;
    }
  }

  /// All taps of lines [fromLine, toLine) of some images.
  void sumLines(const Buffers& buffers, WeightTiles::Part blocks, std::ptrdiff_t image, int images, int fromLine,
                int toLine, float* sums) const {
    const Shape& s = shape();
    GradientCall call{};
    call.images = images;
    call.inputPixel = out_.pixel;
    call.inputLine = s.outWidth * out_.pixel;
    call.inputImage = out_.image;
    call.gradientPixel = s.strideWidth * in_.pixel;
    call.gradientLine = std::ptrdiff_t{s.strideHeight} * s.width * in_.pixel;
    call.gradientImage = in_.image;
    call.gradientBlock = in_.block;
    call.outputRow = sumRow();
    call.outputBlock = blockLength;
    call.accumulate = true;
    const float* const input = buffers.input + image * call.gradientImage + blocks.from * in_.block;
    const float* const gradient = buffers.outputGradient + image * call.inputImage;
    float* ofTap = sums + blocks.from * blockLength;
    for (int r = 0; r < s.kernelHeight; ++r) {
      const int dy = r * s.dilationHeight - s.padHeight;
      const int from = std::max(fromLine, firstInside(dy, s.strideHeight));
      const int to = std::min(toLine, endInside(dy, s.strideHeight, s.height));
      for (int t = 0; t < s.kernelWidth; ++t, ofTap += sumsOfTap()) {
        const int dx = t * s.dilationWidth - s.padWidth;
        const int left = firstInside(dx, s.strideWidth);
        const int right = std::min(s.outWidth, endInside(dx, s.strideWidth, s.width));
        if (from >= to || left >= right) continue;
        call.lines = areLinesOne() ? 1 : to - from;
        call.pixels = areLinesOne() ? (to - from) * s.outWidth : right - left;
        call.gradient =
            input + from * call.gradientLine + dy * s.width * in_.pixel + left * call.gradientPixel + dx * in_.pixel;
        const float* const pixel = gradient + from * call.inputLine + left * out_.pixel;
        const bool isInputNew = readsFromMemory_ && r < s.strideHeight && t < s.strideWidth;
        const bool isGradientNew = readsFromMemory_ && r + t == 0 && blocks.from == 0;
        for (const WeightTiles::Part& rows : tiles_.lastRowParts) {
          call.input = pixel + rows.from;
          call.output = ofTap + rows.from * sumRow();
          call.inputAhead = isGradientNew && rows.from == 0
                                ? fetchDistance(call, call.inputPixel, call.inputLine, call.inputImage)
                                : 0;
          call.gradientAhead = isInputNew && rows.from == 0
                                   ? fetchDistance(call, call.gradientPixel, call.gradientLine, call.gradientImage)
                                   : 0;
          kernels_.gradient[blocks.size()][rows.size()](call);
        }
      }
    }
  }

  void deliver(const float* sums, float* result) const {
    const Shape& s = shape();
    for (int block = 0; block < s.inBlocks(); ++block) {
      for (int tap = 0; tap < taps(); ++tap) {
        const WeightBlock place =
            weightBlock(s, description_.weightLayout, 0, 0, block, tap / s.kernelWidth, tap % s.kernelWidth);
        deliverBlock(place, sums + tap * sumsOfTap() + std::ptrdiff_t{block} * blockLength, sumRow(),
                     description_.accumulate, result);
      }
    }
  }

  Description description_;
  const KernelSet& kernels_;
  WeightTiles tiles_;  // blocks are of input channels, and rows output channels
  bool readsFromMemory_;
  BlockSteps in_, out_;
  int linesAtOnce_ = 1;
  std::size_t pixelParts_ = 1;
};

}  // namespace

bool servesFewOutputs(const Description& d) {
  return d.pass == taccConvBackwardWeights && hasWholeBlocks(d.inputLayout, d.shape.inChannels) &&
         hasBlockSteps(d.outputLayout) && d.shape.groups == 1 && d.shape.outChannels < blockLength;
}

std::unique_ptr<ConvPlan> makeFewOutputs(const Description& d, const KernelSet& kernels) {
  const double pixels = std::min(400.0, double(d.shape.batch) * d.shape.outHeight * d.shape.outWidth);
  return std::make_unique<FewOutputs>(d, kernels,
                                      chooseWeightTiles(kernels, d.shape.inBlocks(), d.shape.outChannels, pixels));
}

}  // namespace tacc::conv
