// The gradients of channel-wise convolutions that are no convolutions themselves: of the weights, with the sums of all
// taps of some lines of the kernel in registers (depthwise_gradient-inl.hpp), and what is left: of the weights of other
// kernels, and of the input with other strides or of tall kernels that have no phases (depthwise_phases.cpp), a tap at
// a time along the lines.
#include <algorithm>
#include <numeric>
#include <optional>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/algorithms/depthwise_three.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

/// Sums of a block of channels are made in parts of about this number of pixels, and these added up: the same parts for
/// any number of workers.
constexpr std::int64_t pixelsOfPart = 1568;
/// Of the parts of all blocks: what they write stays small, and there are enough for many workers.
constexpr std::int64_t mostParts = 128;

/// Of both tensors, while the next ones are on their way from memory; and how far ahead kernels fetch them that do so
/// strip by strip.
constexpr std::ptrdiff_t floatsInTurn = 2048, floatsOfStripsAhead = 2048;

/// Of both tensors, of all channels, where pixels are apart: what one block of channels brings into the L2 cache beside
/// what it reads is there for the others.
constexpr std::ptrdiff_t floatsOfApart = 128 * 1024;

/// Of blocks that a strip of pixels goes through together, while they stay in the L1 cache: 8 of a kernel of 3 x 3, and
/// as many as may be of what comes from behind the L2 cache, of which whole pixels are read in the order of memory.
constexpr std::size_t floatsOfSums = 1152, floatsOfSumsFromFar = 2304;

class DepthwiseGradients final : public ConvPlan {
 public:
  DepthwiseGradients(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors) + (readsBfloat16(d) ? " bf16 in place" : "")),
        description_(d),
        kernels_(kernels),
        tapKernels_(layers::kernelTable(kernels.vectors)),
        in_(blockSteps(d.inputLayout, d.shape.inChannels, d.shape.height, d.shape.width)),
        out_(blockSteps(d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth)) {
    const Shape& s = shape();
    if (s.strideWidth <= 4) taps_ = depthwiseTaps(s.kernelWidth, s.dilationWidth, s.padWidth);
    const std::int64_t pixels = std::int64_t{s.batch} * s.outHeight * s.outWidth;
    const std::int64_t lines = std::int64_t{s.batch} * s.outHeight;
    const std::int64_t ofBlock = std::max<std::int64_t>(1, mostParts / s.inBlocks());
    parts_ = static_cast<std::size_t>(std::clamp<std::int64_t>(pixels / pixelsOfPart, 1, std::min(ofBlock, lines)));
    const std::ptrdiff_t floats = s.batch * s.inBlocks() * (s.inPlane() + s.outPlane());
    const std::size_t bytes = static_cast<std::size_t>(floats) * bytesOfNumber(d);
    const double bytesRead = static_cast<double>(bytesOfNumber(d)) * double(s.batch) * s.inBlocks() *
                             (depthwisePartRead(s) * double(s.inPlane()) + double(s.outPlane()));
    const bool isWaitedFor =
        hasFarCaches() && s.kernelHeight < s.strideHeight && bytesRead > 2 * double(l2CacheBytes());
    // On a core of short vectors (Zen 3) hardware looks ahead far enough: with more that is fetched by software,
    // gradients from memory take up to twice as long.
    isFetched_ = kernels.fmaLanes == blockLength && !usesKernelsApart(d) &&
                 (isWaitedFor || static_cast<double>(bytes) > leastFetchedBytes(s));
    if (isFetched_ && fetchesStrips()) {
      ahead_ = s.kernelHeight < s.strideHeight ? floatsOfLinesAhead(s.strideHeight, s.width, floatsOfStripsAhead)
                                               : floatsOfStripsAhead;
      isFetched_ = false;
    }
    if (isFetched_) {
      const std::ptrdiff_t lineFloats = (std::ptrdiff_t{s.strideHeight} * s.width + s.outWidth) * blockLength;
      linesInTurn_ = static_cast<int>(std::clamp<std::ptrdiff_t>(floatsInTurn / lineFloats, 1, s.outHeight));
    }
    if (isApart(d)) {
      const std::ptrdiff_t lineFloats =
          (std::ptrdiff_t{s.strideHeight} * s.width + s.outWidth) * std::ptrdiff_t{s.inChannels};
      linesInTurn_ = static_cast<int>(std::clamp<std::ptrdiff_t>(floatsOfApart / lineFloats, 4, s.outHeight + 4));
      // Strips of all blocks read whole pixels, and need no turns. Kernels of more taps have more sums of a block than
      // a strip is worth.
      constexpr int mostTaps = 9;
      if (kernels.fmaLanes == blockLength && s.kernelHeight * s.kernelWidth <= mostTaps) {
        linesInTurn_ = s.outHeight;
        const std::size_t most = (staysInL2(bytes) ? floatsOfSums : floatsOfSumsFromFar) / sumFloats();
        blocksOfTurn_ = std::max<std::size_t>(1, most);
      }
    }
    if (d.pass == taccConvBackwardWeights && !isFetched_ && ahead_ == 0) three_ = DepthwiseThree::find(d, kernels);
    // As few groups of blocks as leave every worker something: those of an image follow each other in memory.
    const auto blocks = static_cast<std::size_t>(s.inBlocks());
    blockGroups_ = balancedCut({parts_, blocks}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t workspaceBytes() const override {
    if (description_.pass != taccConvBackwardWeights) return 0;
    return static_cast<std::size_t>(shape().inBlocks()) * parts_ * sumFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override {
    if (description_.pass == taccConvBackwardWeights) return 0;
    return static_cast<std::size_t>(shape().inBlocks()) * sumFloats();
  }
  double predictedSeconds() const override {
    const double planes = double(shape().batch) * shape().inBlocks();
    const bool isData = description_.pass == taccConvBackwardData;
    const double part = isData ? 1 : depthwisePartRead(shape());
    const double floats = planes * partOfTensor(description_) *
                          (part * static_cast<double>(shape().inPlane()) + static_cast<double>(shape().outPlane()));
    const DepthwiseMethod method = isData           ? DepthwiseMethod::tapAdditions
                                   : !taps_.empty() ? DepthwiseMethod::strips
                                                    : DepthwiseMethod::tapSums;
    // A tap at a time the result goes through the caches for every line of the kernel.
    const double computed = method == DepthwiseMethod::strips ? depthwiseBlocks(shape(), kernels_) : planes;
    const int lines = isData ? shape().height : shape().outHeight;
    if (isData && hasFarCaches()) return dataSecondsFromFar();
    // Parts of lines of the cache are asked for, and written, one after the other where vectors are short.
    const double bytesOfResult = kernels_.fmaLanes == blockLength ? 11 : 7;
    // Where lines of the cache are left out memory gives less, which was seen on a core with two wide units.
    const bool skipsColumns = shape().kernelWidth < shape().strideWidth;
    const bool hasOneTap = shape().kernelHeight * shape().kernelWidth == 1;
    const double bytesOfSums =
        std::min(hasOneTap ? coreModel().mostOfOneTap : 12.0, skipsColumns && hasTwoWideUnits(kernels_) ? 8.0 : 12.0);
    const double ofNumbers = readsBfloat16(description_) ? cyclesOfBfloat16 : 1;
    const double cycles = three_ ? DepthwiseThree::cycles(description_, kernels_)
                                 : ofNumbers * depthwiseCycles(shape(), kernels_, method, lines, taps_.size());
    const double bytes = floats * static_cast<double>(bytesOfNumber(description_)),
                 rate = isData ? bytesOfResult / (1 + 0.25 * shape().kernelHeight) : bytesOfSums;
    const bool areHalves = isData && 2 * kernels_.fmaLanes == blockLength;
    return std::max(computed * cycles + planes * (apartCycles() + tallCycles()),
                    areHalves ? halfLineCycles(bytes, rate) : transferCycles(bytes, rate)) /
           assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    if (packedFloats() > 0) packDepthwise(description_, false, weights, packed);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto blocks = static_cast<std::size_t>(shape().inBlocks());
    if (description_.pass == taccConvBackwardData) {
      executor.forEach(blocks * static_cast<std::size_t>(shape().batch), [&](std::size_t plane, int) {
        backwardData(buffers, static_cast<int>(plane / blocks), static_cast<int>(plane % blocks));
      });
      return;
    }
    // Sums go straight to the result where it lies as they do and has one part.
    const bool isResult = parts_ == 1 && description_.weightLayout == taccWeightsBlocked && !cutsBlock(description_);
    float* const sums = isResult ? buffers.result : static_cast<float*>(buffers.workspace);
    executor.forEach(blockGroups_ * parts_, [&](std::size_t index, int) {
      const TaskPart some = partOf(blocks, blockGroups_, index % blockGroups_);
      sumPart(buffers, some, index / blockGroups_, isResult && description_.accumulate, sums);
      if (parts_ > 1 || isResult) return;
      for (std::size_t block = some.from; block < some.to; ++block) {
        deliverDepthwise(description_, static_cast<int>(block), sums + block * sumFloats(), buffers.result);
      }
    });
    if (parts_ == 1) return;
    executor.forEach(blocks, [&](std::size_t block, int) {
      float* const all = sums + block * sumFloats();
      for (std::size_t part = 1; part < parts_; ++part) {
        const float* const from = all + part * blocks * sumFloats();
        for (std::size_t i = 0; i < sumFloats(); ++i) all[i] += from[i];
      }
      deliverDepthwise(description_, static_cast<int>(block), all, buffers.result);
    });
  }

 private:
  /// Of weights of tall kernels whose lines of the image are more than the L1 cache holds: short vectors wait for each
  /// of them.
  double tallCycles() const {
    constexpr double ofPixelOfLine = 2.5, bytesOfL1 = 32 * 1024;
    constexpr int leastTall = 8;
    const Shape& s = shape();
    const bool isMeasured = areNearHalves(kernels_.fmaLanes) && description_.pass == taccConvBackwardWeights;
    const double lines = std::min(s.kernelHeight, s.height);
    const bool isHeld = lines * s.width * blockLength * sizeof(float) <= bytesOfL1;
    if (!isMeasured || s.kernelHeight < leastTall || isHeld) return 0;
    return ofPixelOfLine * lines * s.outHeight * s.width;
  }
  /// Backward to the data: the result is cleared, which far caches are felt by, and what is added comes from the L2
  /// cache then.
  double dataSecondsFromFar() const {
    constexpr double partNotHidden = 0.64, bytesOfMemory = 5;
    const Shape& s = shape();
    const double planes = double(s.batch) * s.inBlocks();
    const double bytes = planes * static_cast<double>(s.inPlane()) * sizeof(float);
    const double cycles = planes * depthwiseCycles(s, kernels_, DepthwiseMethod::tapAdditions, s.height);
    return (cycles + partNotHidden * transferCycles(bytes, bytesOfMemory)) / assumedHertz;
  }

  const Shape& shape() const { return description_.shape; }
  std::size_t sumFloats() const {
    return static_cast<std::size_t>(shape().kernelHeight) * static_cast<std::size_t>(shape().kernelWidth) * blockLength;
  }

  /// For a block of an image whose pixels are apart, beside the products: the further the distances are towards a power
  /// of two, the more pixels fall on each other in the L1 cache. Fitted to MobileNet v1's and v2's layers.
  double apartCycles() const {
    if (!isApart(description_)) return 0;
    constexpr int sets = 64;  // of an L1 cache of 32 KiB in eight ways
    const Shape& s = shape();
    const int setsOfPixels = sets / std::gcd(sets, s.inBlocks());
    // What blocks of a strip that follow each other have brought there is used before the next pixels come.
    const double most = hasFarCaches() && kernels_.fmaLanes == blockLength ? 3 : sets;
    const double ofPixel = setsOfPixels >= 8 ? 1 : std::min(most, 20.0 / setsOfPixels);
    return ofPixel * (double(s.height) * s.width + double(s.outHeight) * s.outWidth);
  }

  /// Part `part` of the lines of all images, for some blocks.
  void sumPart(const Buffers& buffers, TaskPart blocks, std::size_t part, bool accumulates, float* sums) const {
    const Shape& s = shape();
    const auto count = static_cast<std::size_t>(s.inBlocks());
    const auto sumsOf = [&](std::size_t block) { return sums + (part * count + block) * sumFloats(); };
    const auto height = static_cast<std::size_t>(s.outHeight);
    const TaskPart lines = partOf(height * static_cast<std::size_t>(s.batch), parts_, part);
    if (three_) {
      three_->sum(buffers, blocks, lines, accumulates, sumsOf(blocks.from));
      return;
    }
    for (std::size_t block = blocks.from; block < blocks.to && !accumulates; ++block) {
      std::fill_n(sumsOf(block), sumFloats(), 0.0F);
    }
    const auto turn = isApart(description_) ? static_cast<std::size_t>(linesInTurn_) : height;
    for (std::size_t line = lines.from; line < lines.to;) {
      const std::size_t image = line / height;
      const std::size_t end = std::min({lines.to, (image + 1) * height, line + turn});
      for (std::size_t block = blocks.from; block < blocks.to;) {
        const std::size_t together = blocksTogether({block, blocks.to});
        const auto placeOf = [&](const BlockSteps& steps) {
          return channelPlace(steps, static_cast<std::ptrdiff_t>(image),
                              firstChannel(description_, static_cast<int>(block)));
        };
        const int most = static_cast<int>(together) * blockLength;
        const int channels = s.inChannels - static_cast<int>(block) * blockLength;
        sumLines({numberAt(description_, buffers.input, placeOf(in_)),
                  numberAt(description_, buffers.outputGradient, placeOf(out_)),
                  static_cast<int>(line - image * height), static_cast<int>(end - image * height),
                  overlapsBlocks(description_) ? most : std::min(most, channels), sumsOf(block)});
        block += together;
      }
      line = end;
    }
  }

  /// Of some blocks, how many of the first ones a kernel goes through at once: those of pixels that are apart, which
  /// follow each other in memory. One that overlaps another goes by itself.
  std::size_t blocksTogether(TaskPart blocks) const {
    const bool followEachOther = isApart(description_) && description_.inputLayout == description_.outputLayout;
    if (!followEachOther) return 1;
    const std::size_t most = std::min(blocks.to - blocks.from, blocksOfTurn_);
    const auto apart = static_cast<std::size_t>(shape().inBlocks()) - (overlapsBlocks(description_) ? 1 : 0);
    return blocks.from < apart ? std::min(most, apart - blocks.from) : most;
  }

  /// Some lines of the output's gradient, of blocks of channels that a kernel goes through together.
  struct Lines {
    const float* input;
    const float* gradient;
    int from, to;
    int channels;  // of all of them
    float* sums;
  };
  void sumLines(const Lines& lines) const {
    if (isFetched_) {
      sumFetched(lines);
    } else {
      sumInCaches(lines);
    }
  }

  /// A few lines at a time, while those behind them are on their way from memory.
  [[gnu::noinline]] void sumFetched(const Lines& lines) const {
    const std::ptrdiff_t inputLine = std::ptrdiff_t{shape().strideHeight} * shape().width * blockLength;
    const std::ptrdiff_t gradientLine = std::ptrdiff_t{shape().outWidth} * blockLength;
    Lines turn = lines;
    for (; turn.from < lines.to; turn.from = turn.to) {
      const int from = turn.from;
      const int to = turn.to = std::min(lines.to, from + linesInTurn_);
      if (leavesOutPixels()) {
        fetchRead(lines.input, to, std::min(shape().outHeight, 2 * to - from));
      } else {
        fetch(lines.input + to * inputLine, (to - from) * inputLine);
      }
      fetch(lines.gradient + to * gradientLine, (to - from) * gradientLine);
      sumInCaches(turn);
    }
  }

  void sumInCaches(const Lines& lines) const {
    const Shape& s = shape();
    for (const DepthwiseTaps& taps : taps_) {
      const DepthwiseGradientKernel gradientKernel = usesKernelsApart(description_)
                                                         ? kernels_.depthwiseGradientApart[taps.width][s.strideWidth]
                                                         : kernels_.depthwiseGradient[taps.width][s.strideWidth];
      gradientKernel({lines.input, s.height, s.width, lines.gradient, s.outWidth, in_.pixel, out_.pixel, lines.from,
                      lines.to, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.padWidth - taps.first,
                      taps.first == 0 ? ahead_ : 0, floatsOfStripsAhead,
                      lines.sums + std::ptrdiff_t{taps.first} * blockLength,
                      std::ptrdiff_t{s.kernelWidth} * blockLength, lines.channels});
    }
    if (!taps_.empty()) return;
    forEachLine(lines.from, lines.to, [&](int tap, std::ptrdiff_t out, std::ptrdiff_t in, int pixels) {
      tapKernels_.sumProducts(lines.gradient + out, lines.input + in, std::ptrdiff_t{s.strideWidth} * blockLength,
                              pixels, lines.sums + std::ptrdiff_t{tap} * blockLength);
    });
  }

  /// Whether kernels fetch strip by strip what comes from memory: where a line is one strip, and where strides leave
  /// out lines. Else the order of memory, some lines at a time, is better.
  bool fetchesStrips() const {
    constexpr int pixelsOfStrip = 14;
    const Shape& s = shape();
    const bool isStrip = s.strideHeight == 1 && s.strideWidth == 1 && s.outWidth <= pixelsOfStrip;
    const bool leavesOutLines = s.kernelHeight < s.strideHeight;
    return !taps_.empty() && (isStrip || leavesOutLines);
  }

  /// Fetches some floats that come from memory.
  static void fetch(const float* from, std::ptrdiff_t floats) {
    for (std::ptrdiff_t i = 0; i < floats; i += blockLength) __builtin_prefetch(from + i);
  }

  bool leavesOutPixels() const { return depthwisePartRead(shape()) < 1; }
  /// What lines [from, to) of the output read, where strides leave out the rest.
  void fetchRead(const float* input, int from, int to) const {
    const std::ptrdiff_t step = std::ptrdiff_t{shape().strideWidth} * blockLength;
    forEachLine(from, to, [&](int, std::ptrdiff_t, std::ptrdiff_t in, int pixels) {
      for (int x = 0; x < pixels; ++x) __builtin_prefetch(input + in + x * step);
    });
  }

  /// Calls visit(tap, first float of the output's line, of the input's, pixels) for what lies inside a plane.
  template <class Visit>
  void forEachLine(int fromLine, int toLine, const Visit& visit) const {
    const Shape& s = shape();
    if (s.isProduct()) {  // whose lines follow each other without a gap
      const std::ptrdiff_t at = std::ptrdiff_t{fromLine} * s.width * blockLength;
      if (fromLine < toLine) visit(0, at, at, (toLine - fromLine) * s.width);
      return;
    }
    for (int y = fromLine; y < toLine; ++y) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        const int line = y * s.strideHeight - s.padHeight + r * s.dilationHeight;
        if (line < 0 || line >= s.height) continue;
        for (int t = 0; t < s.kernelWidth; ++t) {
          const int offset = t * s.dilationWidth - s.padWidth;
          const int from = firstInside(offset, s.strideWidth);
          const int to = std::min(s.outWidth, endInside(offset, s.strideWidth, s.width));
          if (from >= to) continue;
          const std::ptrdiff_t column = std::ptrdiff_t{from} * s.strideWidth + offset;
          visit(r * s.kernelWidth + t, (std::ptrdiff_t{y} * s.outWidth + from) * blockLength,
                (std::ptrdiff_t{line} * s.width + column) * blockLength, to - from);
        }
      }
    }
  }

  void backwardData(const Buffers& buffers, int image, int block) const {
    const Shape& s = shape();
    const std::ptrdiff_t plane = std::ptrdiff_t{image} * shape().inBlocks() + block;
    const float* const gradient = buffers.outputGradient + plane * shape().outPlane();
    const float* const weights = buffers.packedWeights + block * static_cast<std::ptrdiff_t>(sumFloats());
    float* const result = buffers.result + plane * shape().inPlane();
    if (!description_.accumulate) std::fill_n(result, s.inPlane(), 0.0F);
    if (s.outWidth >= s.kernelWidth) {
      forEachLine(0, s.outHeight, [&](int tap, std::ptrdiff_t out, std::ptrdiff_t in, int pixels) {
        tapKernels_.addProducts(gradient + out, weights + std::ptrdiff_t{tap} * blockLength, result + in,
                                std::ptrdiff_t{s.strideWidth} * blockLength, pixels);
      });
      return;
    }
    // Lines of fewer pixels than taps: the taps of a pixel follow each other.
    for (int y = 0; y < s.outHeight; ++y) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        const int line = y * s.strideHeight - s.padHeight + r * s.dilationHeight;
        if (line < 0 || line >= s.height) continue;
        for (int x = 0; x < s.outWidth; ++x) {
          const int offset = x * s.strideWidth - s.padWidth;
          const int from = firstInside(offset, s.dilationWidth);
          const int to = std::min(s.kernelWidth, endInside(offset, s.dilationWidth, s.width));
          if (from >= to) continue;
          const std::ptrdiff_t column = std::ptrdiff_t{from} * s.dilationWidth + offset;
          tapKernels_.addProducts(weights + (std::ptrdiff_t{r} * s.kernelWidth + from) * blockLength,
                                  gradient + (std::ptrdiff_t{y} * s.outWidth + x) * blockLength,
                                  result + (std::ptrdiff_t{line} * s.width + column) * blockLength,
                                  std::ptrdiff_t{s.dilationWidth} * blockLength, to - from);
        }
      }
    }
  }

  Description description_;
  const KernelSet& kernels_;
  const layers::LayerKernels& tapKernels_;
  BlockSteps in_, out_;
  std::vector<DepthwiseTaps> taps_;  // none: a tap at a time
  std::ptrdiff_t ahead_ = 0;         // floats of the input that kernels fetch before they read them; 0: none
  bool isFetched_ = false;           // what the gradient of the weights reads, some lines ahead
  int linesInTurn_ = 1 << 30;
  std::size_t blocksOfTurn_ = 1;  // that kernels go through together, where pixels are apart
  std::size_t parts_ = 1;
  std::size_t blockGroups_ = 1;
  std::optional<DepthwiseThree> three_;  // sums in place of the other kernels
};

}  // namespace

bool servesDepthwiseGradients(const Description& d) {
  const bool isServed = d.pass == taccConvBackwardWeights ||
                        (d.pass == taccConvBackwardData && !servesDepthwise(d) && !servesDepthwisePhases(d));
  if (usesKernelsApart(d))
    return d.shape.isDepthwise() && d.pass == taccConvBackwardWeights && hasKernelsApart(d) &&
           hasBlockSteps(d.inputLayout) && hasBlockSteps(d.outputLayout);
  return d.shape.isDepthwise() && isServed && hasBlockSteps(d.inputLayout) && hasBlockSteps(d.outputLayout);
}

std::unique_ptr<ConvPlan> makeDepthwiseGradients(const Description& d, const KernelSet& kernels) {
  return std::make_unique<DepthwiseGradients>(d, kernels);
}

}  // namespace tacc::conv
