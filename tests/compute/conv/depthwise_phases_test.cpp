// Channel-wise convolutions in blocks, backward to the data with strides and kernels that have no kernel of their own:
// exactly what the definition says, the same bits for every number of threads, and where they are chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "between_pages.hpp"
#include "compute/conv/core_model.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

class DepthwisePhases : public testing::Test {
 protected:
  ~DepthwisePhases() override { pretendCoreModel(nullptr); }

  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  static taccConvDesc_t layer(int batch, int channels, int height, int width, int kernel, int stride, int pad) {
    taccConvDesc_t desc =
        convolution(taccConvBackwardData, batch, channels, height, width, channels, kernel, stride, pad);
    desc.groups = channels;
    return desc;
  }
  /// Mostly strides of 2 to 5, also wider than the kernel, and few of lines alone; some kernels taller than any that
  /// has its own, and some in NHWC, where 16 channels are a block.
  taccConvDesc_t drawn() {
    taccConvDesc_t desc = layer(from(1, 2), from(2, 40), from(1, 20), from(1, 40), 1, 1, 0);
    chooseKernel(desc, random_);
    if (from(0, 5) > 0) desc.strideWidth = from(2, 5);
    if (from(0, 1) > 0) desc.strideHeight = from(1, 5);
    if (from(0, 5) == 0) {
      desc.kernelHeight = from(33, 36);
      desc.padHeight = desc.kernelHeight / 2;
      desc.strideHeight = desc.dilationHeight = 1;
    }
    if (from(0, 3) == 0) {
      desc.inChannels = desc.outChannels = desc.groups = blockLength;
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    }
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.accumulate = from(0, 2) == 0;
    desc.algorithm = "depthwise";
    return desc;
  }

  /// Draws that have phases with some kernels here, and how many were drawn for `wanted` of them.
  int drawPhases(int wanted, const std::function<void(const taccConvDesc_t&)>& look) {
    int draws = 0;
    for (int found = 0; found < wanted && draws < 20 * wanted; ++draws) {
      const taccConvDesc_t desc = drawn();
      const bool hasPhases = std::ranges::any_of(availableKernels(), [&](const KernelSet* kernels) {
        return makePlan(understand(desc), *kernels).plan->kernel().find("phases") != std::string::npos;
      });
      if (hasPhases) ++found, look(desc);
    }
    return draws;
  }
  static bool haveHalves() {
    return std::ranges::any_of(availableKernels(), [](const KernelSet* k) { return 2 * k->fmaLanes == blockLength; });
  }

  std::mt19937 random_{71};
};

TEST_F(DepthwisePhases, AreExactForDrawnKernels) {
  if (!haveHalves()) GTEST_SKIP() << "no vectors of half a block here";
  int i = 0;
  const int draws = drawPhases(60, [&](const taccConvDesc_t& desc) {
    expectExactBetweenPages(desc, i % 4 < 2 ? 1 : 3, i % 2 == 0);
    ++i;
  });
  EXPECT_EQ(i, 60) << "of " << draws;
}

// As are those that have none: products added a tap at a time.
TEST_F(DepthwisePhases, AndWhatHasNoneIsExactToo) {
  for (int i = 0; i < 60; ++i) expectExactBetweenPages(drawn(), i % 4 < 2 ? 1 : 3, i % 2 == 0);
}

TEST_F(DepthwisePhases, HaveTheSameBitsForEveryNumberOfThreads) {
  if (!haveHalves()) GTEST_SKIP() << "no vectors of half a block here";
  drawPhases(4, [](const taccConvDesc_t& desc) { expectSameBitsForEveryNumberOfThreads(desc, 5); });
}

// Others add products a tap at a time, as do kernels that are no wider than the stride, and short lines.
TEST_F(DepthwisePhases, AreThoseOfVectorsOfHalfABlock) {
  for (const KernelSet* kernels : availableKernels()) {
    const auto hasPhases = [&](taccConvDesc_t desc) {
      desc.algorithm = "depthwise";
      return makePlan(understand(desc), *kernels).plan->kernel().find("phases") != std::string::npos;
    };
    for (const int stride : {3, 4}) {
      EXPECT_EQ(hasPhases(layer(1, 64, 112, 112, 5, stride, 2)), 2 * kernels->fmaLanes == blockLength);
      EXPECT_FALSE(hasPhases(layer(1, 64, 112, 112, 3, stride, 1)));
    }
    EXPECT_FALSE(hasPhases(layer(1, 64, 14, 14, 7, 4, 0)));
  }
}

// Large results, whose lines of the cache are waited for phase by phase, go past the caches instead.
TEST_F(DepthwisePhases, AreChosenForResultsThatStayInTheCaches) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    const auto chosen = [&](const taccConvDesc_t& desc) {
      return std::string(makePlan(understand(desc), *kernels).algorithm);
    };
    EXPECT_EQ(chosen(layer(1, 64, 112, 112, 5, 3, 2)), "depthwise");
    EXPECT_EQ(chosen(layer(1, 48, 80, 80, 7, 4, 3)), "depthwise");
    EXPECT_EQ(chosen(layer(1, 5, 400, 400, 3, 3, 1)), "grouped");
    EXPECT_EQ(chosen(layer(1, 837, 184, 184, 1, 2, 0)), "grouped");
  }
}

}  // namespace
}  // namespace tacc::conv::test
