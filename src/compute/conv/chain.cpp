#include "compute/conv/chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

#include "compute/conv/cost.hpp"
#include "compute/layers/kernels.hpp"
#include "core/error.hpp"

namespace tacc::conv {
namespace {

struct ChainAlgorithm {
  std::string_view name;
  bool (*serves)(const Chain&);
  std::unique_ptr<ChainPlan> (*make)(const Chain&, const KernelSet&);
};

/// Up to the end of the last line of the cache.
constexpr std::size_t wholeLines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Bytes of what is between them, all of it.
std::size_t bytesBetween(const Description& first) {
  const Shape& s = first.shape;
  const std::size_t floats = tensorFloats(taccLayoutNchw16c, s.batch, s.outChannels, s.outHeight, s.outWidth);
  return wholeLines(floats * sizeof(float) / (first.isBfloat16 ? 2 : 1));
}

/// What is between them is written and read again. From memory, the models of both convolutions know of a part of that.
constexpr double bytesBetweenACycle = 24;

/// One plan behind the other.
class InTurn final : public ChainPlan {
 public:
  InTurn(const Chain& chain, ChosenPlan first, ChosenPlan second)
      : ChainPlan(
            fmt::format("{} {}, {} {}", first.algorithm, first.plan->kernel(), second.algorithm, second.plan->kernel()),
            chain),
        first_(std::move(first.plan)),
        second_(std::move(second.plan)),
        weights_(placeWeights(chain.first, first_->packedFloats(), second_->packedFloats())) {}

  std::size_t workspaceBytes() const override {
    return bytesBetween(chain().first) + std::max(first_->workspaceBytes(), second_->workspaceBytes());
  }
  std::size_t packedFloats() const override { return weights_.all; }
  double predictedSeconds() const override {
    const double between = static_cast<double>(bytesBetween(chain().first));
    const bool leavesCaches = layers::isTooLargeForCaches((bytesOfInput() + bytesBetween(chain().first)) / 2);
    return first_->predictedSeconds() + second_->predictedSeconds() +
           (leavesCaches ? between / bytesBetweenACycle / assumedHertz : 0);
  }
  double reorderSeconds() const override { return first_->reorderSeconds() + second_->reorderSeconds(); }

  void packBoth(const float* firstWeights, const float* firstBias, const float* secondWeights,
                float* packed) const override {
    first_->pack(firstWeights, packed);
    packChainBias(chain().first, firstBias, packed + weights_.bias);
    second_->pack(secondWeights, packed + weights_.second);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const std::size_t bytes = bytesBetween(chain().first);
    auto* const between = static_cast<float*>(buffers.workspace);
    Buffers first{};
    first.input = buffers.input;
    first.packedWeights = buffers.packedWeights;
    first.bias = chain().first.bias ? buffers.packedWeights + weights_.bias : nullptr;
    first.result = between;
    first.workspace = static_cast<char*>(buffers.workspace) + bytes;
    first.workspaceBytes = buffers.workspaceBytes - bytes;
    first_->run(first, executor);
    Buffers second = buffers;
    second.input = between;
    second.packedWeights += weights_.second;
    second.workspace = first.workspace;
    second.workspaceBytes = first.workspaceBytes;
    second_->run(second, executor);
  }

 private:
  /// Of the first convolution, in float32.
  std::size_t bytesOfInput() const {
    const Shape& s = chain().first.shape;
    return tensorFloats(taccLayoutNchw16c, s.batch, s.inChannels, s.height, s.width) * sizeof(float);
  }

  std::unique_ptr<ConvPlan> first_, second_;
  ChainWeights weights_;
};

bool servesInTurn(const Chain&) { return true; }

std::unique_ptr<ChainPlan> makeInTurn(const Chain& chain, const KernelSet& kernels) {
  return std::make_unique<InTurn>(chain, makePlan(chain.first, kernels), makePlan(chain.second, kernels));
}

constexpr ChainAlgorithm chainAlgorithms[] = {
    {"depthwise-product", servesDepthwiseProduct, makeDepthwiseProduct},
    {"in-turn", servesInTurn, makeInTurn},
};

void requireEqual(const char* what, int written, int read) {
  if (written == read) return;
  fail(taccInvalidArgument, "the second convolution's {} is {}, and the first one's results have {}", what, read,
       written);
}

}  // namespace

Chain understandChain(const taccConvDesc_t& first, const taccConvDesc_t& second) {
  Chain chain{understand(first), understand(second)};
  if (chain.first.pass != taccConvForward || chain.second.pass != taccConvForward) {
    fail(taccInvalidArgument, "both convolutions of a chain are forward");
  }
  const Shape& from = chain.first.shape;
  const Shape& to = chain.second.shape;
  requireEqual("batch", from.batch, to.batch);
  requireEqual("inChannels", from.outChannels, to.inChannels);
  requireEqual("height", from.outHeight, to.height);
  requireEqual("width", from.outWidth, to.width);
  requireEqual("maxWorkers", chain.first.maxWorkers, chain.second.maxWorkers);
  if (chain.first.isBfloat16 != chain.second.isBfloat16) {
    fail(taccInvalidArgument, "the convolutions of a chain have activations of one type, and these have two");
  }
  if (chain.first.residual) fail(taccInvalidArgument, "the first convolution of a chain adds no residual");
  chain.first.outputLayout = chain.second.inputLayout = taccLayoutNchw16c;
  return chain;
}

ChainWeights placeWeights(const Description& first, std::size_t firstFloats, std::size_t secondFloats) {
  const auto aligned = [](std::size_t floats) { return wholeLines(floats * sizeof(float)) / sizeof(float); };
  const std::size_t bias = aligned(firstFloats);
  const std::size_t biasFloats = first.bias ? static_cast<std::size_t>(first.shape.outBlocks()) * blockLength : 0;
  return {bias, bias + biasFloats, bias + biasFloats + secondFloats};
}

void packChainBias(const Description& first, const float* bias, float* packed) {
  if (!first.bias) return;
  const auto channels = static_cast<std::size_t>(first.shape.outChannels);
  std::fill_n(packed, static_cast<std::size_t>(first.shape.outBlocks()) * blockLength, 0.0F);
  std::memcpy(packed, bias, channels * sizeof(float));
}

ChosenChain makeChain(const Chain& chain, const KernelSet& kernels) {
  const std::string& named = chain.first.algorithm;
  const auto isNamed = [&](const ChainAlgorithm& algorithm) { return algorithm.name == named; };
  const auto* const one = std::ranges::find_if(chainAlgorithms, isNamed);
  Chain given = chain;
  if (one != std::end(chainAlgorithms)) {
    given.first.algorithm.clear();
    if (!one->serves(given)) {
      fail(taccInvalidArgument, "algorithm \"{}\" does not serve {} and then {}", named, chain.first.shape.text(),
           chain.second.shape.text());
    }
    return {one->name, one->make(given, kernels)};
  }
  ChosenChain best;
  for (const ChainAlgorithm& algorithm : chainAlgorithms) {
    // A name of one convolution's algorithm is for the one behind the other.
    const bool areNamed = !named.empty() || !chain.second.algorithm.empty();
    if (!algorithm.serves(given) || (areNamed && algorithm.make != makeInTurn)) continue;
    ChosenChain other{algorithm.name, algorithm.make(given, kernels)};
    if (best.plan == nullptr || other.plan->predictedSeconds() < best.plan->predictedSeconds()) best = std::move(other);
  }
  return best;
}

}  // namespace tacc::conv
