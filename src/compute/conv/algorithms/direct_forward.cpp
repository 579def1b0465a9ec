// The direct convolution, forward: the tile kernel over the image as it lies in memory. A 1x1 convolution is a product
// of matrices: its image is one long line.
#include <algorithm>
#include <cstring>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

class DirectForward final : public ConvPlan {
 public:
  DirectForward(const Description& description, const KernelSet& kernels, DirectDriver driver)
      : ConvPlan(std::string(kernels.vectors) + " " + driver.tileName() + pairsText(description.pairs)),
        description_(description),
        driver_(std::move(driver)),
        partition_(driver_, shape().lines(), shape().groups, shape().outHeight * shape().outWidth,
                   description.maxWorkers),
        fetchesInput_(comesFromMemory(driver_, shape())),
        isNonTemporal_(isNonTemporalProduct(description) && !description.pairs.areWritten) {
    if (partition_.areGroupsInTurn()) describe(groupsInTurn);
  }

  std::size_t workspaceBytes() const override { return biasWorkspaceBytes(description_); }
  std::size_t packedFloats() const override {
    return driver_.packedFloats() * static_cast<std::size_t>(shape().groups);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double ofImage = std::max(driver_.cycles(), driver_.storingCycles());
    const double products = ofImage * s.lines() * s.groups;
    const double cycles = products + cutGroupCycles(description_) + nearMemoryCycles(description_, products) -
                          nearSingleCycles(description_);
    // Some blocks of a pixel at a time, of NHWC, come to memory in less order; far caches have it in their own rate.
    const double bytesOfMemory = !hasFarCaches() && description_.outputLayout == taccLayoutNhwc ? 9 : 12;
    const double bytes = touchedBytes(description_), moved = transferCycles(bytes, bytesOfMemory);
    return (std::max(cycles, moved) + skippedCycles() + lateCycles(bytes)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (int group = 0; group < shape().groups; ++group) {
      driver_.pack(packed + driver_.packedFloats() * static_cast<std::size_t>(group),
                   [&](float* to, int outBlock, int inBlock, int tap, int value) {
                     const WeightBlock block = weightBlock(shape(), description_.weightLayout, group, outBlock, inBlock,
                                                           tap / shape().kernelWidth, tap % shape().kernelWidth);
                     packValue(to, value, block.ins, description_.pairs.areRead, [&](int in, int out) {
                       return out < block.outs ? weights[block.base + in * block.inStep + out * block.outStep] : 0.0F;
                     });
                   });
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    const Shape& s = shape();
    const BlockSteps inSteps =
        stepsOfPairs(blockSteps(description_.inputLayout, s.inChannels, s.height, s.width), description_.pairs.areRead);
    const BlockSteps outSteps = stepsOfPairs(
        blockSteps(description_.outputLayout, s.outChannels, s.outHeight, s.outWidth), description_.pairs.areWritten);
    const std::ptrdiff_t inGroup = groupStep(inSteps, description_.inputLayout, s.inPerGroup());
    const std::ptrdiff_t outGroup = groupStep(outSteps, description_.outputLayout, s.outPerGroup());
    const bool isNonTemporal = isNonTemporal_ && isAligned(buffers.result);
    executor.forEach(partition_.tasks(), [&](std::size_t index, int) {
      const TaskPartition::Task task = partition_.task(driver_, index);
      const auto group = static_cast<std::ptrdiff_t>(task.channelGroup);
      const auto image = static_cast<std::ptrdiff_t>(task.images.from);
      const std::ptrdiff_t in = image * inSteps.image + group * inGroup;
      const std::ptrdiff_t out = image * outSteps.image + group * outGroup;
      driver_.run({.input = buffers.input + in,
                   .packed = buffers.packedWeights + group * static_cast<std::ptrdiff_t>(driver_.packedFloats()),
                   .bias = bias != nullptr ? bias + group * shape().outPerGroup() : nullptr,
                   .addend = description_.residual ? buffers.residual + out : nullptr,
                   .output = buffers.result + out,
                   .images = static_cast<int>(task.images.to - task.images.from),
                   .inImage = inSteps.image,
                   .outImage = outSteps.image,
                   .firstTile = task.tiles.from,
                   .endTile = task.tiles.to,
                   .firstGroup = task.outputs.from,
                   .endGroup = task.outputs.to,
                   .activation = description_.activation,
                   .weightsEnd = weightsFromMemory(shape(), buffers.packedWeights, packedFloats()),
                   .fetchesInput = fetchesInput_,
                   .isNonTemporal = isNonTemporal,
                   .writesPairs = description_.pairs.areWritten});
    });
  }

 private:
  /// Of near caches, where strides leave pixels out between those that several lines of the kernel see: hardware does
  /// not look ahead over them, and they are fetched for the taps of a run alone.
  double lateCycles(double bytes) const {
    constexpr double bytesOfCycle = 4;
    const Shape& s = shape();
    const bool leavesOut = s.strideWidth > s.kernelWidth && s.kernelHeight * s.kernelWidth > 1;
    return leavesOut && !hasFarCaches() && bytes > coreModel().lastCacheBytes ? bytes / bytesOfCycle : 0;
  }
  /// Of far caches, for lines of the cache that wide strides leave others between, which products do not hide: where
  /// they come first, and again for other outputs.
  double skippedCycles() const {
    const double cyclesOfLine =
        cyclesOfSkippedLine + cyclesOfSkippedLineAgain * (static_cast<double>(driver_.groups().size()) - 1);
    const Shape& s = shape();
    if (s.strideWidth < leastSkippingStride) return 0;
    const double floats = double(s.lines()) * s.groups * s.inBlocks() * static_cast<double>(s.inPlane());
    return skippedLineCycles(depthwisePartRead(s) * floats, cyclesOfLine);
  }
  const Shape& shape() const { return description_.shape; }

  Description description_;
  DirectDriver driver_;
  TaskPartition partition_;
  bool fetchesInput_, isNonTemporal_;
};

}  // namespace

bool servesDirectForward(const Description& d) {
  return d.pass == taccConvForward && hasBlockSteps(d.inputLayout) &&
         writesInPlace(d.outputLayout, d.shape.outChannels, d.pairs) && findsGroups(d);
}

std::unique_ptr<ConvPlan> makeDirectForward(const Description& d, const KernelSet& kernels) {
  DirectShape shape = forwardShape(d.shape, d.inputLayout, d.outputLayout, d.pairs);
  shape.goesByLine = goesByLine(d);
  DirectDriver driver(shape, kernels);
  if (isNarrow(shape) && !d.pairs.areRead && !d.pairs.areWritten) {
    DirectDriver ofColumns(turned(std::move(shape)), kernels);
    if (ofColumns.cycles() < driver.cycles()) return std::make_unique<DirectForward>(d, kernels, std::move(ofColumns));
  }
  return std::make_unique<DirectForward>(d, kernels, std::move(driver));
}

std::size_t biasWorkspaceBytes(const Description& d) {
  // Of groups that cut blocks the last one may end a block behind the others.
  const int behind = groupsCutNhwc(d) ? 1 : 0;
  const bool isCopied = d.bias && (d.shape.outChannels % blockLength != 0 || behind != 0);
  return isCopied ? static_cast<std::size_t>(d.shape.outBlocks() + behind) * blockLength * sizeof(float) : 0;
}

const float* paddedBias(const Description& d, const Buffers& buffers) {
  if (!d.bias) return nullptr;
  if (biasWorkspaceBytes(d) == 0) return buffers.bias;
  auto* const padded = static_cast<float*>(buffers.workspace);
  const auto channels = static_cast<std::size_t>(d.shape.outChannels);
  std::memset(padded, 0, biasWorkspaceBytes(d));
  std::memcpy(padded, buffers.bias, channels * sizeof(float));
  return padded;
}

}  // namespace tacc::conv
