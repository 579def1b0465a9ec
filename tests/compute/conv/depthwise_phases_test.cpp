// Channel-wise convolutions in blocks, backward to the data with strides and kernels that have no kernel of their own:
// exactly what the definition says, the same bits for every number of threads, and where they are chosen.
#include <gtest/gtest.h>

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
  /// Mostly strides of 2 to 5, also wider than the kernel, and few of lines alone.
  taccConvDesc_t drawn() {
    taccConvDesc_t desc = layer(from(1, 2), from(2, 40), from(1, 20), from(1, 40), 1, 1, 0);
    chooseKernel(desc, random_);
    if (from(0, 5) > 0) desc.strideWidth = from(2, 5);
    if (from(0, 1) > 0) desc.strideHeight = from(1, 5);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.accumulate = from(0, 2) == 0;
    desc.algorithm = "depthwise";
    return desc;
  }

  std::mt19937 random_{71};
};

TEST_F(DepthwisePhases, AreExactForDrawnKernels) {
  for (int i = 0; i < 120; ++i) expectExactBetweenPages(drawn(), i % 4 < 2 ? 1 : 3, i % 2 == 0);
}

TEST_F(DepthwisePhases, HaveTheSameBitsForEveryNumberOfThreads) {
  for (int i = 0; i < 4; ++i) expectSameBitsForEveryNumberOfThreads(drawn(), 5);
}

// Where a vector is a block, products are added a tap at a time.
TEST_F(DepthwisePhases, AreThoseOfShortVectors) {
  for (const KernelSet* kernels : availableKernels()) {
    for (const int stride : {3, 4}) {
      taccConvDesc_t desc = layer(1, 64, 112, 112, 3, stride, 1);
      desc.algorithm = "depthwise";
      const std::string kernel = makePlan(understand(desc), *kernels).plan->kernel();
      EXPECT_EQ(kernel.find("phases") != std::string::npos, kernels->fmaLanes < blockLength) << kernel;
    }
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
    EXPECT_EQ(chosen(layer(1, 64, 112, 112, 3, 3, 1)), "depthwise");
    EXPECT_EQ(chosen(layer(1, 48, 80, 80, 7, 4, 3)), "depthwise");
    EXPECT_EQ(chosen(layer(1, 5, 400, 400, 3, 3, 1)), "grouped");
    EXPECT_EQ(chosen(layer(1, 837, 184, 184, 1, 2, 0)), "grouped");
  }
}

}  // namespace
}  // namespace tacc::conv::test
