// The direct convolution, backward to the input. The gradient of the input is a correlation of the output's gradient
// too. With stride s, input pixels whose coordinates are equal modulo s see the same taps: each such phase is a
// correlation of stride 1 that writes every s-th pixel, and nothing is multiplied by the zeros between.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

struct Phase {
  std::ptrdiff_t output;  // of its first pixel, in floats
  std::vector<int> taps;  // r * kernelWidth + s
  DirectDriver driver;
  std::size_t packed;  // where its weights begin
};

/// The phase of the most pixels that any tap finds.
const Phase& leadOf(const std::vector<Phase>& phases) {
  const auto lead = std::find_if(phases.begin(), phases.end(), [](const Phase& phase) { return !phase.taps.empty(); });
  return lead == phases.end() ? phases.front() : *lead;
}

/// For one image by the model; `ofTaps`: of those that have some.
double cyclesOf(const std::vector<Phase>& phases, bool ofTaps = false) {
  double cycles = 0;
  for (const Phase& phase : phases) cycles += ofTaps && phase.taps.empty() ? 0 : phase.driver.cycles();
  return cycles;
}

/// Parts of an image such that what a group of outputs writes of one is in the L2 cache until all phases have written
/// their pixels; 1 where the weights, which every part reads, would not be in it.
std::size_t partsForPhases(const std::vector<Phase>& phases, const Shape& s) {
  constexpr std::ptrdiff_t bytesOfPart = 256 * 1024;
  std::size_t weights = 0;
  for (const Phase& phase : phases) weights += phase.driver.packedFloats() * sizeof(float);
  if (phases.size() == 1 || !staysInL2(weights)) return 1;
  const std::ptrdiff_t ofGroup =
      s.inPlane() * leadOf(phases).driver.groups().front().blocks * static_cast<std::ptrdiff_t>(sizeof(float));
  const int lines = ceilDivide(s.height, s.strideHeight);
  return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(ofGroup / bytesOfPart, 1, lines));
}

/// Whether all phases compute the same groups of outputs together; those without taps have a group for each block.
bool haveSameGroups(const std::vector<Phase>& phases) {
  const std::size_t groups = leadOf(phases).driver.groups().size();
  return std::all_of(phases.begin(), phases.end(), [&](const Phase& phase) {
    return phase.taps.empty() ? phase.driver.groups().front().blocks == 1 : phase.driver.groups().size() == groups;
  });
}

class DirectBackwardData final : public ConvPlan {
 public:
  DirectBackwardData(const Description& description, const KernelSet& kernels, std::vector<Phase> phases)
      : ConvPlan(std::string(kernels.vectors) + " " + leadOf(phases).driver.tileName() + pairsText(description.pairs)),
        description_(description),
        phases_(std::move(phases)),
        lead_(static_cast<std::size_t>(&leadOf(phases_) - phases_.data())),
        // The first phase has the most pixels.
        partition_(phases_[lead_].driver, shape().lines(), shape().groups,
                   ceilDivide(shape().height, shape().strideHeight) * ceilDivide(shape().width, shape().strideWidth),
                   description.maxWorkers, partsForPhases(phases_, shape())),
        haveSameGroups_(phases_.size() > 1 && haveSameGroups(phases_)),
        fetchesInput_(comesFromMemory(phases_[lead_].driver, shape())),
        isNonTemporal_(isNonTemporalProduct(description) && !description.pairs.areWritten) {
    for (Phase& phase : phases_) {
      hasEmptyPhases_ = hasEmptyPhases_ || phase.taps.empty();
      phase.packed = packedFloats_;
      packedFloats_ += phase.driver.packedFloats() * static_cast<std::size_t>(shape().groups);
    }
    if (partition_.areGroupsInTurn()) describe(groupsInTurn);
    if (clearsFirst()) describe("clears at once");
  }

  std::size_t packedFloats() const override { return packedFloats_; }
  double predictedSeconds() const override {
    // Far from the caches, zeros that are written once more cost what they do anywhere.
    const bool isCleared = clearsFirst() && !hasFarCaches();
    double ofImage = cyclesOf(phases_, isCleared);
    if (phases_.size() == 1) ofImage = std::max(ofImage, phases_.front().driver.storingCycles());
    double cycles = ofImage * double(shape().lines()) * shape().groups;
    if (phases_.size() > 1) {
      const double bytes =
          double(shape().batch) * shape().inBlocks() * static_cast<double>(shape().inPlane()) * sizeof(float);
      if (isCleared) {  // pixels of a few phases are written over
        cycles += partOfTaps() * transferCycles(bytesOfImages(), bytesOfPhases());
      } else if (isNonTemporal_ && hasFarCaches()) {
        cycles = streamedPhaseCycles(cycles, bytes);
      } else {  // phase by phase, lines of the cache are written in no order that hardware looks ahead in
        cycles += isNonTemporal_ ? streamedCycles(bytes, bytesOfPhases()) : transferCycles(bytes, bytesOfPhases());
      }
    } else if (isNonTemporal_ && hasFarCaches() && description_.inputLayout == taccLayoutNhwc) {
      constexpr double bytesOfMemory = 12;  // some blocks of each pixel at a time
      cycles = overlappedCycles(cycles, streamedCycles(double(shape().batch) * static_cast<double>(shape().inPlane()) *
                                                           shape().inBlocks() * sizeof(float),
                                                       bytesOfMemory));
    }
    if (phases_.size() == 1)
      cycles = std::max(0.0, cycles + nearMemoryCycles(description_, cycles) - nearSingleCycles(description_));
    return (cycles + apartCycles() + cutGroupCycles(description_)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (const Phase& phase : phases_) {
      for (int group = 0; group < shape().groups; ++group) {
        phase.driver.pack(
            packed + phase.packed + phase.driver.packedFloats() * static_cast<std::size_t>(group),
            [&](float* to, int inBlock, int outBlock, int tap, int value) {
              const int kernelTap = phase.taps[static_cast<std::size_t>(tap)];
              const WeightBlock block = weightBlock(shape(), description_.weightLayout, group, outBlock, inBlock,
                                                    kernelTap / shape().kernelWidth, kernelTap % shape().kernelWidth);
              packValue(to, value, block.outs, description_.pairs.areRead, [&](int out, int in) {
                return in < block.ins ? weights[block.base + out * block.outStep + in * block.inStep] : 0.0F;
              });
            });
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    std::size_t cleared = 0;  // images
    if (clearsFirst() && description_.maxWorkers > 1) {
      clearAll(buffers, executor);
      cleared = static_cast<std::size_t>(shape().batch);
    }
    // All phases of a part of the image together: what they write lies between each other's pixels.
    executor.forEach(partition_.tasks(), [&](std::size_t index, int) {
      const TaskPart outputs = partition_.task(phases_[lead_].driver, index).outputs;
      if (clearsFirst() && cleared < static_cast<std::size_t>(shape().batch)) {  // on the only worker
        const std::size_t end = partition_.task(phases_[lead_].driver, index).images.to;
        if (end > cleared) clearImages(buffers, {cleared, end});
        cleared = std::max(cleared, end);
      }
      if (!haveSameGroups_) {
        for (const Phase& phase : phases_)
          runPhase(buffers, phase, partition_.task(phase.driver, index), fetchesInput_);
        return;
      }
      for (std::size_t group = outputs.from; group < outputs.to; ++group) {
        for (const Phase& phase : phases_) {
          TaskPartition::Task task = partition_.task(phase.driver, index);
          const OutGroup& of = phases_[lead_].driver.groups()[group];
          const auto block = static_cast<std::size_t>(of.firstBlock);
          task.outputs = phase.taps.empty() ? TaskPart{block, block + static_cast<std::size_t>(of.blocks)}
                                            : TaskPart{group, group + 1};
          runPhase(buffers, phase, task, fetchesInput_ && group == outputs.from);
        }
      }
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }

  /// Past far caches stores are waited for less while there is something to multiply, and more where nearly all of them
  /// are zeros between what is multiplied. Fitted to drawn layers.
  double streamedPhaseCycles(double cycles, double bytes) const {
    constexpr double ofProducts = 0.9, ofProductsBetweenZeros = 1.6;
    constexpr int wideStride = 3;  // whose phases write lines of the cache that lie further apart
    const double bytesOfMemory = shape().strideWidth < wideStride ? 14 : 11;
    const auto multiplied =
        std::count_if(phases_.begin(), phases_.end(), [](const Phase& phase) { return !phase.taps.empty(); });
    return (multiplied == 1 ? ofProductsBetweenZeros : ofProducts) * cycles + streamedCycles(bytes, bytesOfMemory);
  }

  /// Whether the result is cleared as it lies before anything is added, for pixels that no tap finds: in NHWC those of
  /// a group of outputs are parts of lines of the cache. What is stored non-temporally is written once.
  bool clearsFirst() const {
    return hasEmptyPhases_ && description_.inputLayout == taccLayoutNhwc && !description_.accumulate &&
           !description_.pairs.areWritten &&
           (!isNonTemporal_ || !hasWholeBlocks(description_.inputLayout, shape().inPerGroup()));
  }
  std::ptrdiff_t imageFloats() const {
    return std::ptrdiff_t{shape().height} * shape().width * shape().inChannels;  // in NHWC
  }
  /// Of all, in NHWC.
  double bytesOfImages() const {
    return double(shape().batch) * static_cast<double>(imageFloats()) * static_cast<double>(sizeof(float));
  }
  /// The part of the phases that any tap finds.
  double partOfTaps() const {
    const auto found =
        std::count_if(phases_.begin(), phases_.end(), [](const Phase& phase) { return !phase.taps.empty(); });
    return static_cast<double>(found) / static_cast<double>(phases_.size());
  }
  void clearImages(const Buffers& buffers, TaskPart images) const {
    std::fill(buffers.result + static_cast<std::ptrdiff_t>(images.from) * imageFloats(),
              buffers.result + static_cast<std::ptrdiff_t>(images.to) * imageFloats(), 0.0F);
  }
  void clearAll(const Buffers& buffers, const TaskExecutor& executor) const {
    const auto floats = static_cast<std::size_t>(shape().batch * imageFloats());
    const auto parts = static_cast<std::size_t>(4 * description_.maxWorkers);
    executor.forEach(parts, [&](std::size_t index, int) {
      const TaskPart part = partOf(floats, parts, index);
      std::fill(buffers.result + part.from, buffers.result + part.to, 0.0F);
    });
  }

  /// For zeros that no tap finds, in NHWC: all at once, or 16 channels of a pixel at a time, with the other channels
  /// between them.
  double apartCycles() const {
    if (description_.inputLayout != taccLayoutNhwc) return 0;
    constexpr double ofBlock = 12, clearedBytes = 32, bytesOfMemory = 9;
    if (clearsFirst()) {
      const double cleared = bytesOfImages() / clearedBytes, moved = transferCycles(bytesOfImages(), bytesOfMemory);
      return hasFarCaches() ? cleared + moved : std::max(cleared, moved);
    }
    const double pixels = double(shape().batch) * shape().height * shape().width;
    return ofBlock * pixels * shape().inBlocks() * (1 - partOfTaps());
  }

  void runPhase(const Buffers& buffers, const Phase& phase, const TaskPartition::Task& task, bool fetchesInput) const {
    if (phase.taps.empty() && clearsFirst()) return;
    const Shape& s = shape();
    const BlockSteps in = stepsOfPairs(blockSteps(description_.inputLayout, s.inChannels, s.height, s.width),
                                       description_.pairs.areWritten);
    const BlockSteps out = stepsOfPairs(blockSteps(description_.outputLayout, s.outChannels, s.outHeight, s.outWidth),
                                        description_.pairs.areRead);
    const std::ptrdiff_t inGroup = groupStep(in, description_.inputLayout, s.inPerGroup());
    const std::ptrdiff_t outGroup = groupStep(out, description_.outputLayout, s.outPerGroup());
    const auto group = static_cast<std::ptrdiff_t>(task.channelGroup);
    const auto image = static_cast<std::ptrdiff_t>(task.images.from);
    const std::ptrdiff_t gradient = image * out.image + group * outGroup;
    float* const result = buffers.result + image * in.image + group * inGroup + phase.output;
    phase.driver.run({.input = buffers.outputGradient + gradient,
                      .packed = buffers.packedWeights + phase.packed +
                                group * static_cast<std::ptrdiff_t>(phase.driver.packedFloats()),
                      .bias = nullptr,
                      .addend = description_.accumulate ? result : nullptr,
                      .output = result,
                      .images = static_cast<int>(task.images.to - task.images.from),
                      .inImage = out.image,
                      .outImage = in.image,
                      .firstTile = task.tiles.from,
                      .endTile = task.tiles.to,
                      .firstGroup = task.outputs.from,
                      .endGroup = task.outputs.to,
                      .activation = taccActivationNone,
                      .weightsEnd = weightsFromMemory(shape(), buffers.packedWeights, packedFloats_),
                      .fetchesInput = fetchesInput,
                      .isNonTemporal = isNonTemporal_ && isAligned(buffers.result),
                      .writesPairs = description_.pairs.areWritten});
  }

  Description description_;
  std::vector<Phase> phases_;
  std::size_t lead_;
  TaskPartition partition_;
  bool haveSameGroups_, hasEmptyPhases_ = false;
  bool fetchesInput_, isNonTemporal_;
  std::size_t packedFloats_ = 0;
};

std::vector<Phase> phasesOf(const Description& d, const KernelSet& kernels, bool areTurned) {
  std::vector<Phase> phases;
  const Shape& s = d.shape;
  std::vector<BackwardPhase> all = backwardPhases(s, d.inputLayout, d.outputLayout, d.pairs);
  double taps = 0;
  for (const BackwardPhase& phase : all) taps += static_cast<double>(phase.taps.size());
  const int pixels = ceilDivide(s.height, s.strideHeight) * ceilDivide(s.width, s.strideWidth);
  for (BackwardPhase& phase : all) {
    phase.driver.weightBytes = taps * s.groups * s.outPerGroup() * phase.driver.outBlocks * blockLength * sizeof(float);
    phase.driver.imagesOfWeights = imagesOfTask(s.lines(), pixels);
    DirectShape shape = areTurned ? turned(std::move(phase.driver)) : std::move(phase.driver);
    phases.push_back({phase.output, std::move(phase.taps), DirectDriver(std::move(shape), kernels), 0});
  }
  return phases;
}

/// Along the lines, or along the columns of narrow images.
std::vector<Phase> cheapestPhases(const Description& d, const KernelSet& kernels) {
  std::vector<Phase> ofLines = phasesOf(d, kernels, false);
  const bool isOfPairs = d.pairs.areRead || d.pairs.areWritten;
  if (isOfPairs || !isNarrow(backwardPhases(d.shape, d.inputLayout, d.outputLayout).front().driver)) return ofLines;
  std::vector<Phase> ofColumns = phasesOf(d, kernels, true);
  return cyclesOf(ofColumns) < cyclesOf(ofLines) ? std::move(ofColumns) : std::move(ofLines);
}

}  // namespace

bool servesDirectBackwardData(const Description& d) {
  return d.pass == taccConvBackwardData && hasBlockSteps(d.outputLayout) &&
         writesInPlace(d.inputLayout, d.shape.inChannels, d.pairs) && findsGroups(d);
}

std::unique_ptr<ConvPlan> makeDirectBackwardData(const Description& d, const KernelSet& kernels) {
  return std::make_unique<DirectBackwardData>(d, kernels, cheapestPhases(d, kernels));
}

}  // namespace tacc::conv
