// What groups that cut blocks cost by the model: permutations of half vectors take longer than the products, and
// kernels wider than three share fewer of them.
#include <gtest/gtest.h>

#include <string_view>

#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

class GroupedPrices : public testing::Test {
 protected:
  GroupedPrices() { pretendCoreModel(&nearCore); }
  ~GroupedPrices() override { pretendCoreModel(nullptr); }

  static bool permutesHalves(const KernelSet& kernels) {
    return kernels.fmaLanes == blockLength / 2 && kernels.permutedLanes > 1;
  }
  static double secondsOf(taccConvPass_t pass, int kernel, const char* algorithm, const KernelSet& kernels,
                          int stride = 1) {
    taccConvDesc_t desc = convolution(pass, 1, 48, 56, 56, 48, kernel, stride, kernel / 2);
    desc.groups = 12;
    desc.algorithm = algorithm;
    if (std::string_view(algorithm) == "planes") desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    return makePlan(understand(desc), kernels).plan->predictedSeconds();
  }
  /// Of a kernel, by its taps, in that of 3x3.
  static double tapOf(taccConvPass_t pass, int kernel, int stride, const KernelSet& kernels) {
    return secondsOf(pass, kernel, "grouped", kernels, stride) / (kernel * kernel) /
           (secondsOf(pass, 3, "grouped", kernels, stride) / 9);
  }
};

TEST_F(GroupedPrices, GradientsOfWideKernelsPermuteForEachTap) {
  for (const KernelSet* kernels : availableKernels()) {
    if (!permutesHalves(*kernels)) continue;
    for (const int kernel : {5, 7}) {
      EXPECT_GT(secondsOf(taccConvBackwardWeights, kernel, "grouped", *kernels),
                secondsOf(taccConvBackwardWeights, kernel, "planes", *kernels));
    }
  }
}

TEST_F(GroupedPrices, TapsBehindThreeCostMore) {
  for (const KernelSet* kernels : availableKernels()) {
    if (!permutesHalves(*kernels)) continue;
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
      EXPECT_GT(tapOf(pass, 7, 1, *kernels), 1.05);
    }
    EXPECT_GT(tapOf(taccConvForward, 5, 2, *kernels), 1);  // where two taps share nothing
  }
}

// Copies of few channels' taps that leave the L2 cache are waited for: 3x3 of ResNeXt-50's first groups, and of others.
TEST_F(GroupedPrices, GradientsOfThreeTapsAreReordered) {
  for (const KernelSet* kernels : availableKernels()) {
    if (!permutesHalves(*kernels)) continue;
    for (const int batch : {1, 16}) {
      for (const int channels : {48, 128, 256}) {
        taccConvDesc_t desc = convolution(taccConvBackwardWeights, batch, channels, 56, 56, channels, 3, 1, 1);
        desc.inputLayout = desc.outputLayout = taccLayoutNchw;
        desc.groups = channels == 48 ? 12 : 32;
        EXPECT_EQ(makePlan(understand(desc), *kernels).algorithm, "grouped") << channels << ", images " << batch;
      }
    }
  }
}

// Prices that have been measured where caches are near are not those of others.
TEST_F(GroupedPrices, AreOthersWhereCachesAreFar) {
  pretendCoreModel(&meshCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (!permutesHalves(*kernels)) continue;
    EXPECT_LT(tapOf(taccConvForward, 7, 1, *kernels), 1.05);
    EXPECT_LT(secondsOf(taccConvBackwardWeights, 7, "grouped", *kernels),
              secondsOf(taccConvBackwardWeights, 7, "planes", *kernels));
  }
}

}  // namespace
}  // namespace tacc::conv::test
