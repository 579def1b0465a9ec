// Grouped convolutions whose groups cut blocks of channels, backward to the data with a stride of 2: a line of the
// result at a time, from those of the output's gradient that a line of the kernel finds. In phases, as
// grouped_direct.cpp goes, pixels of either parity would be permuted by themselves, and one of them has a single tap.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/grouped.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

constexpr int tapsOfLine = 3;

class GroupedSpread final : public ConvPlan {
 public:
  GroupedSpread(const Description& d, const KernelSet& kernels, GroupCut cut)
      : ConvPlan(std::string(kernels.vectors) + " grouped lines"),
        description_(d),
        kernels_(kernels),
        cut_(std::move(cut)),
        weights_(d, cut_, true) {
    for (const GroupSteps& steps : cut_.steps) {
      lists_.push_back(listsOf(steps));
      valueOffsets_.push_back(takesOneValue(steps, kernels) ? valueOffsets(steps, kernels)
                                                            : std::vector<std::int32_t>());
    }
    for (const GroupSpan& span : cut_.spans) {
      packed_.push_back(packedFloats_);
      packedFloats_ += floatsOfLine(stepsOf(span)) * static_cast<std::size_t>(shape().kernelHeight);
    }
    const std::size_t tasks = static_cast<std::size_t>(shape().batch) * cut_.spans.size();
    lineParts_ =
        balancedCut({tasks, static_cast<std::size_t>(shape().height)}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t packedFloats() const override { return packedFloats_; }
  double predictedSeconds() const override {
    const Shape& s = shape();
    // The sums of the outer taps are added to twice a step, one after the other.
    const double tiles = ceilDivide((s.width + s.padWidth + 1) / 2, kernels_.spreadLimit);
    const double positions = double(s.width + 1) / 2 / tiles;
    const double products = productCycles(kernels_, 1, tapsOfLine) * blocksOfVector() * positions + 0.4 * positions;
    const double step = std::max(2 * latencyCycles, products);
    constexpr double ofTile = 20;
    double cycles = 0;
    for (const GroupSpan& span : cut_.spans) {
      for (const List& list : lists_[static_cast<std::size_t>(span.steps)].ofLines) {
        cycles += callCycles + tiles / blocksOfVector() * (list.steps * step + ofTile);
      }
    }
    const double floats = double(s.inBlocks()) * static_cast<double>(s.inPlane()) +
                          double(s.outBlocks()) * static_cast<double>(s.outPlane());
    return overlappedCycles(cycles * s.batch, transferCycles(floats * s.batch * sizeof(float), 9)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    const Shape& s = shape();
    for (std::size_t i = 0; i < cut_.spans.size(); ++i) {
      const GroupSteps& steps = stepsOf(cut_.spans[i]);
      float* to = packed + packed_[i];
      for (int r = 0; r < s.kernelHeight; ++r) {
        for (int b = 0; b < static_cast<int>(steps.counts.size()); ++b) {
          for (int value = 0; value < steps.counts[static_cast<std::size_t>(b)]; ++value) {
            const GroupWeights::Place* const places = weights_.at(i, 0, b, value);
            for (int t = 0; t < tapsOfLine; ++t, to += blockLength) {
              const std::ptrdiff_t tap = std::ptrdiff_t{r} * tapsOfLine + t;
              for (int lane = 0; lane < blockLength; ++lane) {
                to[lane] = places[lane].first < 0 ? 0.0F : weights[places[lane].first + places[lane].tap * tap];
              }
            }
          }
        }
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const Shape& s = shape();
    const std::size_t ofImage = cut_.spans.size() * lineParts_;
    executor.forEach(static_cast<std::size_t>(s.batch) * ofImage, [&](std::size_t index, int) {
      const auto image = static_cast<std::ptrdiff_t>(index / ofImage);
      const std::size_t spanIndex = index % ofImage / lineParts_;
      const GroupSpan& span = cut_.spans[spanIndex];
      const GroupSteps& steps = stepsOf(span);
      const Lists& lists = lists_[static_cast<std::size_t>(span.steps)];
      PermutedSpreadCall call{};
      call.input = buffers.outputGradient + (image * s.outBlocks() + span.firstSource) * s.outPlane();
      call.inputPixels = s.outWidth;
      call.weights = buffers.packedWeights + packed_[spanIndex];
      const auto& ofValues = valueOffsets_[static_cast<std::size_t>(span.steps)];
      call.lanes = ofValues.empty() ? steps.lanes.data() : nullptr;
      call.offsets = ofValues.empty() ? steps.offsets.data() : ofValues.data();
      call.outputPixels = s.width;
      call.shift = s.padWidth;
      call.accumulate = description_.accumulate;
      float* const result = buffers.result + (image * s.inBlocks() + span.firstTarget) * s.inPlane();
      const TaskPart lines = partOf(static_cast<std::size_t>(s.height), lineParts_, index % lineParts_);
      for (std::size_t y = lines.from; y < lines.to; ++y) {
        const List& list = lists.ofLines[y];
        call.runs = lists.runs.data() + list.first;
        call.runCount = list.count;
        call.output = result + static_cast<std::ptrdiff_t>(y) * s.width * blockLength;
        kernels_.permutedSpread(call);
      }
    });
  }

 private:
  /// What a line of the result is the sum of.
  struct List {
    std::size_t first;
    int count, steps;
  };
  struct Lists {
    std::vector<SpreadRun> runs;
    std::vector<List> ofLines;
  };

  const Shape& shape() const { return description_.shape; }
  const GroupSteps& stepsOf(const GroupSpan& span) const { return cut_.steps[static_cast<std::size_t>(span.steps)]; }
  double blocksOfVector() const { return double(kernels_.fmaLanes) / blockLength; }
  static std::size_t floatsOfLine(const GroupSteps& steps) {
    return static_cast<std::size_t>(steps.total()) * tapsOfLine * blockLength;
  }

  Lists listsOf(const GroupSteps& steps) const {
    const Shape& s = shape();
    Lists lists;
    for (int y = 0; y < s.height; ++y) {
      List list{lists.runs.size(), 0, 0};
      for (int r = 0; r < s.kernelHeight; ++r) {
        const int at = y + s.padHeight - r * s.dilationHeight;
        if (at < 0 || at % s.strideHeight != 0 || at / s.strideHeight >= s.outHeight) continue;
        const std::ptrdiff_t line = std::ptrdiff_t{at / s.strideHeight} * s.outWidth * blockLength;
        int before = 0;
        for (std::size_t b = 0; b < steps.counts.size(); before += steps.counts[b++]) {
          const auto weights =
              static_cast<std::ptrdiff_t>(floatsOfLine(steps)) * r + std::ptrdiff_t{before} * tapsOfLine * blockLength;
          lists.runs.push_back(
              {static_cast<std::ptrdiff_t>(b) * s.outPlane() + line, weights, before, steps.counts[b]});
          ++list.count;
          list.steps += steps.counts[b];
        }
      }
      lists.ofLines.push_back(list);
    }
    return lists;
  }

  Description description_;
  const KernelSet& kernels_;
  GroupCut cut_;
  GroupWeights weights_;
  std::vector<Lists> lists_;                             // of every kind of steps
  std::vector<std::vector<std::int32_t>> valueOffsets_;  // likewise, if they take one value; else none
  std::vector<std::size_t> packed_;                      // where the weights of every span begin
  std::size_t packedFloats_ = 0, lineParts_ = 1;
};

}  // namespace

bool canSpreadGroups(const Description& d, const GroupCut& cut) {
  const Shape& s = d.shape;
  return s.strideWidth == 2 && s.kernelWidth == tapsOfLine && s.dilationWidth == 1 && s.padWidth < tapsOfLine &&
         std::all_of(cut.steps.begin(), cut.steps.end(), [](const GroupSteps& steps) { return steps.isPermuted; });
}

std::unique_ptr<ConvPlan> makeGroupedSpread(const Description& d, const KernelSet& kernels, GroupCut cut) {
  return std::make_unique<GroupedSpread>(d, kernels, std::move(cut));
}

}  // namespace tacc::conv
