// Channel-wise convolutions in blocks, backward to the data with strides and kernels that have no kernel of their own,
// where a vector is half a block, and results see several taps of a line. Every s-th pixel of a line of the result sees
// the same taps, and these go together with their sums in registers: nothing that is stored is read again, as it is
// where products are added a tap at a time. To the kernels of depthwise_nhwc-inl.hpp a block of an image is a tensor of
// 16 channels.
#include <algorithm>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/channel_direction.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

class DepthwisePhases final : public ConvPlan {
 public:
  DepthwisePhases(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors) + " phases"),
        description_(d),
        kernels_(depthwiseNhwcKernels(kernels)),
        lanes_(kernels.fmaLanes) {
    const Shape& s = d.shape;
    const ChannelDirection down{s.height,    s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight,
                                s.padHeight, true};
    const ChannelDirection along{s.width, s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, true};
    std::vector<ChannelDirection::Source> sources;
    for (int y = 0; y < down.results; ++y) {
      std::vector<ChannelTap>& line = lines_.emplace_back();
      down.findSources(y, sources);
      for (const ChannelDirection::Source& source : sources) {
        line.push_back({std::ptrdiff_t{source.source} * s.outWidth * blockLength,
                        std::ptrdiff_t{source.tap} * s.kernelWidth * blockLength});
      }
    }
    runs_ = channelRuns(along, blockLength);
    lineParts_ = balancedCut({planes(), lines_.size()}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t packedFloats() const override { return static_cast<std::size_t>(shape().inBlocks() * weightsBlock()); }
  double predictedSeconds() const override {
    // Of a run, some results of it that go together, and of a vector of these: what begins and ends with it, and a tap.
    constexpr double ofRun = 26, ofFew = 17, ofVector = 2.2, ofTap = 0.8, ofWeights = 0.45;
    constexpr int pixelsTogether = 8;
    const Shape& s = shape();
    const double vectors = double(blockLength) / lanes_;
    double cycles = 0;
    for (const ChannelRun& run : runs_) {
      const double few = ceilDivide(run.count, pixelsTogether), together = std::min(run.count, pixelsTogether);
      // Sums of a few results wait for each other's taps.
      const double ofSum = std::max(ofTap, latencyCycles / (together * vectors));
      for (const std::vector<ChannelTap>& line : lines_) {
        const double taps = double(line.size()) * double(run.taps.size());
        cycles += ofRun + few * (ofFew + vectors * taps * ofWeights) + run.count * vectors * (ofVector + taps * ofSum);
      }
    }
    const double bytes = double(planes()) * double(s.inPlane() + s.outPlane()) * sizeof(float);
    return overlappedCycles(double(planes()) * cycles, halfLineCycles(bytes, bytesOfPhases())) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override { packDepthwise(description_, false, weights, packed); }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    executor.forEach(planes() * lineParts_, [&](std::size_t index, int) {
      const auto plane = static_cast<std::ptrdiff_t>(index / lineParts_);
      const TaskPart lines = partOf(lines_.size(), lineParts_, index % lineParts_);
      for (std::size_t y = lines.from; y < lines.to; ++y) makeLine(buffers, plane, y);
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::size_t planes() const {
    return static_cast<std::size_t>(shape().batch) * static_cast<std::size_t>(shape().inBlocks());
  }
  std::ptrdiff_t weightsBlock() const {
    return std::ptrdiff_t{shape().kernelHeight} * shape().kernelWidth * blockLength;
  }

  std::ptrdiff_t lineFloats() const { return std::ptrdiff_t{shape().width} * blockLength; }

  /// A line of the result, of a block of an image.
  void makeLine(const Buffers& buffers, std::ptrdiff_t plane, std::size_t y) const {
    const Shape& s = shape();
    const std::vector<ChannelTap>& lines = lines_[y];
    if (lines.empty() && description_.accumulate) return;
    float* const to = buffers.result + plane * s.inPlane() + static_cast<std::ptrdiff_t>(y) * lineFloats();
    DepthwiseNhwcCall call{};
    call.input = buffers.outputGradient + plane * s.outPlane();
    call.inputStep = blockLength;
    call.lines = lines.data();
    call.lineCount = static_cast<int>(lines.size());
    call.weights = buffers.packedWeights + plane % s.inBlocks() * weightsBlock();
    call.outputStep = std::ptrdiff_t{s.strideWidth} * blockLength;
    call.channels = blockLength;
    for (const ChannelRun& run : runs_) {
      if (run.taps.empty() && description_.accumulate) continue;
      call.taps = run.taps.data();
      call.tapCount = static_cast<int>(run.taps.size());
      call.output = to + std::ptrdiff_t{run.first} * blockLength;
      call.addend = description_.accumulate ? call.output : nullptr;
      call.results = run.count;
      kernels_.sum(call);
    }
  }

  Description description_;
  const DepthwiseNhwcKernels& kernels_;
  int lanes_;                                   // of a vector
  std::vector<std::vector<ChannelTap>> lines_;  // of the kernel, that each line of the result sees
  std::vector<ChannelRun> runs_;
  std::size_t lineParts_ = 1;  // of the lines of an image
};

}  // namespace

bool servesDepthwisePhases(const Description& d) {
  const Shape& s = d.shape;
  // Where a result sees a tap of a line at most, or lines are short, nothing is gained from sums in registers.
  const bool haveSeveralTaps = s.strideWidth == 1 || (s.kernelWidth > s.strideWidth && s.outWidth >= s.kernelWidth);
  return s.isDepthwise() && d.pass == taccConvBackwardData && haveSeveralTaps && hasBlockSteps(d.inputLayout) &&
         hasBlockSteps(d.outputLayout) && !usesKernelsApart(d) && !servesDepthwise(d) &&
         2 * d.vectorLanes == blockLength;
}

std::unique_ptr<ConvPlan> makeDepthwisePhases(const Description& d, const KernelSet& kernels) {
  return std::make_unique<DepthwisePhases>(d, kernels);
}

}  // namespace tacc::conv
