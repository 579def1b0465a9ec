// Groups that cut blocks of channels, each as a convolution of its own.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "conv_case.hpp"
#include "pass_name.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

taccConvDesc_t groupsOf(taccConvPass_t pass, int images, int groups, int ins, int outs, int size, int kernel,
                        int stride, int pad) {
  taccConvDesc_t desc = convolution(pass, images, groups * ins, size, size + 2, groups * outs, kernel, stride, pad);
  desc.groups = groups;
  desc.algorithm = "regrouped";
  return desc;
}

class Regrouped : public testing::TestWithParam<taccConvPass_t> {};

TEST_P(Regrouped, IsExactForDrawnGroupsOfFewInputs) {
  std::mt19937 random(23);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 40; ++i) {
    const int kernel = from(1, 7);
    taccConvDesc_t desc = groupsOf(GetParam(), from(1, 5), from(2, 5), from(1, 9), from(12, 70), from(kernel, 17),
                                   kernel, from(1, 3), from(0, kernel / 2));
    if (from(0, 2) == 0 && desc.height >= 2 * kernel) desc.dilationHeight = desc.dilationWidth = 2;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc);
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, Regrouped, testing::ValuesIn(allPasses), passName);

/// Of blocks of one input channel tiles of the gradient would have a row each.
TEST(RegroupedInputs, AreCopiedToPlanesWhereGroupsHaveFew) {
  const std::string planes = " of planes of a group";
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardWeights}) {
    for (const int ins : {1, 40}) {
      const taccConvDesc_t desc = groupsOf(pass, 16, 3, ins, 535, 8, 8, 2, 4);
      for (const KernelSet* kernels : availableKernels()) {
        const std::string kernel = makePlan(understand(desc), *kernels).plan->kernel();
        EXPECT_EQ(kernel.ends_with(planes), ins == 1) << kernel << " of " << ins;
      }
    }
  }
}

TEST(RegroupedInputs, InPlanesGiveTheSameBitsForEveryNumberOfThreads) {
  expectSameBitsForEveryNumberOfThreads(groupsOf(taccConvBackwardWeights, 6, 3, 1, 70, 12, 5, 2, 2), 4);
}

}  // namespace
}  // namespace tacc::conv::test
