// Channel-wise convolutions of any size in NHWC, in every pass: exactly what the definition says, for drawn kernels,
// strides, dilations and channels, and the same bits for every number of threads. Tensors lie between pages that may
// not be touched.
#include <gtest/gtest.h>

#include <random>

#include "between_pages.hpp"
#include "pass_name.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

class DepthwiseNhwc : public testing::TestWithParam<taccConvPass_t> {
 protected:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  taccConvDesc_t layer(int batch, int channels, int height, int width, int kernel) {
    taccConvDesc_t desc = convolution(GetParam(), batch, channels, height, width, channels, kernel);
    desc.groups = channels;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.algorithm = "depthwise-nhwc";
    return desc;
  }

  std::mt19937 random_{53};
};

TEST_P(DepthwiseNhwc, IsExactForEveryNumberOfChannels) {
  for (int channels = 2; channels <= 70; ++channels) {
    taccConvDesc_t desc = layer(1, channels, from(1, 5), from(3, 19), 1);
    if (channels % 2 == 0) {
      desc.kernelWidth = 3;
      desc.padWidth = 1;
    }
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, channels % 4 == 0 ? 3 : 1, channels % 2 == 0);
  }
}

/// Of up to four vectors all weights stay in registers.
TEST_P(DepthwiseNhwc, IsExactForOneTapOfAFewVectors) {
  for (int channels = 8; channels <= 40; channels += 8) {
    for (const int stride : {1, 2}) {
      taccConvDesc_t desc = layer(2, channels, from(1, 5), from(1, 19), 1);
      desc.strideHeight = desc.strideWidth = stride;
      chooseEpilogue(desc, random_);
      expectExactBetweenPages(desc, 1, false);
    }
  }
}

TEST_P(DepthwiseNhwc, IsExactForDrawnKernels) {
  for (int i = 0; i < 120; ++i) {
    taccConvDesc_t desc = layer(from(1, 3), i % 10 == 0 ? from(100, 300) : from(2, 50), from(1, 20), from(1, 30), 1);
    chooseKernel(desc, random_);
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 4 < 2 ? 1 : 4, i % 2 == 0);
  }
}

/// One tap and strides, so that most of the input is seen by none; and kernels that are larger than the image.
TEST_P(DepthwiseNhwc, IsExactForStridesBeyondTheKernelAndKernelsBeyondTheImage) {
  for (int i = 0; i < 30; ++i) {
    taccConvDesc_t desc = layer(from(1, 2), from(2, 40), from(1, 23), from(1, 23), from(1, 2));
    desc.height = std::max(desc.height, desc.kernelHeight);
    desc.width = std::max(desc.width, desc.kernelWidth);
    desc.strideHeight = from(1, 6);
    desc.strideWidth = from(1, 6);
    expectExactBetweenPages(desc, 1, i % 2 == 0);
    taccConvDesc_t large = layer(from(1, 2), from(2, 40), from(1, 4), from(1, 4), 9);
    large.padHeight = large.padWidth = from(4, 8);
    expectExactBetweenPages(large, 2, i % 2 == 0);
  }
}

/// Lines that have more of all channels than the L1 cache holds: some channels of all lines, then others.
TEST_P(DepthwiseNhwc, IsExactForSomeChannelsAfterOthers) {
  for (int i = 0; i < 8; ++i) {
    const int kernel = from(4, 7);
    taccConvDesc_t desc = layer(1, from(260, 330), from(kernel, 12), from(60, 80), kernel);
    desc.padHeight = desc.padWidth = from(0, 3);
    desc.strideWidth = from(1, 2);
    desc.dilationWidth = from(1, 2);
    chooseEpilogue(desc, random_);
    const bool isCut = GetParam() != taccConvBackwardWeights;  // whose sums have all channels
    for (const KernelSet* kernels : availableKernels()) {
      const std::string name = makePlan(understand(desc), *kernels).plan->kernel();
      EXPECT_EQ(name.find("channels in turn") != std::string::npos, isCut) << name;
    }
    expectExactBetweenPages(desc, i % 2 == 0 ? 1 : 3, i % 4 < 2);
  }
}

TEST_P(DepthwiseNhwc, IsExactForLargeTensors) {
  expectExactBetweenPages(layer(1, 64, 190, 181, 1), 2, true);  // stored non-temporally
  expectExactBetweenPages(layer(2, 19, 90, 77, 3), 3, true);    // sums of weights in several parts
}

TEST_P(DepthwiseNhwc, IsTheSameBitsForEveryNumberOfThreads) {
  for (const int stride : {1, 2}) {
    taccConvDesc_t desc = layer(2, 37, 70, 61, 3);
    desc.strideHeight = desc.strideWidth = stride;
    expectSameBitsForEveryNumberOfThreads(desc, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, DepthwiseNhwc, testing::ValuesIn(allPasses), passName);

}  // namespace
}  // namespace tacc::conv::test
