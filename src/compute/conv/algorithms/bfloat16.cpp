// Activations in bfloat16: some images at a time are converted into the workspace, run through a float32 plan of any
// algorithm, and converted back. As many as fit into the L2 cache, so that memory sees bfloat16 only. Where weights may
// be rounded, and the CPU multiplies bfloat16, in vectors or on AMX's tiles, what is read is not converted, and results
// of sums that are made at once are rounded as they are written. So is what channel-wise kernels for bfloat16 serve.
//
// Gradients of weights are sums of products of what is bfloat16 anyway. Where the CPU multiplies it in vectors both
// tensors are copied in pairs of pixels in place of being widened (pixel_pairs.hpp), which takes as long or half of it.
#include <algorithm>
#include <optional>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/batch_parts.hpp"
#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/algorithms/pixel_pairs.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

/// Of both float32 tensors of the images at a time, where they are that small. It is no matter of the CPU at hand, nor
/// of the workers: the gradient of the weights is summed over images in this order.
constexpr std::size_t imageBytesAtOnce = 1 << 20;

/// Numbers that one task converts.
constexpr std::size_t numbersAtOnce = 16 * 1024;

std::size_t inFloats(const Description& d, int images) {
  return tensorFloats(d.inputLayout, images, d.shape.inChannels, d.shape.height, d.shape.width);
}
std::size_t outFloats(const Description& d, int images) {
  return tensorFloats(d.outputLayout, images, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth);
}

/// The largest divisor of the batch whose images stay within imageBytesAtOnce.
int imagesAtOnce(const Description& d) {
  const std::size_t image = (inFloats(d, 1) + outFloats(d, 1)) * sizeof(float);
  return imagesOfPart(d.shape.batch, image, imageBytesAtOnce);
}

/// Of that many bytes of float32, between the caches.
constexpr double conversionSeconds(double bytes) {
  constexpr double bytesPerSecond = 1.5e10;
  return bytes / bytesPerSecond;
}

constexpr std::size_t alignedBytes(std::size_t floats) { return (floats * sizeof(float) + 63) / 64 * 64; }

class Bfloat16Plan final : public ConvPlan {
 public:
  /// `description` is of all images, and says whether the plans read pairs of bfloat16.
  Bfloat16Plan(const Description& description, int images, std::unique_ptr<ConvPlan> first,
               std::unique_ptr<ConvPlan> next, const KernelSet& kernels)
      : ConvPlan(first->kernel() + (description.pairs.areRead ? " bf16 pairs" : " bf16")),
        description_(description),
        images_(images),
        first_(std::move(first)),
        next_(std::move(next)),
        kernels_(layers::kernelTable(kernels.vectors)) {
    if (!joinsPairs()) return;
    Description part = description;
    part.shape.batch = images;
    pairs_.emplace(part, *pairKernels(kernels));
  }

  std::size_t workspaceBytes() const override { return innerBytes() + inBytes() + outBytes(); }
  std::size_t packedFloats() const override { return first_->packedFloats(); }
  void pack(const float* weights, float* packed) const override { first_->pack(weights, packed); }
  double reorderSeconds() const override { return first_->reorderSeconds() * parts(); }
  double predictedSeconds() const override {
    return first_->predictedSeconds() * parts() +
           conversionSeconds(static_cast<double>(inBytes() + outBytes()) * parts());
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const bytes = static_cast<std::byte*>(buffers.workspace);
    auto* const in = reinterpret_cast<float*>(bytes + innerBytes());
    auto* const out = reinterpret_cast<float*>(bytes + innerBytes() + inBytes());
    const bool isForward = description_.pass == taccConvForward;
    const bool isData = description_.pass == taccConvBackwardData;
    const bool readsPairs = description_.pairs.areRead && (isForward || isData);
    for (int part = 0; part < parts(); ++part) {
      const std::size_t inAt = inFloats(description_, images_) * static_cast<std::size_t>(part);
      const std::size_t outAt = outFloats(description_, images_) * static_cast<std::size_t>(part);
      Buffers inner = buffers;
      inner.workspaceBytes = innerBytes();
      inner.input = readsPairs ? buffers.input + inAt / 2 : in;
      inner.outputGradient = readsPairs ? buffers.outputGradient + outAt / 2 : out;
      inner.residual = out;
      if (joinsPairs()) {
        pairs_->joinInput(reinterpret_cast<const std::uint16_t*>(buffers.input) + inAt, in, executor);
        pairs_->joinGradient(reinterpret_cast<const std::uint16_t*>(buffers.outputGradient) + outAt, out, executor);
      } else {
        if (!isData && !readsPairs) fetch(buffers.input, inAt, in, inFloats(description_, images_), executor);
        if (!isForward && !readsPairs)
          fetch(buffers.outputGradient, outAt, out, outFloats(description_, images_), executor);
      }
      if (description_.residual) fetch(buffers.residual, outAt, out, outFloats(description_, images_), executor);
      if (isForward) {
        inner.result = out;
      } else if (isData) {
        inner.result = in;
        if (description_.accumulate) fetch(buffers.result, inAt, in, inFloats(description_, images_), executor);
      }
      (part == 0 || next_ == nullptr ? first_ : next_)->run(inner, executor);
      if (isForward) deliver(out, buffers.result, outAt, outFloats(description_, images_), executor);
      if (isData) deliver(in, buffers.result, inAt, inFloats(description_, images_), executor);
    }
  }

 private:
  int parts() const { return description_.shape.batch / images_; }
  bool joinsPairs() const { return description_.pairs.areRead && description_.pass == taccConvBackwardWeights; }
  std::size_t innerBytes() const {
    return std::max(first_->workspaceBytes(), next_ != nullptr ? next_->workspaceBytes() : 0);
  }
  /// Of what is converted.
  std::size_t inBytes() const {
    const bool isRead = description_.pairs.areRead && description_.pass == taccConvForward;
    if (joinsPairs()) return alignedBytes(pairs_->inputFloats());
    return isRead ? 0 : alignedBytes(inFloats(description_, images_));
  }
  std::size_t outBytes() const {
    const bool isRead = description_.pairs.areRead && description_.pass == taccConvBackwardData;
    if (joinsPairs()) return alignedBytes(pairs_->gradientFloats());
    return isRead ? 0 : alignedBytes(outFloats(description_, images_));
  }

  /// `from` and `to` are tensors of bfloat16; `at` is a place in them.
  void fetch(const float* from, std::size_t at, float* to, std::size_t count, const TaskExecutor& executor) const {
    const auto* const numbers = reinterpret_cast<const std::uint16_t*>(from) + at;
    forEachPart(count, executor, [&](TaskPart part) {
      kernels_.fromBfloat16(numbers + part.from, to + part.from, part.to - part.from, false);
    });
  }
  void deliver(const float* from, float* to, std::size_t at, std::size_t count, const TaskExecutor& executor) const {
    auto* const numbers = reinterpret_cast<std::uint16_t*>(to) + at;
    forEachPart(count, executor, [&](TaskPart part) {
      kernels_.toBfloat16(from + part.from, numbers + part.from, part.to - part.from, false);
    });
  }
  template <class Body>
  static void forEachPart(std::size_t count, const TaskExecutor& executor, const Body& body) {
    const std::size_t tasks = (count + numbersAtOnce - 1) / numbersAtOnce;
    executor.forEach(tasks, [&](std::size_t index, int) { body(partOf(count, tasks, index)); });
  }

  Description description_;
  int images_;  // at a time
  std::unique_ptr<ConvPlan> first_;
  std::unique_ptr<ConvPlan> next_;  // of the weights' gradient: adds to what the first one gave
  const layers::LayerKernels& kernels_;
  std::optional<PixelPairs> pairs_;  // of the weights' gradient, where it reads such
};

/// Whether a result's sum is made in one go whatever the tiles are.
bool sumsAtOnce(const Description& d) {
  const Shape& s = d.shape;
  const int channels = d.pass == taccConvForward ? s.inPerGroup() : s.outPerGroup();
  const std::int64_t rows = std::int64_t{s.kernelHeight} * s.kernelWidth * ceilDivide(channels, 2);
  return rows * maxBlocks * blockLength * std::int64_t{sizeof(float)} <= std::int64_t{weightBytesAtOnce};
}

constexpr std::string_view nameOfPairs = "direct";

/// The direct algorithm with pairs; no plan where it does not serve the description, or another was asked for.
ChosenPlan makePairPlan(const Description& given, Pairs pairs, const KernelSet& kernels) {
  const KernelSet* const tiles = pairKernels(kernels);
  const bool isGradient = given.pass == taccConvBackwardWeights;
  const bool mayRound = given.roundsWeights || isGradient;
  if (!mayRound || tiles == nullptr || (!given.algorithm.empty() && given.algorithm != nameOfPairs)) return {};
  Description description = withKernels(given, *tiles);
  // Cores of Intel's start fewer than one multiply-add of pairs a cycle.
  if (coreModel().pairProducts < 1 && given.algorithm.empty()) return {};
  description.pairs = pairs;
  const Shape& s = given.shape;
  if (isGradient) {
    const bool isOfOnePixel = double(s.batch) * s.outHeight * s.outWidth == 1;
    if (isOfOnePixel || !servesDirectBackwardWeights(description)) return {};
    return {nameOfPairs, makeDirectBackwardWeights(PixelPairs(description, *tiles).joined(), *tiles)};
  }
  // Pixels of NHWC follow each other: none may end within a float.
  const auto arePairs = [](taccLayout_t layout, int channels) { return layout != taccLayoutNhwc || channels % 2 == 0; };
  if (servesDirectForward(description) && arePairs(given.inputLayout, s.inChannels)) {
    return {nameOfPairs, makeDirectForward(description, *tiles)};
  }
  if (servesDirectBackwardData(description) && arePairs(given.outputLayout, s.outChannels)) {
    return {nameOfPairs, makeDirectBackwardData(description, *tiles)};
  }
  return {};
}

/// The same on AMX's tiles, where sums are made at once whatever the shape.
ChosenPlan makeTilePlan(const Description& given, const KernelSet& kernels) {
  constexpr std::string_view name = "split";
  const bool isGradient = given.pass == taccConvBackwardWeights;
  const bool mayRound = given.roundsWeights || isGradient;
  if (!mayRound || (!given.algorithm.empty() && given.algorithm != name)) return {};
  Description description = withKernels(given, kernels);
  description.pairs = {.areRead = true, .areWritten = true};
  if (isGradient) {
    if (!servesSplitGradient(description)) return {};
    return {name, makeSplitGradient(description, kernels)};
  }
  if (!servesSplitProducts(description)) return {};
  return {name, makeSplitProducts(description, kernels)};
}

/// Channel-wise, where tensors are read and written as they lie; weights may stay float32.
ChosenPlan makeDepthwisePlan(const Description& given, const KernelSet& kernels) {
  constexpr std::string_view name = "depthwise";
  const KernelSet* const ofNumbers = bf16DepthwiseKernels(kernels);
  if (ofNumbers == nullptr || (!given.algorithm.empty() && given.algorithm != name)) return {};
  Description description = withKernels(given, *ofNumbers);
  description.pairs = {.areRead = true, .areWritten = true};
  if (servesDepthwise(description)) return {name, makeDepthwise(description, *ofNumbers)};
  if (servesDepthwiseGradients(description)) return {name, makeDepthwiseGradients(description, *ofNumbers)};
  return {};
}

bool isCheaper(const ChosenPlan& one, double seconds) {
  return one.plan != nullptr && one.plan->predictedSeconds() < seconds;
}

}  // namespace

ChosenPlan makeBfloat16Plan(const Description& given, const KernelSet& kernels) {
  Description description = given;
  Description inner = description;
  inner.isBfloat16 = false;
  inner.shape.batch = imagesAtOnce(description);
  ChosenPlan whole = makeTilePlan(description, kernels);
  takeCheaper(whole, makeDepthwisePlan(description, kernels));
  // What is named may serve more in bfloat16 than in float32.
  if (!given.algorithm.empty() && whole.plan != nullptr) return whole;
  ChosenPlan first = makePlan(inner, kernels);
  // By its name, also where it is slower.
  const bool isForced = given.algorithm == nameOfPairs && hasTwoWideUnits(kernels);
  const Pairs pairs{.areRead = true, .areWritten = false};
  const auto makePairs = [pairs](const Description& part, const KernelSet& set) {
    return makePairPlan(part, pairs, set);
  };
  if (description.pass != taccConvBackwardWeights && sumsAtOnce(description)) {
    takeCheaper(whole, makePairPlan(description, {.areRead = true, .areWritten = true}, kernels));
  } else {
    ChosenPlan part = makePairs(inner, kernels);
    if (isForced ? part.plan != nullptr : isCheaper(part, first.plan->predictedSeconds())) {
      first = std::move(part);
      description.pairs = pairs;
    }
  }
  if (isForced && whole.plan != nullptr) return whole;
  std::unique_ptr<ConvPlan> next = description.pairs.areRead ? makeNextPart(inner, first, kernels, makePairs)
                                                             : makeNextPart(inner, first, kernels, makePlan);
  ChosenPlan parts{first.algorithm, std::make_unique<Bfloat16Plan>(description, inner.shape.batch,
                                                                   std::move(first.plan), std::move(next), kernels)};
  return isCheaper(whole, parts.plan->predictedSeconds()) ? std::move(whole) : std::move(parts);
}

}  // namespace tacc::conv
