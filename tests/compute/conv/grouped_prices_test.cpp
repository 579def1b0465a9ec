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

  static double secondsOf(taccConvPass_t pass, int kernel, const char* algorithm, const KernelSet& kernels) {
    taccConvDesc_t desc = convolution(pass, 1, 48, 56, 56, 48, kernel, 1, kernel / 2);
    desc.groups = 12;
    desc.algorithm = algorithm;
    if (std::string_view(algorithm) == "planes") desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    return makePlan(understand(desc), kernels).plan->predictedSeconds();
  }
};

TEST_F(GroupedPrices, GradientsOfWideKernelsPermuteForEachTap) {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength / 2 || kernels->permutedLanes == 1) continue;
    for (const int kernel : {5, 7}) {
      EXPECT_GT(secondsOf(taccConvBackwardWeights, kernel, "grouped", *kernels),
                secondsOf(taccConvBackwardWeights, kernel, "planes", *kernels));
    }
  }
}

TEST_F(GroupedPrices, TapsBehindThreeCostMore) {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength / 2 || kernels->permutedLanes == 1) continue;
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
      EXPECT_GT(secondsOf(pass, 7, "grouped", *kernels) / 49, 1.05 * secondsOf(pass, 3, "grouped", *kernels) / 9);
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
