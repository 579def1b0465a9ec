// Grouped convolutions whose groups cut blocks of channels, forward and backward to the input: no channel is moved, and
// the kernels go through the channels that a block of results sees (group_steps.hpp).
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/algorithms/grouped.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

/// One kind of target blocks at one phase of the result; forward has one phase.
struct Part {
  std::ptrdiff_t output;  // of its first pixel, in floats
  std::vector<int> taps;  // r * kernelWidth + s
  DirectDriver driver;
  std::vector<std::int32_t> lanes, offsets;  // for every row of weights; no lanes: TileCall's are null
};

/// A row of the table of a kind's steps for each row of weights: steps come again for every tap.
template <class Number>
std::vector<Number> forEveryTap(const GroupSteps& steps, const std::vector<Number>& table, std::size_t taps) {
  if (!steps.isPermuted) return {};
  const std::size_t row = table.size() / static_cast<std::size_t>(steps.total());
  std::vector<Number> result;
  auto from = table.begin();
  for (const int count : steps.counts) {
    const auto to = from + static_cast<std::ptrdiff_t>(row) * count;
    for (std::size_t tap = 0; tap < taps; ++tap) result.insert(result.end(), from, to);
    from = to;
  }
  return result;
}

/// `weightBytes`: of all kinds.
std::vector<Part> partsOf(const Description& d, const GroupSteps& steps, double weightBytes, const KernelSet& kernels) {
  std::vector<BackwardPhase> phases;
  if (d.pass == taccConvForward) {
    std::vector<int> taps(static_cast<std::size_t>(d.shape.kernelHeight) *
                          static_cast<std::size_t>(d.shape.kernelWidth));
    for (std::size_t t = 0; t < taps.size(); ++t) taps[t] = static_cast<int>(t);
    phases.push_back({0, std::move(taps), forwardShape(d.shape)});
  } else {
    phases = backwardPhases(d.shape);
    for (BackwardPhase& phase : phases) {  // from the left to the right in what they read, as the kernel joins taps
      std::reverse(phase.taps.begin(), phase.taps.end());
      std::reverse(phase.driver.taps.begin(), phase.driver.taps.end());
    }
  }
  std::vector<Part> parts;
  for (BackwardPhase& phase : phases) {
    DirectShape shape = std::move(phase.driver);
    shape.inCounts = steps.counts;
    shape.outBlocks = steps.blocks;
    shape.lastOuts = blockLength;
    shape.isPermuted = steps.isPermuted;
    shape.takesOneValue = takesOneValue(steps, kernels);
    shape.weightBytes = weightBytes;
    shape.firstValue = steps.firstValue;
    const std::size_t taps = phase.taps.size();
    const bool takesOne = shape.takesOneValue;
    std::vector<std::int32_t> lanes, offsets;
    if (!takesOne) lanes = forEveryTap(steps, steps.lanes, taps);
    offsets = forEveryTap(steps, takesOne ? valueOffsets(steps, kernels) : steps.offsets, taps);
    parts.push_back({phase.output, std::move(phase.taps), DirectDriver(std::move(shape), kernels), std::move(lanes),
                     std::move(offsets)});
  }
  return parts;
}

class Grouped final : public ConvPlan {
 public:
  Grouped(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors) + " grouped"),
        description_(d),
        kernels_(kernels),
        isForward_(d.pass == taccConvForward),
        isNonTemporal_(isNonTemporalResult(d)),
        fetchesInput_(
            isForward_ &&
            layers::isTooLargeForCaches(
                static_cast<std::size_t>(d.shape.batch * d.shape.inBlocks() * d.shape.inPlane()) * sizeof(float))),
        cut_(cutGroups(isForward_ ? GroupChannels{d.shape.groups, d.shape.outPerGroup(), d.shape.inPerGroup()}
                                  : GroupChannels{d.shape.groups, d.shape.inPerGroup(), d.shape.outPerGroup()},
                       kernels)),
        weights_(d, cut_, !isForward_) {
    std::size_t tiles = 1;
    double weightBytes = 0;
    for (const GroupSpan& span : cut_.spans) {
      const GroupSteps& steps = cut_.steps[static_cast<std::size_t>(span.steps)];
      weightBytes += double(steps.total()) * steps.blocks * blockLength * sizeof(float);
    }
    weightBytes *= double(shape().kernelHeight) * shape().kernelWidth;
    for (const GroupSteps& steps : cut_.steps) {
      parts_.push_back(partsOf(d, steps, weightBytes, kernels));
      const DirectDriver& first = parts_.back().front().driver;
      tiles = std::max(tiles, first.tiles());
      tileParts_ = std::max(tileParts_, (first.tiles() + first.tilesAtOnce() - 1) / first.tilesAtOnce());
    }
    for (const GroupSpan& span : cut_.spans) {
      packed_.push_back(packedFloats_);
      const auto& parts = parts_[static_cast<std::size_t>(span.steps)];
      for (const Part& part : parts) {
        packedFloats_ += part.driver.packedFloats();
        cycles_ += part.driver.cycles();
      }
    }
    // Many narrow groups share a line with their neighbours alone, which come next in any order.
    const bool areWide = std::min(shape().inPerGroup(), shape().outPerGroup()) >= blockLength;
    areSpansInTurn_ = areWide && shareSources() && imageBytes() > static_cast<double>(l2CacheBytes()) / 2 &&
                      staysInL2(packedFloats_ * sizeof(float));
    if (areSpansInTurn_) {
      describe(groupsInTurn);
      const double bytesOfPart = static_cast<double>(l2CacheBytes()) / 4;
      tileParts_ = std::max(tileParts_, std::min(tiles, static_cast<std::size_t>(imageBytes() / bytesOfPart) + 1));
    }
    const std::size_t tasks = static_cast<std::size_t>(shape().batch) * cut_.spans.size();
    tileParts_ =
        balancedCut({tasks, std::max(tiles, tileParts_), 1, tileParts_}, static_cast<std::size_t>(d.maxWorkers))
            .rowParts;
  }

  std::size_t workspaceBytes() const override { return biasWorkspaceBytes(description_); }
  std::size_t packedFloats() const override { return packedFloats_; }
  double predictedSeconds() const override {
    const double floats = double(sourceBlocks()) * static_cast<double>(sourcePlane()) +
                          double(targetBlocks()) * static_cast<double>(targetPlane());
    const double bytes = floats * sizeof(float) * shape().batch;
    // With strides the gradient of the input is written phase by phase, in no order that hardware looks ahead in.
    const bool hasPhases = !isForward_ && (shape().strideHeight > 1 || shape().strideWidth > 1);
    // Forward with strides hardware does not look ahead either, and kernels wait for what they read, unless they fetch
    // it before.
    const bool isFetched = fetchesInput_ && shape().strideWidth == 2 && cut_.steps.front().isPermuted;
    if (isForward_ && shape().strideWidth > 1 && !isFetched) {
      return (cycles_ * shape().batch + transferCycles(bytes, 6)) / assumedHertz;
    }
    if (hasPhases && hasFarCaches()) {  // which are not hidden then
      const double moved = isNonTemporal_ ? streamedCycles(bytes, 14) : transferCycles(bytes, bytesOfPhases());
      return (cycles_ * shape().batch + moved) / assumedHertz;
    }
    // Short vectors are read, and written, half a line of the cache at a time.
    const double bytesOfMemory = kernels_.fmaLanes < blockLength ? 8 : 9;
    // Nor do they wait for lines that are stored past the caches, whole ones of each pixel.
    const bool isShortStream = isNonTemporal_ && 2 * kernels_.fmaLanes == blockLength;
    return overlappedCycles(cycles_ * shape().batch,
                            transferCycles(bytes, hasPhases && !isShortStream ? bytesOfPhases() : bytesOfMemory)) /
           assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (std::size_t i = 0; i < cut_.spans.size(); ++i) {
      const GroupSpan& span = cut_.spans[i];
      float* to = packed + packed_[i];
      for (const Part& part : parts_[static_cast<std::size_t>(span.steps)]) {
        part.driver.pack(to, [&](float* row, int targetBlock, int sourceBlock, int tap, int value) {
          const int kernelTap = part.taps[static_cast<std::size_t>(tap)];
          const GroupWeights::Place* const places = weights_.at(i, targetBlock, sourceBlock, value);
          for (int lane = 0; lane < blockLength; ++lane) {
            const GroupWeights::Place& place = places[lane];
            row[lane] = place.first < 0 ? 0.0F : weights[place.first + std::ptrdiff_t{place.tap} * kernelTap];
          }
        });
        to += part.driver.packedFloats();
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    const float* const from = isForward_ ? buffers.input : buffers.outputGradient;
    const float* const addend =
        description_.residual ? buffers.residual : (description_.accumulate ? buffers.result : nullptr);
    const std::size_t ofImage = cut_.spans.size() * tileParts_;
    executor.forEach(static_cast<std::size_t>(shape().batch) * ofImage, [&](std::size_t index, int) {
      const auto image = static_cast<std::ptrdiff_t>(index / ofImage);
      const std::size_t place = index % ofImage, spans = cut_.spans.size();
      const std::size_t spanIndex = areSpansInTurn_ ? place % spans : place / tileParts_;
      const std::size_t tilePart = areSpansInTurn_ ? place / spans : place % tileParts_;
      const GroupSpan& span = cut_.spans[spanIndex];
      const std::ptrdiff_t target = (image * targetBlocks() + span.firstTarget) * targetPlane();
      const std::ptrdiff_t source = (image * sourceBlocks() + span.firstSource) * sourcePlane();
      const float* packed = buffers.packedWeights + packed_[spanIndex];
      for (const Part& part : parts_[static_cast<std::size_t>(span.steps)]) {
        const TaskPart tiles = partOf(part.driver.tiles(), tileParts_, tilePart);
        const std::ptrdiff_t to = target + part.output;
        part.driver.run({.input = from + source,
                         .packed = packed,
                         .bias = bias != nullptr ? bias + span.firstTarget * blockLength : nullptr,
                         .addend = addend != nullptr ? addend + to : nullptr,
                         .output = buffers.result + to,
                         .images = 1,
                         .inImage = 0,
                         .outImage = 0,
                         .firstTile = tiles.from,
                         .endTile = tiles.to,
                         .firstGroup = 0,
                         .endGroup = part.driver.groups().size(),
                         .activation = description_.activation,
                         .lanes = part.lanes.empty() ? nullptr : part.lanes.data(),
                         .offsets = part.offsets.data(),
                         .fetchesInput = fetchesInput_,
                         .isNonTemporal = isNonTemporal_});
        packed += part.driver.packedFloats();
      }
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  std::ptrdiff_t targetBlocks() const { return isForward_ ? shape().outBlocks() : shape().inBlocks(); }
  std::ptrdiff_t sourceBlocks() const { return isForward_ ? shape().inBlocks() : shape().outBlocks(); }
  std::ptrdiff_t targetPlane() const { return isForward_ ? shape().outPlane() : shape().inPlane(); }
  std::ptrdiff_t sourcePlane() const { return isForward_ ? shape().inPlane() : shape().outPlane(); }

  /// Of what is read and written of an image.
  double imageBytes() const {
    return (double(sourceBlocks()) * static_cast<double>(sourcePlane()) +
            double(targetBlocks()) * static_cast<double>(targetPlane())) *
           sizeof(float);
  }
  /// Whether blocks of results see the same blocks, which groups that begin with blocks do not.
  bool shareSources() const {
    for (std::size_t i = 1; i < cut_.spans.size(); ++i) {
      const GroupSpan& before = cut_.spans[i - 1];
      const auto sources = cut_.steps[static_cast<std::size_t>(before.steps)].counts.size();
      if (before.firstSource + static_cast<int>(sources) > cut_.spans[i].firstSource) return true;
    }
    return false;
  }

  Description description_;
  const KernelSet& kernels_;
  bool isForward_, isNonTemporal_, fetchesInput_;
  bool areSpansInTurn_ = false;  // all go through some tiles before the next ones, as they read the same lines
  GroupCut cut_;
  GroupWeights weights_;
  std::vector<std::vector<Part>> parts_;  // of every kind of steps
  std::vector<std::size_t> packed_;       // where the weights of every span begin
  std::size_t packedFloats_ = 0, tileParts_ = 1;
  double cycles_ = 0;
};

}  // namespace

bool servesGrouped(const Description& d) {
  return d.shape.groups > 1 && d.pass != taccConvBackwardWeights && d.inputLayout == taccLayoutNchw16c;
}

std::unique_ptr<ConvPlan> makeGrouped(const Description& d, const KernelSet& kernels) {
  if (d.pass == taccConvBackwardData) {
    GroupCut cut = cutGroups({d.shape.groups, d.shape.inPerGroup(), d.shape.outPerGroup()}, kernels);
    if (canSpreadGroups(d, cut)) return makeGroupedSpread(d, kernels, std::move(cut));
  }
  return std::make_unique<Grouped>(d, kernels);
}

}  // namespace tacc::conv
