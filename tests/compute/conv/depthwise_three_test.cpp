// Gradients of channel-wise weights three wide, whose kernels know how long lines are and which columns are outside:
// exactly what the definition says for every length of a line, on tensors that lie between pages that may not be
// touched.
#include "compute/conv/algorithms/depthwise_three.hpp"

#include <random>

#include "between_pages.hpp"
#include "compute/conv/core_model.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

taccConvDesc_t channelWise(int batch, int channels, int height, int width, int stride, int pad) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, batch, channels, height, width, channels, 3, stride, pad);
  desc.groups = channels;
  desc.algorithm = "depthwise";
  return desc;
}

TEST(DepthwiseThree, IsExactForEveryLengthOfALine) {
  std::mt19937 random(31);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 12; ++i) {
    const int stride = 1 + i % 2, pad = i / 2 % 2, rows = 1 + i / 4;
    for (int width = 3 - 2 * pad; width <= 40; ++width) {
      taccConvDesc_t desc = channelWise(from(1, 3), from(2, 40), from(rows, 9), width, stride, pad);
      desc.kernelHeight = rows;
      desc.padHeight = rows == 1 ? 0 : from(0, pad);
      if (desc.padHeight > 0 && rows > 1 && width % 4 == 0) desc.height = rows - 1;
      desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
      chooseEpilogue(desc, random);
      expectExactBetweenPages(desc, from(1, 3), from(0, 1) == 0);
    }
  }
}

TEST(DepthwiseThree, IsExactInParts) {
  std::mt19937 random(32);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 12; ++i) {  // of some thousand pixels, within images and of whole ones
    const int width = i % 2 == 0 ? from(3, 14) : from(15, 90);
    taccConvDesc_t desc =
        channelWise(i % 3 == 0 ? 1 : from(5, 40), from(17, 40), from(20, 90), width, from(1, 2), from(0, 1));
    desc.kernelHeight = from(2, 3);
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc);
  }
  expectExactAsChosen(channelWise(3, 600, 21, 20, 1, 1));  // from behind the L2 cache
}

TEST(DepthwiseThree, IsTheSameBitsForEveryNumberOfThreads) {
  for (const int width : {5, 14, 37}) expectSameBitsForEveryNumberOfThreads(channelWise(4, 70, 31, width, 1, 1), 5);
  for (const int width : {7, 61}) expectSameBitsForEveryNumberOfThreads(channelWise(2, 100, 47, width, 2, 1), 5);
}

class DepthwiseThreeServes : public testing::Test {
 protected:
  DepthwiseThreeServes() { pretendCoreModel(&nearCore); }
  ~DepthwiseThreeServes() override { pretendCoreModel(nullptr); }

  static bool serves(int rows, int width, int stride, const KernelSet& kernels) {
    taccConvDesc_t desc = channelWise(1, 32, 9, width, stride, 1);
    desc.kernelHeight = rows;
    return DepthwiseThree::find(withKernels(understand(desc), kernels), kernels).has_value();
  }
};

// Or the tests above would be of other kernels.
TEST_F(DepthwiseThreeServes, UsualLayersWhereVectorsAreLong) {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength / 2) continue;
    for (int width = 1; width <= 120; ++width) {
      for (const int stride : {1, 2}) {
        if (width > 2 * longestThreeLine && stride == 2 && kernels->fmaLanes == blockLength) continue;
        EXPECT_TRUE(serves(3, width, stride, *kernels)) << kernels->isa << " " << width << ", stride " << stride;
      }
    }
  }
}

// Halves of a block that take turns read all lines of a pass again.
TEST_F(DepthwiseThreeServes, StridesOnlyWhereTheL1CacheHasTheLines) {
  for (const KernelSet* kernels : availableKernels()) {
    for (const int rows : {1, 2, 3}) {  // of `rows` lines of the input and one half as long
      constexpr int pixelsOfL1 = 32 * 1024 / (blockLength * 4);
      const int width = 2 * pixelsOfL1 / (2 * rows + 1) + 1;
      for (const int more : {0, 1, 7, 500}) {
        EXPECT_FALSE(serves(rows, width + more, 2, *kernels)) << kernels->isa << ", " << rows << " rows of " << width;
      }
    }
    pretendCoreModel(&meshCore);
    EXPECT_FALSE(serves(3, 2 * longestThreeLine + 2, 2, *kernels)) << kernels->isa;
    pretendCoreModel(&nearCore);
  }
}

}  // namespace
}  // namespace tacc::conv::test
