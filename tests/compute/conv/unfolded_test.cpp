// Convolutions of NCHW with any kernel, and of groups, as products of matrices, in every pass: exactly what the
// definition says, and the same bits for every number of threads. Tensors lie between pages that may not be touched.
#include <gtest/gtest.h>

#include <random>

#include "between_pages.hpp"
#include "pass_name.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

class Unfolded : public testing::TestWithParam<taccConvPass_t> {
 protected:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  taccConvDesc_t layer(int batch, int ins, int height, int width, int outs, int kernel, int groups = 1) {
    taccConvDesc_t desc = convolution(GetParam(), batch, ins * groups, height, width, outs * groups, kernel);
    desc.groups = groups;
    desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    const bool isGradient = GetParam() == taccConvBackwardWeights;
    desc.weightLayout = isGradient || from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.algorithm = "plain-product";
    return desc;
  }
  std::mt19937 random_{71};
};

TEST_P(Unfolded, IsExactForDrawnKernels) {
  for (int i = 0; i < 120; ++i) {
    const bool hasGroups = i % 3 == 0;
    taccConvDesc_t desc = layer(from(1, 2), from(hasGroups ? 2 : 1, 9), from(1, 24), from(1, 40), from(1, 40), 1,
                                hasGroups ? from(2, 5) : 1);
    chooseKernel(desc, random_);
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 4 < 2 ? 1 : 4, i % 2 == 0);
  }
}

/// Lines of the output as long as those of the input are copied and added all at once, and not where kernels end.
TEST_P(Unfolded, IsExactForImagesThatKeepTheirSize) {
  for (int i = 0; i < 40; ++i) {
    taccConvDesc_t desc = layer(from(1, 2), from(1, 5), from(1, 30), from(1, 30), from(1, 50), 1);
    desc.kernelHeight = 1 + 2 * from(0, 2);
    desc.kernelWidth = 1 + 2 * from(0, 3);
    desc.dilationHeight = from(1, 2);
    desc.dilationWidth = from(1, 3);
    desc.padHeight = desc.kernelHeight / 2 * desc.dilationHeight;
    desc.padWidth = desc.kernelWidth / 2 * desc.dilationWidth;
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 3 + 1, i % 2 == 0);
  }
}

/// More pixels than are copied at a time.
TEST_P(Unfolded, IsExactForManyPixels) {
  for (int i = 0; i < 6; ++i) {
    taccConvDesc_t desc = layer(1, from(1, 12), from(90, 150), i % 2 == 0 ? 128 : from(90, 150), from(1, 40), 3);
    desc.padHeight = desc.padWidth = i / 2 % 2;
    desc.strideHeight = desc.strideWidth = 1 + i / 4;
    expectExactBetweenPages(desc, i % 3 + 1, i % 2 == 0);
  }
  expectExactBetweenPages(layer(1, 3, 240, 320, 34, 1), 2, true);  // stored non-temporally
}

TEST_P(Unfolded, IsExactForProductsOfGroups) {
  for (int i = 0; i < 30; ++i) {
    taccConvDesc_t desc = layer(from(1, 3), from(2, 20), from(1, 14), from(1, 20), from(1, 20), 1, from(2, 6));
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 3 + 1, i % 2 == 0);
  }
}

TEST_P(Unfolded, IsTheSameBitsForEveryNumberOfThreads) {
  for (const int groups : {1, 2}) {
    taccConvDesc_t desc = layer(1, 7, 61, 83, 50, 3, groups);
    desc.padHeight = desc.padWidth = 1;
    expectSameBitsForEveryNumberOfThreads(desc, 4);
    desc.strideHeight = desc.strideWidth = 2;
    expectSameBitsForEveryNumberOfThreads(desc, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, Unfolded, testing::ValuesIn(allPasses), passName);

}  // namespace
}  // namespace tacc::conv::test
