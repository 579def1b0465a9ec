// Channel-wise convolutions, forward and backward to the data, in lines (depthwise-inl.hpp). Backward with a stride of
// one along the lines is forward with the taps turned round; with one of two each pixel of the gradient spreads to
// every second one of a strip, so nothing is multiplied by zeros.
#include "compute/conv/algorithms/depthwise.hpp"

#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/depthwise_copy.hpp"
#include "compute/conv/algorithms/forward_shape.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

/// How far ahead planes are fetched that come from behind the caches.
constexpr std::ptrdiff_t floatsAhead = 2048;
/// Where pixels are apart, fetching costs more than it saves while a third cache may have what is read.
constexpr std::size_t bytesOfThirdCache = 24'000'000;
/// Input and output of planes whose lines are gone through in turn; from memory fewer, as hardware looks ahead in few
/// places at a time.
constexpr std::size_t bytesInTurn = 100'000, bytesInTurnFromMemory = 20'000;
/// Of lines that several parts of a kernel go through one after the other: the L1 cache has them still.
constexpr std::ptrdiff_t bytesOfLines = 16 * 1024;

/// Blocks of channels of pixels that are apart: that are gone through in turn at least, and that are copied together.
constexpr std::size_t leastBlocksOfApart = 8, blocksOfCopy = 8;
/// What is copied at once, of lines for as many lines of results at least.
constexpr std::size_t bytesOfCopy = 128 * 1024;
constexpr int leastLinesOfCopy = 4;
/// For a pixel of a block that is copied.
constexpr double cyclesOfCopy = 5;

class Depthwise final : public LinesPlan {
 public:
  Depthwise(const Description& d, const KernelSet& kernels)
      : LinesPlan(std::string(kernels.vectors) + (readsBfloat16(d) ? " bf16 in place" : "")),
        description_(d),
        kernels_(kernels),
        channelKernels_(depthwiseNhwcKernels(kernels)) {
    const Shape& s = shape();
    const bool isForward = d.pass == taccConvForward;
    flips_ = !isForward && s.strideWidth == 1;
    line_.kernelHeight = s.kernelHeight;
    line_.strideHeight = s.strideHeight;
    line_.dilationHeight = s.dilationHeight;
    line_.padHeight = s.padHeight;
    line_.kernelWidth = s.kernelWidth;
    line_.strideWidth = s.strideWidth;
    line_.dilationWidth = s.dilationWidth;
    line_.padWidth = flips_ ? s.dilationWidth * (s.kernelWidth - 1) - s.padWidth : s.padWidth;
    line_.spreadsLines = !isForward;
    line_.inputHeight = isForward ? s.height : s.outHeight;
    line_.inputWidth = isForward ? s.width : s.outWidth;
    line_.outputHeight = outputHeight_ = isForward ? s.outHeight : s.height;
    line_.outputWidth = isForward ? s.outWidth : s.width;
    const BlockSteps in = blockSteps(d.inputLayout, s.inChannels, s.height, s.width);
    const BlockSteps out = blockSteps(d.outputLayout, s.outChannels, s.outHeight, s.outWidth);
    read_ = isForward ? in : out;
    written_ = isForward ? out : in;
    line_.inputPixel = read_.pixel;
    line_.inputBlock = read_.block;
    line_.outputPixel = written_.pixel;
    line_.outputBlock = written_.block;
    line_.weightsLine = std::ptrdiff_t{s.kernelWidth} * blockLength;
    line_.weightsBlock = std::ptrdiff_t{taps()} * blockLength;
    chooseKernel();
    line_.goesByPairs = goesByPairs();
    line_.isNonTemporal = isPastCaches() && writesWholeLines() && !cutsBlock(d) && !(isApart(d) && readsBfloat16(d));
    scales_ = isScaling(d) && (kernels.fmaLanes == blockLength || !line_.isNonTemporal);
    if (isApart(d)) {
      chooseReadingOfApart();
    } else {
      chooseReading();
    }
    const std::size_t tasks = static_cast<std::size_t>(s.batch) * blockGroups();
    lineParts_ =
        balancedCut({tasks, static_cast<std::size_t>(outputHeight_)}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t workspaceBytes() const override {
    return biasWorkspaceBytes(description_) +
           static_cast<std::size_t>(description_.maxWorkers) * copyFloats_ * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return static_cast<std::size_t>(shape().inBlocks()) * static_cast<std::size_t>(taps()) * blockLength;
  }
  double predictedSeconds() const override {
    const bool isForward = description_.pass == taccConvForward;
    return seconds((isForward ? depthwisePartRead(shape()) : 1) * static_cast<double>(shape().inPlane()) +
                   static_cast<double>(shape().outPlane()));
  }
  double secondsOfLines() const override { return seconds(0); }
  std::size_t floatsOfCopy() const override { return copyFloats_; }

  void pack(const float* weights, float* packed) const override {
    packDepthwise(description_, flips_, weights, packed);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    const float* const addend =
        description_.residual ? buffers.residual : (description_.accumulate ? buffers.result : nullptr);
    float* const copies = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(description_) / sizeof(float);
    // Groups of blocks are of one image.
    const std::size_t groups = blockGroups();
    executor.forEach(static_cast<std::size_t>(shape().batch) * groups * lineParts_, [&](std::size_t index, int worker) {
      const TaskPart lines = partOf(static_cast<std::size_t>(outputHeight_), lineParts_, index % lineParts_);
      const std::size_t image = index / lineParts_ / groups;
      const std::size_t group = index / lineParts_ % groups;
      const auto runBlocks = [&](TaskPart some) {
        DepthwiseCall call = callOf(buffers, bias, image, some);
        const std::ptrdiff_t written = placeOf(written_, image, some);
        call.isNonTemporal = line_.isNonTemporal && isAligned(buffers.result);
        call.addend = addend == nullptr ? nullptr : numberAt(description_, addend, written);
        call.output = numberAt(description_, buffers.result, written);
        runInTurn(call, lines, copies + static_cast<std::size_t>(worker) * copyFloats_);
      };
      runBlocks(partOf(apartBlocks(), groups, group));
      // With the one that it overlaps: no two workers write the same place.
      if (apartBlocks() < blocks() && group + 1 == groups) runBlocks({apartBlocks(), blocks()});
    });
  }

  void runLines(const Buffers& buffers, const float* bias, std::size_t image, TaskPart lines, float* output,
                std::ptrdiff_t outputBlock, float* copy) const override {
    for (std::size_t group = 0; group < blockGroups(); ++group) {
      const TaskPart some = partOf(blocks(), blockGroups(), group);
      DepthwiseCall call = callOf(buffers, bias, image, some);
      call.isNonTemporal = false;
      // Lines of results count from the first one of these.
      call.padHeight -= static_cast<int>(lines.from) * call.strideHeight;
      call.outputHeight = static_cast<int>(lines.to - lines.from);
      call.outputBlock = outputBlock;
      call.output = output + static_cast<std::ptrdiff_t>(some.from) * outputBlock;
      runInTurn(call, {0, lines.to - lines.from}, copy);
    }
  }

 private:
  const Shape& shape() const { return description_.shape; }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }
  std::size_t blocks() const { return static_cast<std::size_t>(shape().inBlocks()); }
  /// But for one that overlaps another.
  std::size_t apartBlocks() const { return blocks() - (overlapsBlocks(description_) ? 1 : 0); }
  std::size_t blockGroups() const { return (apartBlocks() + blocksAtOnce_ - 1) / blocksAtOnce_; }

  /// On one worker, with `moved` floats of each plane between memory and the caches.
  double seconds(double moved) const {
    const double planes = double(shape().batch) * shape().inBlocks();
    const bool isAny = parts_.front().kernel == kernels_.depthwiseAny;
    const DepthwiseMethod method = isAny ? DepthwiseMethod::anyStrips : DepthwiseMethod::strips;
    const double copied = copyFloats_ == 0 ? 0 : cyclesOfCopy * line_.inputHeight * line_.inputWidth;
    // Results of the data's gradient may be far more than those of the forward pass.
    const bool isDense = shape().strideHeight == 1 && shape().strideWidth == 1;
    const Shape computed = isDense ? forwardShape(description_) : shape();
    const double cycles = scales_ ? scalingCycles()
                                  : depthwiseCycles(computed, kernels_, method, outputHeight_, parts_.size()) *
                                            (readsBfloat16(description_) ? cyclesOfBfloat16 : 1) +
                                        tallCycles() + (isAny ? 0 : shortVectorCycles(computed));
    const bool hasOneTap = shape().kernelHeight * shape().kernelWidth == 1;
    // Blocks of pixels that no multiple of a block is apart share lines of the cache, which memory is asked for again.
    const bool sharesLines = overlapsBlocks(description_) && tensorBytes() > bytesOfThirdCache;
    const double bytesOfMemory =
        (sharesLines ? 0.6 : 1) * std::min(isAny ? 11.0 : 12.0, hasOneTap ? coreModel().mostOfOneTap : 12.0);
    const double bytes = planes * moved * partOfTensor(description_) * static_cast<double>(bytesOfNumber(description_));
    return (overlappedCycles(
                planes * (std::max(cycles, scales_ ? 0 : missedCycles(isAny)) * partOfBlock(description_) + copied),
                transferCycles(bytes, bytesOfMemory)) +
            (moved > 0 ? skippedCycles() : 0)) /
           assumedHertz;
  }
  /// For lines of the cache between others that a stride leaves out, each of which is waited for: in blocks every pixel
  /// of 16 channels is one.
  double skippedCycles() const {
    const Shape& s = shape();
    const bool isForward = description_.pass == taccConvForward;
    if (!isForward || isApart(description_) || s.strideWidth <= s.kernelWidth) return 0;
    const double floats = depthwisePartRead(s) * double(s.batch) * s.inBlocks() * static_cast<double>(s.inPlane());
    // Near caches do not have them in time either, where they come in halves.
    constexpr double ofNearLine = 3;
    if (areNearHalves(kernels_.fmaLanes) && !staysInL2(static_cast<std::size_t>(bytesUsed())))
      return ofNearLine * floats / blockLength;
    return skippedLineCycles(floats);
  }
  double scalingCycles() const {
    constexpr double ofVector = 3, ofLine = 30;
    const double vectors = double(blockLength) / kernels_.fmaLanes;
    return ofVector * vectors * shape().outHeight * shape().outWidth +
           ofLine * (line_.strideHeight * line_.strideWidth == 1 ? 1 : outputHeight_);
  }
  /// What short vectors take beside that without strides: strips of other widths than 3, 5 and 7 without dilation, and
  /// few results of many taps, each of which waits for the one before it.
  double shortVectorCycles(const Shape& s) const {
    constexpr double ofStrip = 2;
    constexpr int fewResults = 4, manyTaps = 48, resultsOfStrip = 7;
    const bool isDense = s.strideHeight == 1 && s.strideWidth == 1;
    if (kernels_.fmaLanes == blockLength || isApart(description_) || !isDense) return 0;
    const double vectors = double(blockLength) / kernels_.fmaLanes;
    const double lines =
        insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
    const bool isUsual =
        s.dilationWidth == 1 && (s.kernelWidth == 3 || s.kernelWidth == 5 || s.kernelWidth == 7 || s.kernelWidth == 1);
    const double strips = isUsual ? 0
                                  : ofStrip * lines * ceilDivide(s.outWidth, resultsOfStrip) * vectors *
                                        static_cast<double>(parts_.size());
    const bool waits = s.outWidth <= fewResults && taps() > manyTaps;
    const double waiting = waits ? latencyCycles * lines * s.kernelWidth * (1 - s.outWidth / 8.0) : 0;
    return strips + waiting;
  }
  /// Of tall kernels whose lines of the image are more than the L1 cache holds: short vectors wait for each of them.
  double tallCycles() const {
    constexpr double ofPixelOfLine = 2, bytesOfL1 = 32 * 1024;
    constexpr int leastTall = 8;
    const Shape& s = shape();
    const double lines = std::min(s.kernelHeight, s.height);
    const bool isHeld = lines * line_.inputWidth * blockLength * sizeof(float) <= bytesOfL1;
    const bool isMeasured = kernels_.fmaLanes < blockLength && !isApart(description_) && s.strideWidth == 1;
    if (!isMeasured || s.kernelHeight < leastTall || isHeld) return 0;
    return ofPixelOfLine * lines * outputHeight_ * line_.outputWidth;
  }
  /// Of a plane that is not in the L1 cache: where a vector is a part of a block, a line of the cache is asked for, and
  /// written, in parts.
  double missedCycles(bool isAny) const {
    constexpr std::size_t bytesOfL1 = 32 * 1024;
    const double ofPixel = isAny ? 15 : 12;
    if (kernels_.fmaLanes == blockLength || bytesOfPlane() <= bytesOfL1) return 0;
    return ofPixel * static_cast<double>(std::min(shape().inPlane(), shape().outPlane())) / blockLength;
  }

  std::ptrdiff_t placeOf(const BlockSteps& steps, std::size_t image, TaskPart some) const {
    return channelPlace(steps, static_cast<std::ptrdiff_t>(image),
                        firstChannel(description_, static_cast<int>(some.from)));
  }
  /// Of one tap that every result finds, in blocks: nothing is shared between results.
  static bool isScaling(const Description& d) {
    const Shape& s = d.shape;
    const bool isOneTap = s.kernelHeight * s.kernelWidth == 1 && s.padHeight == 0 && s.padWidth == 0;
    const bool isForward = d.pass == taccConvForward || (s.strideHeight == 1 && s.strideWidth == 1);
    return isOneTap && isForward && !hasPlainLayout(d) && !readsBfloat16(d);
  }
  /// The lines of a call, of such a convolution: those that follow each other as one. `padHeight` is where runLines()
  /// begins.
  void scale(const DepthwiseCall& call) const {
    constexpr ChannelTap only{0, 0};
    const bool isOneLine = call.strideHeight == 1 && call.strideWidth == 1;
    const std::ptrdiff_t inLine = std::ptrdiff_t{call.inputWidth} * blockLength,
                         outLine = std::ptrdiff_t{call.outputWidth} * blockLength;
    DepthwiseNhwcCall some{};
    some.lines = some.taps = &only;
    some.lineCount = some.tapCount = 1;
    some.inputStep = std::ptrdiff_t{call.strideWidth} * blockLength;
    some.outputStep = some.channels = blockLength;
    some.results = call.outputWidth * (isOneLine ? call.to - call.from : 1);
    some.activation = description_.activation;
    some.isNonTemporal = call.isNonTemporal;
    some.ahead = call.ahead;
    int blocks = call.blocks;
    if (call.inputBlock == blockLength && call.outputBlock == blockLength) {  // images of one pixel: all its channels
      some.channels = blocks * blockLength;
      some.weightsBlock = call.weightsBlock;
      blocks = 1;
    }
    for (int block = 0; block < blocks; ++block) {
      some.weights = call.weights + block * call.weightsBlock;
      some.bias = call.bias == nullptr ? nullptr : call.bias + std::ptrdiff_t{block} * blockLength;
      for (int y = call.from; y < (isOneLine ? call.from + 1 : call.to); ++y) {
        const std::ptrdiff_t at = block * call.outputBlock + y * outLine;
        some.input = call.input + block * call.inputBlock + (y * call.strideHeight - call.padHeight) * inLine;
        some.output = call.output + at;
        some.addend = call.addend == nullptr ? nullptr : call.addend + at;
        channelKernels_.sum(some);
      }
    }
    if (call.isNonTemporal) endNonTemporal();
  }
  /// For some blocks of an image; the caller says where results go.
  DepthwiseCall callOf(const Buffers& buffers, const float* bias, std::size_t image, TaskPart some) const {
    DepthwiseCall call = line_;
    const bool isForward = description_.pass == taccConvForward;
    call.blocks = static_cast<int>(some.to - some.from);
    call.input =
        numberAt(description_, isForward ? buffers.input : buffers.outputGradient, placeOf(read_, image, some));
    call.weights = buffers.packedWeights + static_cast<std::ptrdiff_t>(some.from) * taps() * blockLength;
    call.bias = bias == nullptr ? nullptr : bias + firstChannel(description_, static_cast<int>(some.from));
    return call;
  }
  /// `copy`: of the worker.
  void runInTurn(DepthwiseCall& call, TaskPart lines, float* copy) const {
    const auto end = static_cast<int>(lines.to);
    for (call.from = static_cast<int>(lines.from); call.from < end; call.from = call.to) {
      call.to = std::min(end, call.from + linesInTurn_);
      DepthwiseCall ofLines = copyFloats_ == 0 ? call : withCopy(call, copy, bytesOfNumber(description_));
      if (scales_) {
        scale(ofLines);
      } else {
        runParts(ofLines);
      }
    }
  }

  /// Of input and output, of 16 channels of an image.
  std::size_t bytesOfPlane() const {
    return static_cast<std::size_t>(shape().inPlane() + shape().outPlane()) * bytesOfNumber(description_);
  }
  std::size_t tensorBytes() const {
    return static_cast<std::size_t>(shape().batch) * static_cast<std::size_t>(shape().inBlocks()) * bytesOfPlane();
  }
  /// Without the input that no tap reads.
  double bytesUsed() const {
    return double(shape().batch) * shape().inBlocks() * static_cast<double>(bytesOfNumber(description_)) *
           (depthwisePartRead(shape()) * static_cast<double>(shape().inPlane()) +
            static_cast<double>(shape().outPlane()));
  }
  bool comesFromMemory() const { return layers::isTooLargeForCaches(tensorBytes()); }

  /// Where a block is two vectors: whether it is gone through in strips of both of them, as results are to be that are
  /// stored past the caches, and with a stride of 2 what comes from the third cache.
  bool goesByPairs() const {
    constexpr int leastWidth = 28, pixels = 4;
    if (!hasPairStrips(blockLength / kernels_.fmaLanes, line_.kernelWidth, line_.strideWidth)) return false;
    // In NHWC, where the blocks of a pixel follow each other, of any width.
    if (isApart(description_) && parts_.front().kernel == kernels_.depthwiseApart[line_.kernelWidth][2])
      return shape().inChannels % blockLength == 0;
    if (parts_.front().kernel != kernels_.depthwise[line_.kernelWidth][line_.strideWidth]) return false;
    return line_.strideWidth == 2 ? line_.outputWidth >= leastWidth && line_.outputWidth % pixels == 0 : isPastCaches();
  }
  /// Whether results are so large that they are stored past the caches, where nothing is read before they are written.
  bool isPastCaches() const {
    return isNonTemporalResult(description_) && !description_.residual && !description_.accumulate &&
           parts_.size() == 1;
  }
  /// Narrower vectors would write a line of the cache in parts, some pixels later.
  bool writesWholeLines() const {
    const bool isAny = parts_.front().kernel == kernels_.depthwiseAny;
    return kernels_.fmaLanes == blockLength || (2 * kernels_.fmaLanes == blockLength && (isAny || line_.goesByPairs));
  }

  /// How many planes are gone through in turn, and what is fetched meanwhile.
  void chooseReading() {
    const auto planes = static_cast<std::size_t>(shape().batch) * static_cast<std::size_t>(shape().inBlocks());
    const std::size_t planeBytes = bytesOfPlane();
    const bool isAny = parts_.front().kernel == kernels_.depthwiseAny;
    // What is read from behind the caches is fetched; with a stride what the lines leave no time for is not, which
    // with two wide units is so of any kernel too.
    if (shape().kernelHeight < shape().strideHeight && !line_.spreadsLines) {
      if (bytesUsed() > (hasFarCaches() ? 0.5 : 2) * double(l2CacheBytes())) {
        line_.ahead = floatsOfLinesAhead(line_.strideHeight, line_.inputWidth, floatsAhead);
      }
    } else if (comesFromMemory() && (shape().strideHeight == 1 || (isAny && !hasTwoWideUnits(kernels_)))) {
      line_.ahead = floatsAhead;
    }
    // Small planes share what every line begins with, while there are tasks enough.
    const auto workers = static_cast<std::size_t>(description_.maxWorkers);
    const std::size_t most = workers > 1 ? planes / (4 * workers) : planes;
    const std::size_t bytes = comesFromMemory() ? bytesInTurnFromMemory : bytesInTurn;
    blocksAtOnce_ = std::max<std::size_t>(1, std::min(bytes / planeBytes, most));
  }

  /// The same where pixels are apart: the blocks of a pixel follow each other in memory, so a strip of many of them is
  /// gone through in turn, while the L2 cache keeps the lines for the results below.
  void chooseReadingOfApart() {
    const std::size_t lineBytes =
        static_cast<std::size_t>(line_.inputWidth) * blockLength * bytesOfNumber(description_);
    if (isCopied()) {
      blocksAtOnce_ = blocksOfCopy;
      const auto lines = static_cast<int>(bytesOfCopy / (blocksOfCopy * lineBytes));
      const int reach = line_.dilationHeight * (line_.kernelHeight - 1);
      linesInTurn_ = std::min(outputHeight_, std::max(leastLinesOfCopy, lines - reach));
      copyFloats_ = static_cast<std::size_t>(pixelOfCopy(blocksOfCopy)) *
                    static_cast<std::size_t>(mostLinesRead(line_, linesInTurn_) * line_.inputWidth);
      return;
    }
    if (!line_.spreadsLines && line_.strideHeight == 1 && tensorBytes() > bytesOfThirdCache) line_.ahead = floatsAhead;
    const std::size_t bytes = static_cast<std::size_t>(line_.kernelHeight) * lineBytes +
                              static_cast<std::size_t>(line_.outputWidth) * blockLength * bytesOfNumber(description_);
    // Where all is in the L2 cache, fewer blocks mean fewer pages for a strip; else what is in order comes sooner.
    const bool areFew = hasFarCaches() && tensorBytes() <= l2CacheBytes();
    const std::size_t most = areFew ? leastBlocksOfApart : l2CacheBytes() / 4 / bytes;
    blocksAtOnce_ = std::clamp(most, std::min(blocks(), leastBlocksOfApart), blocks());
  }

  /// From memory, what is written to a copy costs more than reading lines several times from the L2 cache. So it does
  /// on servers of Intel, whose L1 cache has 12 lines in a set, but for wide kernels that read a line in two parts.
  bool isCopied() const {
    const bool readsParts = kernels_.fmaLanes < blockLength && line_.kernelWidth >= 5;
    if (hasFarCaches() && !readsParts) return false;
    constexpr std::ptrdiff_t bytes = 2048;  // between pixels that use two sets of an L1 cache of 64
    const auto pixelBytes = read_.pixel * static_cast<std::ptrdiff_t>(bytesOfNumber(description_));
    return read_.pixel != blockLength && pixelBytes % bytes == 0 && !comesFromMemory();
  }

  /// A kernel, or several for parts of the kernel's lines, of which each but the first adds to what is there.
  void chooseKernel() {
    const int width = line_.kernelWidth;
    if (description_.pass == taccConvBackwardData && line_.strideWidth == 2) {
      const auto& spread = usesKernelsApart(description_) ? kernels_.depthwiseSpreadApart : kernels_.depthwiseSpread;
      parts_ = {{spread[width][shape().padWidth % 2], {0, width}}};
      return;
    }
    if (usesKernelsApart(description_)) {
      parts_ = {{kernels_.depthwiseApart[width][line_.strideWidth], {0, width}}};
      return;
    }
    // From memory, strides wider than the kernel go a tap at a time: what all pixels of a strip read is asked for at
    // once.
    const bool skipsColumns = width < line_.strideWidth;
    if (line_.strideWidth <= (comesFromMemory() && skipsColumns ? 2 : 4)) {
      for (const DepthwiseTaps& taps : depthwiseTaps(width, line_.dilationWidth, line_.padWidth)) {
        parts_.push_back({kernels_.depthwise[taps.width][line_.strideWidth], taps});
      }
    }
    // From memory whole blocks are better, which the kernel for any width reads where a block is two vectors.
    const bool readsPairs =
        hasPairStrips(blockLength / kernels_.fmaLanes, width, line_.strideWidth) && comesFromMemory();
    if (hasDilatedKernel(width, line_.strideWidth, line_.dilationWidth, line_.padWidth) && !readsPairs) {
      parts_ = {{kernels_.depthwiseDilated[width][line_.dilationWidth], {0, width}}};
    }
    if (parts_.empty()) parts_ = {{kernels_.depthwiseAny, {0, width}}};
    if (parts_.size() > 1) {
      const std::ptrdiff_t lineBytes = (std::ptrdiff_t{line_.strideHeight} * line_.inputWidth + line_.outputWidth) *
                                       blockLength * static_cast<std::ptrdiff_t>(sizeof(float));
      linesInTurn_ = static_cast<int>(std::clamp<std::ptrdiff_t>(bytesOfLines / lineBytes, 1, outputHeight_));
    }
  }

  void runParts(DepthwiseCall& call) const {
    const float* const bias = call.bias;
    const float* const addend = call.addend;
    const float* const weights = call.weights;
    for (const Part& part : parts_) {
      const bool isFirst = &part == &parts_.front();
      call.bias = isFirst ? bias : nullptr;
      call.addend = isFirst ? addend : call.output;
      call.weights = weights + std::ptrdiff_t{part.taps.first} * blockLength;
      call.kernelWidth = part.taps.width;
      call.padWidth = line_.padWidth - part.taps.first;
      call.activation = &part == &parts_.back() ? description_.activation : taccActivationNone;
      part.kernel(call);
    }
    call.bias = bias;
    call.addend = addend;
    call.weights = weights;
  }

  Description description_;
  const KernelSet& kernels_;
  const DepthwiseNhwcKernels& channelKernels_;
  bool scales_ = false;
  DepthwiseCall line_{};  // but for its pointers and lines
  BlockSteps read_{}, written_{};
  int outputHeight_ = 0;
  bool flips_ = false;
  struct Part {
    DepthwiseKernel kernel;
    DepthwiseTaps taps;
  };
  std::vector<Part> parts_;
  int linesInTurn_ = 1 << 30;
  std::size_t copyFloats_ = 0;  // for a worker; 0: what is read is not copied
  std::size_t lineParts_ = 1, blocksAtOnce_ = 1;
};

}  // namespace

bool servesDepthwise(const Description& d) {
  const Shape& s = d.shape;
  const bool isServed = d.pass == taccConvForward ||
                        (d.pass == taccConvBackwardData &&
                         (s.strideWidth == 1 || hasSpreadKernel(s.kernelWidth, s.strideWidth, s.dilationWidth)));
  return s.isDepthwise() && hasBlockSteps(d.inputLayout) && hasBlockSteps(d.outputLayout) && isServed &&
         s.kernelHeight <= maxDepthwiseLines && (!usesKernelsApart(d) || hasKernelsApart(d));
}

std::unique_ptr<ConvPlan> makeDepthwise(const Description& d, const KernelSet& kernels) {
  return std::make_unique<Depthwise>(d, kernels);
}

std::unique_ptr<LinesPlan> makeDepthwiseLines(const Description& d, const KernelSet& kernels) {
  return std::make_unique<Depthwise>(d, kernels);
}

}  // namespace tacc::conv
