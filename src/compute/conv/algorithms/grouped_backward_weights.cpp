// Grouped convolutions whose groups cut blocks of channels, backward to the weights: for each block of output channels
// and each tap the gradient kernel over the steps of group_steps.hpp.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/group_delivery.hpp"
#include "compute/conv/algorithms/grouped.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Of the lines of input and gradient that are gone through at a time, for all taps: most of an L1 cache.
constexpr std::size_t lineBytesAtOnce = 24 * 1024;

/// Blocks of output channels that are gone through in turn, as neighbours read the same channels of the input.
constexpr std::size_t mostInTurn = 8;

constexpr std::size_t alignedFloats(std::size_t floats) {
  return (floats + blockLength - 1) / blockLength * blockLength;
}

class GroupedBackwardWeights final : public ConvPlan {
 public:
  GroupedBackwardWeights(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors) + " grouped"),
        description_(d),
        kernels_(kernels),
        cut_(cutGroups({d.shape.groups, d.shape.outPerGroup(), d.shape.inPerGroup()}, kernels)),
        delivery_(d, cut_) {
    for (const GroupSteps& steps : cut_.steps) values_.push_back(valuesByVectors(steps));
    for (std::size_t i = 0; i < cut_.spans.size(); ++i) {
      const GroupSteps& steps = stepsOf(i);
      const int together = blocksTogether(steps);
      for (int b = 0; b < steps.blocks; b += together) {
        blocks_.push_back({i, b, std::min(together, steps.blocks - b)});
        mostBlocks_ = std::max(mostBlocks_, blocks_.back().count);
        tapCost_ = tapCost_ + costOfTap(steps, blocks_.back().count);
      }
      mostSteps_ = std::max(mostSteps_, static_cast<std::size_t>(steps.total()));
    }
    const std::size_t line = static_cast<std::size_t>(shape().width + shape().outWidth) * blockLength * sizeof(float);
    linesAtOnce_ = static_cast<int>(std::clamp<std::size_t>(lineBytesAtOnce / line, 1, 64));
    // What does not stay in the L2 cache is read once for all lines of the kernel, while blocks are enough for all
    // workers.
    const auto workers = static_cast<std::size_t>(d.maxWorkers);
    isReadOnce_ = !staysInL2(static_cast<std::size_t>(bytesSeen(blocks_.front(), shape().batch, false)));
    if (isReadOnce_ && (workers == 1 || blocks_.size() >= 4 * workers)) kernelLinesAtOnce_ = shape().kernelHeight;
    blockParts_ = blocks_.size();
    if (isReadOnce_ && kernelLinesAtOnce_ == shape().kernelHeight && shareSources()) {
      const std::size_t tasks = workers == 1 ? 1 : 4 * workers;
      blockParts_ = std::min(blocks_.size(), std::max(tasks, (blocks_.size() + mostInTurn - 1) / mostInTurn));
      if (takeTurns()) describe(groupsInTurn);
    }
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * blocksInTurn() * sumFloatsOfBlocks() * sizeof(float);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double lines =
        insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
    const double columns = insidePairs(s.outWidth, s.kernelWidth, s.strideWidth, s.dilationWidth, s.padWidth, s.width);
    const double calls = lines / linesAtOnce_ + s.kernelHeight;
    // Groups of one channel are compared with kernels that have no line of each tap to begin.
    constexpr double lineOfChannel = 26;
    const double ofLine = s.isDepthwise() ? lineOfChannel : lineCycles;
    const double products =
        tapCost_.pixel * lines * columns + tapCost_.tiles * s.kernelWidth * (calls * callCycles + lines * ofLine);
    // With strides hardware does not look ahead, and kernels wait for what they read, unless they fetch it before.
    const bool isFetched = isReadOnce_ && s.strideWidth == 2 && joinsThreeTaps(cut_.steps.front());
    // Where blocks take turns far memory is not hidden either.
    const bool isAdded = (s.strideWidth > 1 && !isFetched) || (hasFarCaches() && takeTurns());
    const double summed = isAdded ? s.batch * products + transfers() : std::max(s.batch * products, transfers());
    // Of groups of one channel products are too few to hide what is read and begun where two start in a cycle.
    const double isNotHidden = s.isDepthwise() && hasTwoWideUnits(kernels_) ? 1.3 : 1;
    return (isNotHidden * summed + deliveryCycles()) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const input = buffers.input;
    delivery_.begin(buffers.result);
    const auto parts = static_cast<std::size_t>(shape().kernelHeight / kernelLinesAtOnce_);
    executor.forEach(blockParts_ * parts, [&](std::size_t index, int worker) {
      const std::size_t floats = sumFloatsOfBlocks();
      float* const sums =
          static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * blocksInTurn() * floats;
      const TaskPart some = partOf(blocks_.size(), blockParts_, index / parts);
      const int first = static_cast<int>(index % parts) * kernelLinesAtOnce_;
      std::fill_n(sums, (some.to - some.from) * floats, 0.0F);
      const auto forEachLine = [&](const auto& visit) {
        for (std::size_t block = some.from; block < some.to; ++block) {
          for (int r = 0; r < kernelLinesAtOnce_; ++r) {
            const std::size_t ofLine = static_cast<std::size_t>(r * mostBlocks_) * sumFloats();
            visit(block, first + r, sums + (block - some.from) * floats + ofLine);
          }
        }
      };
      for (int image = 0; image < shape().batch; ++image) {
        for (int line = 0; line < shape().outHeight; line += linesAtOnce_) {
          forEachLine([&](std::size_t block, int r, float* to) {
            if (fetchesLines() && !fetchesPixels(stepsOf(blocks_[block].span)) && r == first) {
              const std::ptrdiff_t before = block == some.from ? 0 : endOfSources(block - 1);
              fetchLines(input, buffers.outputGradient, image, line + linesAtOnce_, blocks_[block], before);
            }
            sumPart(input, buffers.outputGradient, image, line, blocks_[block], r, to);
          });
        }
      }
      forEachLine(
          [&](std::size_t block, int r, const float* from) { deliver(from, blocks_[block], r, buffers.result); });
    });
  }

 private:
  struct Block {
    std::size_t span;
    int ofSpan, count;  // the first block, and how many are summed together
  };

  /// Blocks that see the same channels, which are so few that sums of one block would wait for themselves.
  int blocksTogether(const GroupSteps& steps) const {
    if (steps.isPermuted) return 1;
    const int rows = *std::max_element(steps.counts.begin(), steps.counts.end());
    int together = std::min(maxBlocks, steps.blocks);
    while (together > 1 && kernels_.rowLimit[together] < rows) --together;
    return together;
  }

  /// Of a tap: cycles for a pixel, and tiles. Few sums at a time wait for themselves.
  struct TapCost {
    double pixel = 0, tiles = 0;
    TapCost operator+(const TapCost& other) const { return {pixel + other.pixel, tiles + other.tiles}; }
  };
  /// Of `blocks` blocks together.
  TapCost costOfTap(const GroupSteps& steps, int blocks) const {
    const bool isThree = joinsThreeTaps(steps);
    const bool isPermuted = steps.isPermuted && (isThree || !sumsByVectors(steps));
    const int limit = isThree            ? threeTapsOf(steps).limit
                      : isPermuted       ? kernels_.permutedRowLimit
                      : steps.isPermuted ? kernels_.halfRowLimit[1]
                                         : kernels_.rowLimit[blocks];
    const int vectors = blocks * blockLength / kernels_.fmaLanes;
    const double perCycle = kernels_.fmaLanes == blockLength && !hasTwoWideUnits(kernels_) ? 1 : 2;
    const int taps = isThree ? 3 : 1;
    // Permutations of vectors of half a block take more than three times as long as products, on a Zen 3.
    const bool isUniform = isThree && steps.isUniform && kernels_.uniformThreeLimit > 0;
    const bool arePermutedHalves = areNearHalves(kernels_.fmaLanes) && kernels_.permutedLanes > 1 && !isUniform;
    const double ofTaken = arePermutedHalves ? 1.8 : 0.4;
    TapCost cost;
    for (const int count : steps.counts) {
      if (count == 0) continue;
      const int parts = ceilDivide(count, limit);
      const double chains = double(count) / parts * taps;
      // Permuted kernels take one vector of the block after the other.
      const int together = steps.isPermuted ? 1 : vectors;
      // Of three taps, two read the same where there is a stride, and all where there is none.
      const int read = isThree ? shape().strideWidth : 1;
      const double products = chains * together / perCycle + (isPermuted ? chains / taps * read * ofTaken : 0);
      const int tiles = parts * (vectors / together);
      const int sets = isThree ? 1 : gradientSets(ceilDivide(count, parts) * together);
      // A single value for each lane: what is read and permuted for it is used once.
      const double alone = isThree && shape().isDepthwise() ? 1.4 : 1;
      cost.pixel += tiles * alone * std::max(latencyCycles / sets, products) / taps;
      cost.tiles += double(tiles) / taps;
    }
    return cost;
  }
  /// Cycles for what comes from behind the L2 cache: each line of the kernel, or all together where an image stays
  /// there for them, goes through both tensors, and through the input for each few blocks of results, unless what these
  /// see stays there.
  double transfers() const {
    const Shape& s = shape();
    const bool isOnce = isReadOnce_ && staysInL2(static_cast<std::size_t>(bytesSeen(blocks_.front(), 1, true)));
    const double once = s.batch * (s.inBlocks() * inFloatsUsed(isOnce) + s.outBlocks() * double(s.outPlane()));
    double repeated = 0;
    for (const Block& block : blocks_) {
      const double seen = bytesSeen(block, s.batch, isOnce);
      if (!staysInL2(static_cast<std::size_t>(seen))) repeated += seen / sizeof(float);
    }
    if (hasFarCaches() && takeTurns()) repeated = 0;
    return (isOnce ? 1 : s.kernelHeight) * transferCycles(std::max(once, repeated) * sizeof(float), 10);
  }
  /// Of a block of the input, of an image, by a line of the kernel or by all of them.
  double inFloatsUsed(bool byAll) const {
    const Shape& s = shape();
    const int lines = byAll ? std::min(s.kernelHeight, s.strideHeight) : 1;
    return std::min(1.0, double(s.outHeight) * lines / s.height) *
           std::min(1.0, double(s.outWidth) * std::min(s.kernelWidth, s.strideWidth) / s.width) *
           static_cast<double>(s.inPlane());
  }
  /// Of input and gradient, by some blocks of results.
  double bytesSeen(const Block& block, int images, bool byAll) const {
    const double inputs = static_cast<double>(stepsOf(block.span).counts.size()) * inFloatsUsed(byAll);
    return images * (inputs + block.count * static_cast<double>(shape().outPlane())) * sizeof(float);
  }
  /// Cycles for bringing sums to the weights, lanes of a group together.
  double deliveryCycles() const {
    const Shape& s = shape();
    const double taps = double(s.kernelHeight) * s.kernelWidth;
    const double ofRun = 30, ofWeight = 1.6;
    const double runs = std::max<double>(s.groups, s.outBlocks()) * ceilDivide(s.inPerGroup(), blockLength);
    return taps * (runs * ofRun + double(s.outChannels) * s.inPerGroup() * ofWeight);
  }
  bool joinsThreeTaps(const GroupSteps& steps) const {
    return steps.isPermuted && shape().kernelWidth == 3 && shape().strideWidth <= 2 && shape().dilationWidth == 1;
  }
  /// The kernels for three taps, by their rows, and the most of these.
  struct ThreeTaps {
    const GradientKernel* kernels;
    int limit;
  };
  ThreeTaps threeTapsOf(const GroupSteps& steps) const {
    const int stride = shape().strideWidth;
    if (steps.isUniform && kernels_.uniformThreeLimit > 0)
      return {kernels_.uniformGradientThree[stride], kernels_.uniformThreeLimit};
    return {kernels_.permutedGradientThree[stride], kernels_.permutedThreeLimit};
  }

  const Shape& shape() const { return description_.shape; }
  const GroupSteps& stepsOf(std::size_t span) const {
    return cut_.steps[static_cast<std::size_t>(cut_.spans[span].steps)];
  }
  /// For each tap of a line of the kernel and each step the sums of 16 output channels.
  std::size_t sumFloats() const {
    return alignedFloats(mostSteps_ * static_cast<std::size_t>(shape().kernelWidth) * blockLength);
  }

  /// Of a task: for each of its lines of the kernel, of blocks that are summed together; and how many such a task has.
  std::size_t sumFloatsOfBlocks() const {
    return static_cast<std::size_t>(kernelLinesAtOnce_ * mostBlocks_) * sumFloats();
  }

  /// Whether any neighbours do, which groups that begin with blocks do not.
  bool shareSources() const {
    for (std::size_t block = 1; block < blocks_.size(); ++block) {
      if (endOfSources(block - 1) > cut_.spans[blocks_[block].span].firstSource) return true;
    }
    return false;
  }
  bool takeTurns() const { return blockParts_ < blocks_.size(); }
  std::size_t blocksInTurn() const { return (blocks_.size() + blockParts_ - 1) / blockParts_; }

  /// Whether lines are fetched before they are read: where blocks take turns, hardware begins anew with each.
  bool fetchesLines() const { return takeTurns() && shape().strideHeight == 1; }
  /// Whether the kernel does that, pixel by pixel.
  bool fetchesPixels(const GroupSteps& steps) const {
    return fetchesLines() && steps.isPermuted && !sumsByVectors(steps) &&
           shape().kernelHeight * shape().kernelWidth == 1;
  }
  /// Behind the blocks of the input that a block of results sees.
  std::ptrdiff_t endOfSources(std::size_t block) const {
    const std::size_t span = blocks_[block].span;
    return cut_.spans[span].firstSource + static_cast<std::ptrdiff_t>(stepsOf(span).counts.size());
  }
  /// What a block of results reads of some lines of the output, of an image, from one on, and of the input, from its
  /// block `firstSource` on.
  void fetchLines(const float* input, const float* gradient, int image, int from, const Block& block,
                  std::ptrdiff_t firstSource) const {
    const Shape& s = shape();
    const auto fetch = [](const float* plane, int width, int first, int end) {
      for (std::ptrdiff_t i = std::ptrdiff_t{first} * width; i < std::ptrdiff_t{end} * width; ++i) {
        __builtin_prefetch(plane + i * blockLength, 0, 2);
      }
    };
    const GroupSpan& span = cut_.spans[block.span];
    const int to = std::min(s.outHeight, from + linesAtOnce_);
    const std::ptrdiff_t out = std::ptrdiff_t{image} * s.outBlocks() + span.firstTarget + block.ofSpan;
    for (int b = 0; b < block.count; ++b) fetch(gradient + (out + b) * s.outPlane(), s.outWidth, from, to);
    const int reach = (s.kernelHeight - 1) * s.dilationHeight - s.padHeight;
    const std::ptrdiff_t end = span.firstSource + static_cast<std::ptrdiff_t>(stepsOf(block.span).counts.size());
    for (std::ptrdiff_t b = std::max<std::ptrdiff_t>(firstSource, span.firstSource); b < end; ++b) {
      fetch(input + (std::ptrdiff_t{image} * s.inBlocks() + b) * s.inPlane(), s.width,
            std::clamp(from + reach, 0, s.height), std::clamp(to + reach, 0, s.height));
    }
  }

  /// What some lines of an image's output, from one on, contribute to line r of the kernel.
  void sumPart(const float* input, const float* gradient, int image, int firstLine, const Block& block, int r,
               float* sums) const {
    const Shape& s = shape();
    const int dy = r * s.dilationHeight - s.padHeight;
    const int from = std::max(firstLine, firstInside(dy, s.strideHeight));
    const int to = std::min({firstLine + linesAtOnce_, s.outHeight, endInside(dy, s.strideHeight, s.height)});
    if (from >= to) return;
    const GroupSpan& span = cut_.spans[block.span];
    const float* const in = input + (std::ptrdiff_t{image} * s.inBlocks() + span.firstSource) * s.inPlane();
    const float* const out =
        gradient + (std::ptrdiff_t{image} * s.outBlocks() + span.firstTarget + block.ofSpan) * s.outPlane();
    const std::ptrdiff_t first = (std::ptrdiff_t{from} * s.strideHeight + dy) * s.width * blockLength;
    sumLines(in + first, out + std::ptrdiff_t{from} * s.outWidth * blockLength, block, to - from, sums);
  }

  /// All taps of a line of the kernel and all steps for some lines of the output; `input` is what the first one reads.
  void sumLines(const float* input, const float* gradient, const Block& block, int lines, float* sums) const {
    const Shape& s = shape();
    const GroupSteps& steps = stepsOf(block.span);
    GradientCall call{};
    call.gradientBlock = s.outPlane();
    call.outputBlock = static_cast<std::ptrdiff_t>(sumFloats());
    call.inputPixel = std::ptrdiff_t{s.strideWidth} * blockLength;
    call.inputLine = std::ptrdiff_t{s.strideHeight} * s.width * blockLength;
    call.gradientLine = std::ptrdiff_t{s.outWidth} * blockLength;
    call.images = 1;
    call.outputRow = blockLength;
    call.accumulate = true;
    const bool isThree = joinsThreeTaps(steps);
    if (isThree ? kernelLinesAtOnce_ > 1 : fetchesPixels(steps)) {  // which is when it comes from behind the L2 cache
      call.inputAhead = linesAtOnce_ * call.inputLine;
      call.gradientAhead = linesAtOnce_ * call.gradientLine;
    }
    int firstStep = 0;
    for (std::size_t b = 0; b < steps.counts.size(); ++b) {
      const float* const plane = input + static_cast<std::ptrdiff_t>(b) * s.inPlane() + (b == 0 ? steps.firstValue : 0);
      if (isThree) {
        call.lines = lines;
        call.pixels = s.outWidth;
        call.inputPixels = s.width;
        call.shift = s.padWidth;
        call.input = plane;
        call.gradient = gradient;
        call.output = sums + std::ptrdiff_t{firstStep} * blockLength;
        call.outputBlock = static_cast<std::ptrdiff_t>(mostSteps_) * blockLength;
        const ThreeTaps three = threeTapsOf(steps);
        sumSteps(call, steps, firstStep, steps.counts[b], three.kernels, three.limit);
      }
      for (int t = 0; t < (isThree ? 0 : s.kernelWidth); ++t) {
        const int dx = t * s.dilationWidth - s.padWidth;
        const int left = firstInside(dx, s.strideWidth);
        const int right = std::min(s.outWidth, endInside(dx, s.strideWidth, s.width));
        if (left >= right) continue;
        call.lines = lines;
        call.pixels = right - left;
        call.input = plane + left * call.inputPixel + dx * std::ptrdiff_t{blockLength};
        call.gradient = gradient + left * std::ptrdiff_t{blockLength};
        if (call.pixels * call.inputPixel == call.inputLine && call.pixels == s.outWidth) {
          call.pixels *= lines;  // the lines follow each other without a gap
          call.lines = 1;
        }
        call.output = sums + (static_cast<std::ptrdiff_t>(mostSteps_) * t + firstStep) * blockLength;
        if (sumsByVectors(steps)) {
          sumVectors(call, steps);
        } else if (steps.isPermuted) {
          sumSteps(call, steps, firstStep, steps.counts[b], kernels_.permutedGradient, kernels_.permutedRowLimit);
        } else {
          sumSteps(call, steps, firstStep, steps.counts[b], kernels_.gradient[block.count],
                   kernels_.rowLimit[block.count]);
        }
      }
      firstStep += steps.counts[b];
    }
  }

  /// Where all lanes of a vector, which is half a block, take the same values, and these follow each other, as in a
  /// gradient of half a block: valueOffsets(). Of other steps none.
  std::vector<std::int32_t> valuesByVectors(const GroupSteps& steps) const {
    const int count = takesOneValue(steps, kernels_) && steps.counts.size() == 1 ? steps.counts.front() : 0;
    if (count == 0 || count > kernels_.halfRowLimit[1]) return {};
    std::vector<std::int32_t> values = valueOffsets(steps, kernels_);
    for (std::size_t i = 2; i < values.size(); ++i) {
      if (values[i] != values[i - 2] + 1) return {};
    }
    return values;
  }
  const std::vector<std::int32_t>& valuesOf(const GroupSteps& steps) const {
    return values_[static_cast<std::size_t>(&steps - cut_.steps.data())];
  }
  bool sumsByVectors(const GroupSteps& steps) const { return !valuesOf(steps).empty(); }
  /// Moves the call's places on, as sumSteps(): a copy could not begin before what was just stored in it is in the L1
  /// cache.
  void sumVectors(GradientCall& call, const GroupSteps& steps) const {
    const float* const input = call.input;
    for (std::size_t v = 0; v < 2; ++v) {
      call.input = input + valuesOf(steps)[v];
      kernels_.gradientHalf[1][steps.counts.front()](call);
      call.gradient += blockLength / 2;
      call.output += blockLength / 2;
    }
  }

  /// `kernels` by their rows, of which `limit` is the most.
  void sumSteps(GradientCall& call, const GroupSteps& steps, int first, int count, const GradientKernel* kernels,
                int limit) const {
    const int vectors = blockLength / kernels_.fmaLanes;
    const int parts = ceilDivide(count, limit);
    const std::ptrdiff_t inputAhead = call.inputAhead, gradientAhead = call.gradientAhead;
    for (int part = 0, done = 0; part < parts; ++part) {
      const int rows = (count - done) / (parts - part);
      if (steps.isPermuted) {
        call.lanes = steps.lanes.data() + std::ptrdiff_t{first + done} * blockLength;
        call.offsets = steps.offsets.data() + std::ptrdiff_t{first + done} * vectors;
      }
      kernels[rows](call);
      if (!steps.isPermuted) call.input += rows;
      call.output += std::ptrdiff_t{rows} * blockLength;
      call.inputAhead = call.gradientAhead = 0;  // the first part has fetched it
      done += rows;
    }
    call.inputAhead = inputAhead;
    call.gradientAhead = gradientAhead;
  }

  void deliver(const float* sums, const Block& block, int r, float* result) const {
    for (int b = 0; b < block.count; ++b) {
      delivery_.deliverBlock(
          {sums + static_cast<std::size_t>(b) * sumFloats(), static_cast<std::ptrdiff_t>(mostSteps_)}, block.span,
          block.ofSpan + b, r, result);
    }
  }

  Description description_;
  const KernelSet& kernels_;
  GroupCut cut_;
  GroupDelivery delivery_;
  std::vector<std::vector<std::int32_t>> values_;  // of every kind of steps: valuesByVectors()
  std::vector<Block> blocks_;                      // of output channels
  std::size_t mostSteps_ = 0;                      // of a block
  int mostBlocks_ = 1;                             // together
  int linesAtOnce_ = 1;
  bool isReadOnce_ = false;    // with one worker; prices are of that
  int kernelLinesAtOnce_ = 1;  // of which one task goes through the images together
  std::size_t blockParts_ = 1;
  TapCost tapCost_;  // of all blocks
};

}  // namespace

bool servesGroupedBackwardWeights(const Description& d) {
  return d.shape.groups > 1 && d.pass == taccConvBackwardWeights && d.inputLayout == taccLayoutNchw16c;
}

std::unique_ptr<ConvPlan> makeGroupedBackwardWeights(const Description& d, const KernelSet& kernels) {
  return std::make_unique<GroupedBackwardWeights>(d, kernels);
}

}  // namespace tacc::conv
