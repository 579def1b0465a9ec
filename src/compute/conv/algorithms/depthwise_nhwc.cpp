// Channel-wise convolutions of NHWC on both sides, with kernels, strides, dilations and channels of any number, in
// every pass. The channels of a pixel follow each other in memory, so they are what vectors hold, from the first to the
// last one. Along a line, pixels that see the same taps go together: forward those in the middle, and those at the ends
// by themselves; backward to the data with a stride every s-th pixel, as the others see other taps. So nothing is
// multiplied by zeros, and what no tap sees is written as it is without.
#include <algorithm>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/channel_direction.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

/// Sums of weights are made in parts of about so many pixels, and these added up: the same for any number of workers.
constexpr std::int64_t pixelsOfSums = 4096, mostSums = 32;

/// Of a kernel: results that share a tap's weights, at most.
constexpr int pixelsTogether = 8;

class DepthwiseNhwc final : public ConvPlan {
 public:
  DepthwiseNhwc(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        weights_(d),
        kernels_(depthwiseNhwcKernels(kernels)),
        lanes_(kernels.fmaLanes) {
    // Weights and their sums are as those of blocks.
    weights_.inputLayout = weights_.outputLayout = taccLayoutNchw16c;
    const Shape& s = d.shape;
    const bool spreads = d.pass == taccConvBackwardData;
    const ChannelDirection down{spreads ? s.height : s.outHeight,
                                spreads ? s.outHeight : s.height,
                                s.kernelHeight,
                                s.strideHeight,
                                s.dilationHeight,
                                s.padHeight,
                                spreads};
    along_ = {spreads ? s.width : s.outWidth,
              spreads ? s.outWidth : s.width,
              s.kernelWidth,
              s.strideWidth,
              s.dilationWidth,
              s.padWidth,
              spreads,
              readsTogether() && takesApart()};
    std::vector<ChannelDirection::Source> sources;
    for (int y = 0; y < down.results; ++y) {
      std::vector<ChannelTap>& line = lines_.emplace_back();
      down.findSources(y, sources);
      for (const ChannelDirection::Source& source : sources) {
        line.push_back({std::ptrdiff_t{source.source} * along_.sources * s.inChannels,
                        std::ptrdiff_t{source.tap} * s.kernelWidth * blockLength});
      }
    }
    runs_ = readsTogether() ? channelPhases(along_, s.inChannels) : channelRuns(along_, s.inChannels);
    channelsAtOnce_ = chooseChannelsAtOnce();
    if (channelsAtOnce_ < s.inChannels) describe("channels in turn");
    const std::int64_t pixels = std::int64_t{s.batch} * s.outHeight * s.outWidth;
    const std::int64_t lines = std::int64_t{s.batch} * s.outHeight;
    parts_ = static_cast<std::size_t>(std::clamp<std::int64_t>(pixels / pixelsOfSums, 1, std::min(mostSums, lines)));
    lineParts_ = balancedCut({static_cast<std::size_t>(s.batch), lines_.size()}, static_cast<std::size_t>(d.maxWorkers))
                     .rowParts;
  }

  std::size_t workspaceBytes() const override {
    if (isGradient()) return parts_ * weightFloats() * sizeof(float);
    return biasWorkspaceBytes(description_);
  }
  std::size_t packedFloats() const override {
    return isGradient() ? 0 : weightFloats() + (hasLastWeights() ? static_cast<std::size_t>(weightsBlock()) : 0);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const bool areShort = lanes_ < blockLength;
    const double cycles = isScaling() ? scalingCycles() : productCycles();
    // Backward to the data what strides leave out is written too; of long vectors that is hidden.
    const bool isData = description_.pass == taccConvBackwardData;
    const bool isShortData = isData && areShort && !hasFarCaches();
    const double part = isShortData ? 1 : depthwisePartRead(s);
    const double floats = part * double(s.height) * s.width + double(s.outHeight) * s.outWidth;
    // Where caches are near, pixels of no multiple of half a line of the cache come more slowly too.
    const bool isCut = !hasFarCaches() && s.inChannels % (blockLength / 2) != 0;
    const bool isParted = (isShortData || (isCut && areShort)) && s.strideWidth > 1;  // by strides as well
    const bool isSlow = isCut || (isData && s.strideWidth > 1);
    const double ofMemory = isParted ? 4 : isSlow ? 7 : 10;
    const double moved = transferCycles(floats * s.batch * s.inChannels * sizeof(float), ofMemory);
    return (overlappedCycles(s.batch * cycles, moved) + skippedCycles() + turnCycles()) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    if (isGradient()) return;
    packDepthwise(weights_, false, weights, packed);
    if (hasLastWeights()) packLast(packed);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    if (isGradient()) {
      sumWeights(buffers, executor);
      return;
    }
    const float* const bias = paddedBias(description_, buffers);
    const float* const addend =
        description_.residual ? buffers.residual : (description_.accumulate ? buffers.result : nullptr);
    // Short vectors would store lines of the cache in parts, with other pixels' between them.
    const bool isNonTemporal = isNonTemporalResult(description_) && addend == nullptr && lanes_ == blockLength &&
                               shape().inChannels % blockLength == 0 && isAligned(buffers.result);
    executor.forEach(static_cast<std::size_t>(shape().batch) * lineParts_, [&](std::size_t index, int) {
      const auto image = static_cast<std::ptrdiff_t>(index / lineParts_);
      const TaskPart lines = partOf(lines_.size(), lineParts_, index % lineParts_);
      const std::ptrdiff_t at = image * static_cast<std::ptrdiff_t>(lines_.size()) * lineFloats();
      const bool isForward = description_.pass == taccConvForward;
      DepthwiseNhwcCall call{};
      const float* const input =
          isForward ? buffers.input + image * inputFloats() : buffers.outputGradient + image * outputFloats();
      call.inputStep = std::ptrdiff_t{along_.sourceStep()} * shape().inChannels;
      call.weightsBlock = weightsBlock();
      call.outputStep = std::ptrdiff_t{along_.resultStep()} * shape().inChannels;
      call.activation = description_.activation;
      call.isNonTemporal = isNonTemporal;
      for (int channel = 0; channel < shape().inChannels; channel += channelsAtOnce_) {
        call.channels = std::min(channelsAtOnce_, shape().inChannels - channel);
        call.input = input + channel;
        call.weights = buffers.packedWeights + channel / blockLength * weightsBlock();
        call.bias = bias == nullptr ? nullptr : bias + channel;
        const bool hasLast = hasLastWeights() && addend != buffers.result;
        call.lastWeights = hasLast ? buffers.packedWeights + weightFloats() : nullptr;
        for (std::size_t y = lines.from; y < lines.to; ++y) {
          call.lines = lines_[y].data();
          call.lineCount = static_cast<int>(lines_[y].size());
          for (const ChannelRun& run : runs_) {
            const std::ptrdiff_t place = at + static_cast<std::ptrdiff_t>(y) * lineFloats() +
                                         std::ptrdiff_t{run.first} * shape().inChannels + channel;
            call.taps = run.taps.data();
            call.tapCount = static_cast<int>(run.taps.size());
            call.together = readsTogether() ? run.together.data() : nullptr;
            call.togetherCount = static_cast<int>(run.together.size());
            call.addend = addend == nullptr ? nullptr : addend + place;
            call.output = buffers.result + place;
            call.results = run.count;
            kernels_.sum(call);
          }
        }
      }
      if (isNonTemporal) endNonTemporal();
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  /// Whether a tap's weights stay in registers for all channels of a line of pixels: of short vectors, no more than 4.
  bool isScaling() const {
    const Shape& s = shape();
    const bool areHeld = lanes_ == blockLength / 2 && s.inChannels % lanes_ == 0 && s.inChannels <= 4 * lanes_;
    return areHeld && !isGradient() && s.kernelHeight * s.kernelWidth == 1 && s.inChannels > lanes_;
  }
  /// Of an image.
  double productCycles() const {
    const Shape& s = shape();
    // Of a vector: what is read and multiplied for a tap, what begins and ends with it, and weights that few pixels
    // share; of those that go together, and of a run.
    // Short vectors, all of them whole, are read by the multiply-adds, those of pixels that are one vector side by
    // side.
    const bool areShort = lanes_ < blockLength, arePart = s.inChannels % lanes_ != 0, isOne = s.inChannels == lanes_;
    const double ofShortTap = isOne ? 0.5 : arePart ? 1 : 0.9;
    const double ofTap = isGradient() ? 1.5
                         : areShort   ? ofShortTap
                                      : 1.2,
                 ofVector = isGradient() ? 2 : 2.5, ofWeights = isGradient() ? 3 : 0.5, ofFew = 20;
    constexpr double ofRun = 30;
    const double vectors = ceilDivide(s.inChannels, lanes_);
    double cycles = 0;
    if (readsTogether()) {
      // Of each line of the kernel: pixels and weights are read, or multiplied by two units; and what begins and ends
      // with some results. Lanes that are left out are more instructions.
      const double ofResults = 40, ofRow = 2, ofPart = s.inChannels < lanes_ ? 1.35 : 1;
      double seen = 0;
      for (const std::vector<ChannelTap>& line : lines_) seen += double(line.size());
      for (const ChannelRun& run : runs_) {
        for (int left = run.count; left > 0; left -= pixelsTogether) {
          const int together = std::min(left, pixelsTogether);
          double ofLine = 0;
          for (const ChannelTaps& taps : run.together) {
            ofLine += ofRow + std::max(2.0 * taps.count + together - 1, 0.5 * taps.count * together);
          }
          cycles += ofPart * vectors * (double(lines_.size()) * ofResults + seen * ofLine);
        }
      }
      return cycles;
    }
    for (const ChannelRun& run : runs_) {
      const double few = ceilDivide(run.count, pixelsTogether);
      const int together = std::min(run.count, pixelsTogether);
      for (const std::vector<ChannelTap>& line : lines_) {
        const double taps = double(line.size()) * double(run.taps.size());
        // Sums of a few results wait for each other's taps, where these are too many to begin with the next channels.
        constexpr double manyTaps = 24;
        const double latency = latencyCycles / together * std::min(1.0, taps / manyTaps);
        const double ofResult = isGradient() ? ofTap : std::max(ofTap, latency);
        // A result by itself begins its lines and taps for every vector.
        const double ofAlone = together == 1 && !isGradient() ? 8 : 0;
        const double beside = isGradient() ? 0 : cyclesOfSources(double(line.size()), double(run.taps.size()));
        cycles += ofRun + few * (ofFew + vectors * (taps * ofWeights + 3)) +
                  run.count * vectors * (ofVector + ofAlone + taps * ofResult + beside);
      }
    }
    return cycles;
  }
  double scalingCycles() const {
    constexpr double ofVector = 2.2, ofLine = 60;
    const double vectors = ceilDivide(shape().inChannels, lanes_);
    return static_cast<double>(lines_.size()) * (ofLine + ofVector * vectors * along_.results);
  }
  bool isGradient() const { return description_.pass == taccConvBackwardWeights; }
  std::ptrdiff_t lineFloats() const { return std::ptrdiff_t{along_.results} * shape().inChannels; }
  std::ptrdiff_t inputFloats() const { return std::ptrdiff_t{shape().height} * shape().width * shape().inChannels; }
  std::ptrdiff_t outputFloats() const {
    return std::ptrdiff_t{shape().outHeight} * shape().outWidth * shape().inChannels;
  }
  std::ptrdiff_t weightsBlock() const {
    return std::ptrdiff_t{shape().kernelHeight} * shape().kernelWidth * blockLength;
  }
  /// Whether taps of a line are multiplied together: what is read is what short vectors take. Strides, two taps and a
  /// single result share few of the pixels, and dilated taps none but those of results as far apart.
  bool readsTogether() const {
    constexpr int leastTaps = 3, leastResults = 2;
    const Shape& s = shape();
    const bool isDense = s.strideHeight == 1 && s.strideWidth == 1;
    const bool shares = s.kernelWidth >= leastTaps && resultsOfLine() >= leastResults;
    return !isGradient() && lanes_ < blockLength && isDense && shares && (s.dilationWidth == 1 || takesApart());
  }
  int resultsOfLine() const { return description_.pass == taccConvBackwardData ? shape().width : shape().outWidth; }
  /// Whether results as far apart as dilated taps go together, so that what one tap reads another one does too: of
  /// some taps, and of lines that have about as many such results as go together and of which the L1 cache holds a few,
  /// while others are read in the order of memory.
  bool takesApart() const {
    constexpr int leastResults = 7;
    const int leastTaps = description_.pass == taccConvForward ? 6 : 4;
    const Shape& s = shape();
    const std::ptrdiff_t bytes = std::ptrdiff_t{s.inChannels} * s.width * std::ptrdiff_t{sizeof(float)};
    return !isGradient() && lanes_ < blockLength && s.dilationWidth > 1 && s.kernelWidth >= leastTaps &&
           resultsOfLine() >= leastResults * s.dilationWidth && bytes <= bytesOfL1 / 8 * 3;
  }
  /// Whether the last vector of channels begins in the one before, so that it is a whole one: a part of a vector is
  /// more instructions, those of Zen 3 above all. What both have is computed twice, alike, but where something is added
  /// to what is there.
  bool hasLastWeights() const {
    const int channels = shape().inChannels;
    return !isGradient() && lanes_ < blockLength && channels > lanes_ && channels % lanes_ != 0;
  }
  /// Those of its channels behind all others.
  void packLast(float* packed) const {
    float* to = packed + weightFloats();
    for (std::ptrdiff_t at = 0; at < weightsBlock(); at += blockLength, to += blockLength) {
      for (int lane = 0; lane < lanes_; ++lane) {
        const int channel = shape().inChannels - lanes_ + lane;
        to[lane] = packed[channel / blockLength * weightsBlock() + at + channel % blockLength];
      }
    }
  }
  std::size_t weightFloats() const { return static_cast<std::size_t>(shape().inBlocks() * weightsBlock()); }

  /// What the lines that a line of results sees have of a channel, and how much the L1 cache holds beside weights.
  std::ptrdiff_t bytesOfChannel() const {
    const int sources = description_.pass == taccConvBackwardData ? shape().outWidth : shape().width;
    return std::ptrdiff_t{sources} * shape().kernelHeight * std::ptrdiff_t{sizeof(float)};
  }
  static constexpr std::ptrdiff_t bytesOfL1 = 32 * 1024;

  static constexpr int smallKernel = 16;
  bool isOfSmallKernel() const { return shape().kernelHeight * shape().kernelWidth < smallKernel; }

  /// What a vector of a pixel's channels costs beside products where it is not in the L1 cache, and where its page is
  /// not in the first table of pages: for each of some results that go together, of so many taps in lines and in each.
  double cyclesOfSources(double lines, double taps) const {
    constexpr double pageBytes = 4096, mostPages = 80, ofLine = 3.5, ofPage = 0.5;
    if (isOfSmallKernel()) return 0;
    const int apart = along_.spreads ? std::max(1, along_.dilation / along_.stride) : along_.dilation;
    const double pixels =
        std::min(taps * pixelsTogether, double(along_.sourceStep()) * (pixelsTogether - 1) + (taps - 1) * apart + 1);
    const double pages = lines * pixels * std::min(1.0, shape().inChannels * sizeof(float) / pageBytes);
    // Half a line of the cache at a time takes long enough for the next one to come.
    const bool isLate = lanes_ == blockLength && bytesOfChannel() * channelsAtOnce_ > bytesOfL1;
    const double fromL2 = isLate ? lines * pixels / pixelsTogether * ofLine : 0;
    return fromL2 + (pages > mostPages ? lines * taps * ofPage : 0);
  }

  /// Results side by side see mostly the same pixels, and so do those of the next line, in the L1 cache if there are
  /// few enough channels of them; a pair of lines of the cache of each pixel at least. Small kernels read pixels in the
  /// order of memory instead.
  int chooseChannelsAtOnce() const {
    constexpr int pairOfLines = 2 * blockLength;
    constexpr std::ptrdiff_t bytesThatPay = 96 * 1024;
    const Shape& s = shape();
    const std::ptrdiff_t bytes = bytesOfChannel();
    if (isGradient() || isOfSmallKernel() || bytes * s.inChannels <= bytesThatPay) return s.inChannels;
    const std::ptrdiff_t pairs = std::max<std::ptrdiff_t>(1, bytesOfL1 / bytes / pairOfLines);
    return static_cast<int>(std::min<std::ptrdiff_t>(s.inChannels, pairs * pairOfLines));
  }

  /// Channels in turn read, and write, a pair of lines of the cache of each pixel at a time, which nothing brings in
  /// time for short vectors. With strides, less was measured.
  double turnCycles() const {
    constexpr double ofNearCache = 15, ofLastCache = 45, ofMemory = 75, nearBytes = 2.0 * 1024 * 1024;
    const Shape& s = shape();
    if (channelsAtOnce_ == s.inChannels || !readsTogether() || hasFarCaches()) return 0;
    const double pixels = depthwisePartRead(s) * double(s.height) * s.width + double(s.outHeight) * s.outWidth;
    const double bytes = pixels * s.batch * s.inChannels * sizeof(float);
    const bool isFromMemory = bytes > 4 * coreModel().lastCacheBytes;
    const double ofLine = bytes <= nearBytes ? ofNearCache : (isFromMemory ? ofMemory : ofLastCache);
    return bytes / (blockLength * sizeof(float)) * ofLine;
  }

  /// Strides leave out whole pixels, all of whose channels follow each other.
  double skippedCycles() const {
    const Shape& s = shape();
    if (description_.pass != taccConvForward || s.strideWidth <= s.kernelWidth) return 0;
    return skippedLineCycles(depthwisePartRead(s) * double(s.batch) * s.height * s.width * s.inChannels,
                             cyclesOfSkippedPixelLine);
  }

  void sumWeights(const Buffers& buffers, const TaskExecutor& executor) const {
    const Shape& s = shape();
    auto* const sums = static_cast<float*>(buffers.workspace);
    const auto height = static_cast<std::size_t>(s.outHeight);
    executor.forEach(parts_, [&](std::size_t part, int) {
      DepthwiseNhwcGradientCall call{};
      call.sums = sums + part * weightFloats();
      call.sumsBlock = weightsBlock();
      std::fill_n(call.sums, weightFloats(), 0.0F);
      call.inputStep = std::ptrdiff_t{along_.sourceStep()} * s.inChannels;
      call.gradientStep = s.inChannels;
      call.channels = s.inChannels;
      const TaskPart lines = partOf(height * static_cast<std::size_t>(s.batch), parts_, part);
      for (std::size_t line = lines.from; line < lines.to; ++line) {
        const std::vector<ChannelTap>& ofKernel = lines_[line % height];
        call.lines = ofKernel.data();
        call.lineCount = static_cast<int>(ofKernel.size());
        call.input = buffers.input + static_cast<std::ptrdiff_t>(line / height) * inputFloats();
        for (const ChannelRun& run : runs_) {
          call.taps = run.taps.data();
          call.tapCount = static_cast<int>(run.taps.size());
          if (call.lineCount == 0 || call.tapCount == 0) continue;
          call.gradient = buffers.outputGradient + static_cast<std::ptrdiff_t>(line) * lineFloats() +
                          std::ptrdiff_t{run.first} * s.inChannels;
          call.pixels = run.count;
          kernels_.gradient(call);
        }
      }
    });
    executor.forEach(static_cast<std::size_t>(s.inBlocks()), [&](std::size_t block, int) {
      const std::ptrdiff_t floats = weightsBlock();
      float* const all = sums + static_cast<std::ptrdiff_t>(block) * floats;
      for (std::size_t part = 1; part < parts_; ++part) {
        const float* const from = all + part * weightFloats();
        for (std::ptrdiff_t i = 0; i < floats; ++i) all[i] += from[i];
      }
      deliverDepthwise(weights_, static_cast<int>(block), all, buffers.result);
    });
  }

  Description description_, weights_;  // as it is, and of the weights
  const DepthwiseNhwcKernels& kernels_;
  int lanes_;  // of a vector
  ChannelDirection along_{};
  std::vector<std::vector<ChannelTap>> lines_;  // of the kernel, that each line of results sees
  std::vector<ChannelRun> runs_;
  int channelsAtOnce_ = 0;     // in whole blocks, or all
  std::size_t parts_ = 1;      // of the pixels that weights are sums of
  std::size_t lineParts_ = 1;  // of the lines of an image
};

}  // namespace

bool servesDepthwiseNhwc(const Description& d) {
  return d.shape.isDepthwise() && d.inputLayout == taccLayoutNhwc && d.outputLayout == taccLayoutNhwc;
}

std::unique_ptr<ConvPlan> makeDepthwiseNhwc(const Description& d, const KernelSet& kernels) {
  return std::make_unique<DepthwiseNhwc>(d, kernels);
}

}  // namespace tacc::conv
