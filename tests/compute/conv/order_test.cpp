// In which order plans go through memory, which no result shows: what they say of it in their kernel's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "compute/conv/cost.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

std::string kernelOf(taccConvDesc_t desc, const char* algorithm, const KernelSet& kernels) {
  desc.algorithm = algorithm;
  return makePlan(understand(desc), kernels).plan->kernel();
}

class Order : public testing::Test {
 protected:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  /// A 1x1 layer of groups, each of which begins and ends within blocks.
  taccConvDesc_t cutGroups(taccConvPass_t pass, int ofGroup, int side) {
    const int groups = from(5, 9);
    taccConvDesc_t desc = convolution(pass, 1, groups * ofGroup, side, side, groups * ofGroup, 1);
    desc.groups = groups;
    return desc;
  }

  std::mt19937 random_{21};
};

TEST_F(Order, OfWideGroupsThatShareLinesFromBehindTheL2CacheIsInTurn) {
  for (int i = 0; i < 12; ++i) {
    // Neighbours share a line of the cache of each pixel, as these are no multiples of 16.
    const int ofGroup = blockLength * from(1, 2) + from(1, blockLength - 1);
    for (const taccConvPass_t pass : allPasses) {
      for (const KernelSet* kernels : availableKernels()) {
        taccConvDesc_t desc = cutGroups(pass, ofGroup, from(110, 140));
        const std::string text = understand(desc).shape.text() + " " + std::string(kernels->isa);
        EXPECT_THAT(kernelOf(desc, "grouped", *kernels), testing::HasSubstr("groups in turn")) << text;
        desc.height = desc.width = from(6, 9);  // a few hundred KiB
        EXPECT_THAT(kernelOf(desc, "grouped", *kernels), testing::Not(testing::HasSubstr("in turn"))) << text;
        if (pass == taccConvBackwardWeights) continue;
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        EXPECT_THAT(kernelOf(desc, "direct", *kernels), testing::Not(testing::HasSubstr("in turn"))) << text;
        desc.height = desc.width = from(110, 140);
        EXPECT_THAT(kernelOf(desc, "direct", *kernels), testing::HasSubstr("groups in turn")) << text;
      }
    }
  }
}

/// Lines of large kernels that have more of all channels than caches near the core hold; where they have not, or
/// kernels are small, pixels are read in the order of memory.
TEST_F(Order, OfManyChannelsOfLargeKernelsInNhwcIsSomeChannelsAfterOthers) {
  for (int i = 0; i < 12; ++i) {
    for (const taccConvPass_t pass : allPasses) {
      const auto expectInTurn = [&](int channels, int width, int kernel, bool isInTurn) {
        taccConvDesc_t desc = convolution(pass, 1, channels, 9, width, channels, kernel, 1, kernel / 2);
        desc.groups = channels;
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        for (const KernelSet* kernels : availableKernels()) {
          const std::string name = kernelOf(desc, "depthwise-nhwc", *kernels);
          EXPECT_EQ(name.find("channels in turn") != std::string::npos, isInTurn && pass != taccConvBackwardWeights)
              << name << " " << understand(desc).shape.text();
        }
      };
      const int kernel = from(4, 7);
      expectInTurn(from(260, 400), from(30, 80), kernel, true);
      expectInTurn(from(16, 100), from(8, 30), kernel, false);
      expectInTurn(from(260, 400), from(30, 80), from(1, 3), false);
    }
  }
}

TEST_F(Order, OfGroupsNarrowerThanABlockIsNotInTurn) {
  for (int i = 0; i < 12; ++i) {
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
      const taccConvDesc_t desc = cutGroups(pass, from(3, blockLength - 1), from(110, 140));
      for (const KernelSet* kernels : availableKernels()) {
        EXPECT_THAT(kernelOf(desc, "grouped", *kernels), testing::Not(testing::HasSubstr("in turn")))
            << understand(desc).shape.text() << " " << kernels->isa;
      }
    }
  }
}

/// Of pixels that no tap finds, in NHWC: parts of lines of the cache otherwise, one group of outputs after the other.
TEST_F(Order, OfZerosBetweenStridedGradientsInNhwcIsOneClearing) {
  int cleared = 0;
  for (int i = 0; i < 60; ++i) {
    const int kernel = from(1, 3), stride = from(1, 4), side = from(kernel, 20);
    taccConvDesc_t desc = convolution(taccConvBackwardData, from(1, 3), from(1, 70), side, side, from(1, 70), kernel);
    desc.strideHeight = desc.strideWidth = stride;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.accumulate = from(0, 4) == 0;
    // Strides in an image that one result sees are none.
    const bool hasZeros = kernel < std::min(stride, side) && !desc.accumulate;
    for (const KernelSet* kernels : availableKernels()) {
      const Description d = withKernels(understand(desc), *kernels);
      const ConvAlgorithm* const direct = std::find_if(
          allAlgorithms().data(), allAlgorithms().data() + allAlgorithms().size(),
          [&](const ConvAlgorithm& algorithm) { return algorithm.name == "direct" && serves(algorithm, d); });
      if (direct == allAlgorithms().data() + allAlgorithms().size()) continue;  // it does not write so few channels
      cleared += hasZeros;
      const std::string text = direct->make(d, *kernels)->kernel();
      EXPECT_EQ(text.find("clears at once") != std::string::npos, hasZeros) << d.shape.text() << " " << text;
    }
    desc.inputLayout = desc.outputLayout = taccLayoutNchw16c;
    EXPECT_THAT(kernelOf(desc, "direct", bestKernels()), testing::Not(testing::HasSubstr("clears at once")));
  }
  EXPECT_GT(cleared, 10);
}

}  // namespace
}  // namespace tacc::conv::test
