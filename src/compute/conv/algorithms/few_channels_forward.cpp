// Forward convolution of an image with few channels.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/few_channels.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

BlockSteps outSteps(const Description& d) {
  return blockSteps(d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth);
}

DirectShape shapeOf(const Description& d, const FewChannelsImage& image) {
  const Shape& s = d.shape;
  const BlockSteps out = outSteps(d);
  DirectShape c{};
  c.inCounts.assign(static_cast<std::size_t>(image.blocks()), image.values());
  c.inHeight = (s.outHeight - 1) * s.strideHeight + (s.kernelHeight - 1) * s.dilationHeight + 1;
  c.inWidth = s.width + 2 * s.padWidth;
  c.inPixel = image.pixel();
  c.inLine = image.line();
  c.inPlane = image.plane();
  c.outBlocks = s.outBlocks();
  c.outHeight = image.linesAtOnce();
  c.outWidth = s.outWidth;
  c.outPixel = out.pixel;
  c.outLine = s.outWidth * out.pixel;
  c.outPlane = out.block;
  c.strideHeight = s.strideHeight;
  c.strideWidth = s.strideWidth;
  c.isScattered = true;
  for (int r = 0; r < s.kernelHeight; ++r) c.taps.push_back({r * s.dilationHeight, 0});
  if (s.isProduct()) {  // one long line
    c.inWidth *= c.inHeight;
    c.outWidth *= c.outHeight;
    c.outLine *= c.outHeight;
    c.inHeight = c.outHeight = 1;
  }
  return c;
}

class FewChannelsForward final : public ConvPlan {
 public:
  FewChannelsForward(const Description& d, const KernelSet& kernels, const FewChannelsImage& image, DirectDriver driver)
      : ConvPlan(std::string(kernels.vectors) + " " + driver.tileName()),
        description_(d),
        image_(image),
        driver_(std::move(driver)),
        isNonTemporal_(isNonTemporalResult(d)) {}

  std::size_t workspaceBytes() const override {
    const std::size_t scratch =
        image_.scratchFloats() * sizeof(float) * static_cast<std::size_t>(description_.maxWorkers);
    return biasWorkspaceBytes(description_) + scratch;
  }
  std::size_t packedFloats() const override { return driver_.packedFloats(); }
  double predictedSeconds() const override {
    const double parts = shape().isProduct() ? 1 : double(shape().outHeight) / image_.linesAtOnce();
    const double cycles = (driver_.cycles() * parts * image_.insidePart() + image_.copyCycles()) * shape().batch;
    const double bytes = double(shape().batch) * double(shape().outBlocks() * shape().outPlane()) * sizeof(float);
    return std::max(cycles, farTransferCycles(bytes, 12)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    driver_.pack(packed, [&](float* to, int outBlock, int inBlock, int r, int value) {
      const bool isNhwc = description_.inputLayout == taccLayoutNhwc;
      const int channel = isNhwc ? value % shape().inChannels : inBlock;
      const int column = isNhwc ? value / shape().inChannels : value;
      const WeightBlock block = weightBlock(shape(), description_.weightLayout, 0, outBlock, 0, r, column);
      const float* const from = weights + block.base + channel * block.inStep;
      for (int k = 0; k < blockLength; ++k) to[k] = k < block.outs ? from[k * block.outStep] : 0.0F;
    });
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    float* const scratch = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(description_) / sizeof(float);
    const std::ptrdiff_t inImage = std::ptrdiff_t{shape().inChannels} * shape().height * shape().width;
    const BlockSteps out = outSteps(description_);
    const auto parts = static_cast<std::size_t>(lineParts());
    executor.forEach(parts * static_cast<std::size_t>(shape().batch), [&](std::size_t index, int worker) {
      const auto image = static_cast<std::ptrdiff_t>(index / parts);
      const int from = static_cast<int>(index % parts) * image_.linesAtOnce();
      const int to = std::min(shape().outHeight, from + image_.linesAtOnce());
      const float* const input = image_.lines(buffers.input + image * inImage, from, to,
                                              scratch + static_cast<std::size_t>(worker) * image_.scratchFloats());
      const std::ptrdiff_t outLine = shape().outWidth * out.pixel;
      if (shape().isProduct()) {
        runLines(buffers, bias, input, image * out.image, {0, driver_.tiles()}, {0, 0, 0});
        return;
      }
      for (int line = from; line < to;) {
        const FewChannelsImage::Inside inside = image_.insideFrom(line, to);
        runLines(buffers, bias, input, image * out.image + from * outLine,
                 {driver_.tilesOfLine() * static_cast<std::size_t>(line - from),
                  driver_.tilesOfLine() * static_cast<std::size_t>(line - from + inside.lines)},
                 inside);
        line += inside.lines;
      }
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  int lineParts() const { return ceilDivide(shape().outHeight, image_.linesAtOnce()); }

  /// Tiles of the lines that `input` and `out`, where the output begins, are for.
  void runLines(const Buffers& buffers, const float* bias, const float* input, std::ptrdiff_t out, TaskPart tiles,
                FewChannelsImage::Inside inside) const {
    driver_.run({.input = input,
                 .packed = buffers.packedWeights,
                 .bias = bias,
                 .addend = description_.residual ? buffers.residual + out : nullptr,
                 .output = buffers.result + out,
                 .images = 1,
                 .inImage = 0,
                 .outImage = 0,
                 .firstTile = tiles.from,
                 .endTile = tiles.to,
                 .firstGroup = 0,
                 .endGroup = driver_.groups().size(),
                 .activation = description_.activation,
                 .isNonTemporal = isNonTemporal_ && isAligned(buffers.result),
                 .firstTap = static_cast<std::size_t>(inside.first),
                 .endTap = static_cast<std::size_t>(inside.end)});
  }

  Description description_;
  FewChannelsImage image_;
  DirectDriver driver_;
  bool isNonTemporal_;
};

}  // namespace

bool servesFewChannelsForward(const Description& d) {
  return d.pass == taccConvForward && isFewChannels(d) && hasWholeBlocks(d.outputLayout, d.shape.outChannels);
}

std::unique_ptr<ConvPlan> makeFewChannelsForward(const Description& d, const KernelSet& kernels) {
  const FewChannelsImage image(d);
  return std::make_unique<FewChannelsForward>(d, kernels, image, DirectDriver(shapeOf(d, image), kernels));
}

}  // namespace tacc::conv
