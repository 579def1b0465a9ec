// How far ahead gradients of weights have their tensors fetched, as kernels are told that compute nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

std::vector<GradientCall> calls;

/// Kernels in whose place calls are kept.
KernelSet keepingKernels(KernelSet kernels) {
  const auto keep = [](auto& table) {
    for (auto& ofBlocks : table) {
      for (GradientKernel& kernel : ofBlocks) {
        if (kernel != nullptr) kernel = [](const GradientCall& call) { calls.push_back(call); };
      }
    }
  };
  keep(kernels.gradient);
  keep(kernels.gradientHalf);
  return kernels;
}

struct Tensors {
  explicit Tensors(const Description& d)
      : input(tensorFloats(taccLayoutNchw16c, d.shape.batch, d.shape.inChannels, d.shape.height, d.shape.width)),
        gradient(
            tensorFloats(taccLayoutNchw16c, d.shape.batch, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth)) {}
  Floats input, gradient;
};

/// The calls of a gradient of weights by `direct`; unless it says otherwise with the kernels of this CPU.
void keepCalls(const Description& d, const Tensors& tensors, const KernelSet& ofSet = *availableKernels().back()) {
  const KernelSet kernels = keepingKernels(ofSet);
  const auto plan = makePlan(d, kernels).plan;
  const Shape& s = d.shape;
  Floats result(weightFloats(taccWeightsBlocked, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, 1));
  Floats workspace(plan->workspaceBytes() / sizeof(float) + 1);
  calls.clear();
  plan->run({tensors.input.data(), nullptr, tensors.gradient.data(), nullptr, nullptr, result.data(), workspace.data(),
             plan->workspaceBytes()},
            TaskExecutor(serialExecutor()));
  ASSERT_FALSE(calls.empty());
}

taccConvDesc_t directGradient(int images, int channels, int size, int stride) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, images, channels, size, size, channels, 3, stride, 0);
  desc.algorithm = "direct";
  desc.weightLayout = taccWeightsBlocked;
  return desc;
}

TEST(Fetching, IsUsualWhereCachesHoldTheTensors) {
  const Description d = understand(directGradient(2, 48, 14, 1));
  keepCalls(d, Tensors(d));
  for (const GradientCall& call : calls) EXPECT_TRUE(call.inputAhead == 0 && call.gradientAhead == 0);
}

/// Without padding all taps of a part of the pixels begin at the same pixel of the output's gradient.
TEST(Fetching, OfMemoryIsFarAheadForTheFirstTileAlone) {
  for (const int stride : {1, 2}) {
    const Description d = understand(directGradient(1, 64, stride == 1 ? 280 : 400, stride));
    const Tensors tensors(d);
    keepCalls(d, tensors);
    std::set<std::pair<std::ptrdiff_t, std::ptrdiff_t>> inputs;
    std::set<const float*> gradients;
    for (const GradientCall& call : calls) {
      const std::ptrdiff_t block = (call.input - tensors.input.data()) / d.shape.inPlane();
      const std::ptrdiff_t pixel = (call.gradient - tensors.gradient.data()) % d.shape.outPlane();
      if (inputs.insert({block, pixel}).second) {
        EXPECT_GE(call.inputAhead, 64 * call.inputPixel);
      }
      const bool isNew = gradients.insert(call.gradient).second;
      EXPECT_EQ(call.gradientAhead != 0, isNew);
    }
    const auto ahead = std::ranges::count_if(calls, [](const GradientCall& call) { return call.inputAhead != 0; });
    // A stride reads other pixels with every second tap, and other lines.
    EXPECT_EQ(ahead, static_cast<std::ptrdiff_t>(inputs.size()) * stride * stride);
  }
}

/// Of half vectors, which read as much of a piece of the lines, for what they multiply, as the L2 cache gives.
TEST(Fetching, OfProductsOfManyPixelsIsLeftToHardwareAndTheCache) {
  const auto sets = availableKernels();
  const auto half = std::ranges::find_if(sets, [](const KernelSet* set) { return 2 * set->fmaLanes == blockLength; });
  if (half == sets.end()) GTEST_SKIP() << "no vectors of half a block";
  pretendCoreModel(&nearCore);
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 96, 56, 56, 96, 1);
  desc.algorithm = "direct";
  desc.weightLayout = taccWeightsBlocked;
  const Description d = understand(desc);
  keepCalls(d, Tensors(d), **half);
  pretendCoreModel(nullptr);
  constexpr std::size_t bytesOfPixel = 3 * blockLength * sizeof(float);
  int pixels = 0;
  for (const GradientCall& call : calls) {
    EXPECT_EQ(call.inputAhead, 0);
    EXPECT_EQ(call.gradientAhead, 0);
    EXPECT_LE(static_cast<std::size_t>(call.pixels) * bytesOfPixel, l2CacheBytes() / 3);
    const bool isFirst = call.gradient == calls.front().gradient + pixels * blockLength;
    if (isFirst && call.input == calls.front().input + pixels * blockLength) pixels += call.pixels;
  }
  EXPECT_EQ(pixels, 56 * 56);
}

/// Of few outputs a tile has too few products to hide what the last cache gives.
TEST(Fetching, OfProductsOfFewOutputsIsByHandFromTheLastCacheToo) {
  const auto sets = availableKernels();
  const auto half = std::ranges::find_if(sets, [](const KernelSet* set) { return 2 * set->fmaLanes == blockLength; });
  if (half == sets.end()) GTEST_SKIP() << "no vectors of half a block";
  pretendCoreModel(&nearCore);
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, 16, 64, 56, 56, 16, 1);
  desc.algorithm = "direct";
  desc.weightLayout = taccWeightsBlocked;
  const Description d = understand(desc);
  ASSERT_LT(touchedBytes(d), coreModel().lastCacheBytes);
  keepCalls(d, Tensors(d), **half);
  pretendCoreModel(nullptr);
  EXPECT_GT(calls.front().inputAhead, 0);
  EXPECT_GT(calls.front().gradientAhead, 0);
}

TEST(Fetching, GoesByPixelsLinesOrImages) {
  GradientCall call{};
  const auto distance = [&](int images, int lines, int pixels) {
    call.images = images;
    call.lines = lines;
    call.pixels = pixels;
    return fetchDistance(call, 16, 1000, 100'000);
  };
  EXPECT_EQ(distance(1, 1, 5000), 64 * 16);
  EXPECT_EQ(distance(3, 1, 5000), 64 * 16);
  EXPECT_EQ(distance(1, 50, 64), 1000);
  EXPECT_EQ(distance(3, 50, 30), 3000);
  EXPECT_EQ(distance(3, 14, 14), 100'000);
  EXPECT_EQ(distance(3, 1, 49), 200'000);
  EXPECT_EQ(distance(1, 1, 49), 64 * 16);
  EXPECT_EQ(distance(3, 0, 14), 64 * 100'000);  // nothing is read
}

}  // namespace
}  // namespace tacc::conv::test
