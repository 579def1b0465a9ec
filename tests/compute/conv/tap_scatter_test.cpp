// Backward to the data by products of all taps: exactly what the definition says, for any kernel, stride and padding.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../guarded_buffer.hpp"
#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;

taccConvDesc_t named(taccConvDesc_t desc) {
  desc.algorithm = "tap-scatter";
  return desc;
}

TEST(TapScatter, IsExactForDrawnLayers) {
  std::mt19937 random(71);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 120; ++i) {
    taccConvDesc_t desc =
        convolution(taccConvBackwardData, from(1, 9), from(1, 50), from(1, 12), from(1, 12), from(1, 70), 1);
    chooseKernel(desc, random);
    desc.kernelHeight = std::max(desc.kernelHeight, 2);
    desc.height = std::max(desc.height, desc.dilationHeight * (desc.kernelHeight - 1) + 1);
    desc.accumulate = from(0, 1);
    desc.maxWorkers = from(1, 3);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    const ThreadedExecutor threads(desc.maxWorkers);
    expectExactAsChosen(named(desc), threads.get());
    expectExactAsChosen(named(desc));
  }
}

TEST(TapScatter, TouchesNothingOutsideOfItsBuffers) {
  for (const int images : {1, 4}) {
    for (const bool isAtEnd : {false, true}) {
      for (const KernelSet* kernels : availableKernels()) {
        const Case test(named(convolution(taccConvBackwardData, images, 20, 6, 7, 35, 5, 1, 1)));
        const ChosenPlan chosen = makePlan(test.description(), *kernels);
        const auto guarded = [&](PageBuffer& pages, const Floats& content) {
          return pages.place(content.data(), content.size(), isAtEnd);
        };
        constexpr std::size_t pageCount = 64;
        PageBuffer gradient(pageCount), result(pageCount), weights(pageCount), workspace(pageCount);
        Floats packed(chosen.plan->packedFloats());
        chosen.plan->pack(test.weights.data(), packed.data());
        const Floats scratch(chosen.plan->workspaceBytes() / sizeof(float));
        float* const to = guarded(result, test.before);
        chosen.plan->run({nullptr, guarded(weights, packed), guarded(gradient, test.outputGradient), nullptr, nullptr,
                          to, guarded(workspace, scratch), chosen.plan->workspaceBytes()},
                         TaskExecutor(*taccSerialExecutor()));
        const Floats expected = test.expected();
        EXPECT_TRUE(std::equal(to, to + expected.size(), expected.data())) << test.text();
      }
    }
  }
}

// Few pixels of the output, many of the input: where tiles of results would read weights for a pixel or two.
TEST(TapScatter, IsChosenForLargeKernelsWithoutPadding) {
  const auto chosen = [](int size, int kernel, int pad) {
    const taccConvDesc_t desc = convolution(taccConvBackwardData, 8, 32, size, size, 128, kernel, 1, pad);
    const auto kernels = availableKernels();
    const auto best =
        std::find_if(kernels.begin(), kernels.end(), [](const KernelSet* set) { return set->split == nullptr; });
    return makePlan(understand(desc), **best).algorithm;  // AMX's tiles have prices of their own
  };
  EXPECT_EQ(chosen(8, 7, 0), "tap-scatter");
  EXPECT_EQ(chosen(14, 3, 1), "direct");
  EXPECT_EQ(chosen(416, 3, 1), "direct");
}

}  // namespace
}  // namespace tacc::conv::test
