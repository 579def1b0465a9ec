// Channel-wise convolutions whose lines are several strips: strips are gone through in some lines at a time, where
// vectors are short, and in few pixels of both halves of a block where there is a stride and lines are long, or where
// tensors come from memory. Gradients of a half without channels are not computed.
#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

taccConvDesc_t channelWise(taccConvPass_t pass, int height, int width, int kernel, int stride, int pad,
                           int channels = 20) {  // a block and a part of one
  taccConvDesc_t desc = convolution(pass, 2, channels, height, width, channels, kernel, stride, pad);
  desc.groups = channels;
  desc.algorithm = "depthwise";
  return desc;
}

TEST(DepthwiseStrips, AreExactInLongLines) {
  std::mt19937 random(5);
  for (const taccConvPass_t pass : allPasses) {
    for (const int kernel : {3, 5}) {
      for (const int stride : {1, 2}) {
        for (const int width : {15, 27, 28, 29, 55, 56, 57, 63, 64, 65, 111}) {
          for (int pad = 0; pad < kernel; ++pad) {
            taccConvDesc_t desc = channelWise(pass, 9, width, kernel, stride, pad);
            chooseEpilogue(desc, random);
            expectExactAsChosen(desc);
          }
        }
      }
    }
  }
}

TEST(DepthwiseStrips, AreExactForFewAndManyLines) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int stride : {1, 2}) {
      for (const int kernelHeight : {1, 2, 3, 4, 7}) {
        for (const int height : {1, 2, 3, 5, 8, 13, 18}) {
          for (const int padHeight : {0, 1, 3}) {
            taccConvDesc_t desc = channelWise(pass, height, 56, 3, stride, 1);
            desc.kernelHeight = kernelHeight;
            desc.padHeight = padHeight;
            if (height + 2 * padHeight < kernelHeight) continue;
            expectExactAsChosen(desc);
          }
        }
      }
    }
  }
}

TEST(DepthwiseStrips, AreExactForEveryPartOfABlock) {
  std::mt19937 random(6);
  for (const taccConvPass_t pass : allPasses) {
    for (const int channels : {2, 4, 5, 8, 9, 12, 13, 24, 25}) {
      for (const int width : {3, 7, 16, 28, 33}) {
        for (const auto& [kernel, stride, dilation] : {std::array{1, 1, 1},
                                                       {1, 2, 1},
                                                       {2, 1, 2},
                                                       {3, 1, 1},
                                                       {3, 2, 1},
                                                       {3, 1, 2},
                                                       {5, 2, 1},
                                                       {6, 3, 1},
                                                       {7, 1, 1}}) {
          const int height = kernel * dilation + 2, pad = kernel / 2;
          taccConvDesc_t desc = channelWise(pass, height, std::max(width, kernel), kernel, stride, pad, channels);
          desc.dilationHeight = desc.dilationWidth = dilation;
          chooseEpilogue(desc, random);
          expectExactAsChosen(desc);
        }
      }
    }
  }
}

TEST(DepthwiseStrips, OfAnyKernelAreExactAtEveryEndOfALine) {
  std::mt19937 random(8);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const taccConvPass_t pass : allPasses) {
    for (const auto& [kernel, dilation] : {std::array{1, 1}, {2, 2}, {2, 5}, {3, 4}, {9, 1}, {8, 2}}) {
      for (const int stride : {1, 2, 3, 5}) {
        for (int width = 1; width <= 46; width += width < 31 ? 1 : 5) {
          const int reach = dilation * (kernel - 1);
          taccConvDesc_t desc = channelWise(pass, from(3, 9), width, kernel, stride, from(0, reach));
          desc.kernelHeight = from(1, 5);
          desc.dilationHeight = from(1, 2);
          desc.padHeight = from(0, 2);
          desc.dilationWidth = dilation;
          const int reachDown = desc.dilationHeight * (desc.kernelHeight - 1);
          if (width + 2 * desc.padWidth <= reach || desc.height + 2 * desc.padHeight <= reachDown) continue;
          chooseEpilogue(desc, random);
          expectExactAsChosen(desc);
        }
      }
    }
  }
}

TEST(DepthwiseStrips, AreExactOfWhatComesFromMemory) {
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
    for (const int channels : {8, 24, 48}) {
      for (const auto& [kernel, width] : {std::array{1, 67}, {3, 66}, {3, 68}, {3, 69}}) {
        for (const bool isLarge : {false, true}) {  // results of more than 8 MiB are stored non-temporally
          const std::size_t bytes = (isLarge ? 9U : 5U) << 20;
          const auto lines =
              static_cast<int>(bytes / (sizeof(float) * blockLength * ((channels + 15) / 16) * width) + 1);
          taccConvDesc_t desc = channelWise(pass, lines, width, kernel, 1, kernel / 2, channels);
          desc.batch = 1;
          desc.bias = desc.pass == taccConvForward;
          expectExactAsChosen(desc);
        }
      }
    }
  }
}

// Of whole blocks of NHWC, among them pixels that share sets of the L1 cache, which some kinds of cores copy first.
TEST(DepthwiseStrips, AreExactInWholeBlocksOfNhwc) {
  std::mt19937 random(14);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const CoreModel* model : {&nearCore, &meshCore}) {
    pretendCoreModel(model);
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
      for (int i = 0; i < 40; ++i) {
        const int kernel = i % 4 == 0 ? 5 : 3, channels = i % 5 == 0 ? 512 : blockLength * from(1, 12);
        taccConvDesc_t desc =
            channelWise(pass, from(kernel, 12), from(kernel, 40), kernel, from(1, 2), kernel / 2, channels);
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        desc.padWidth = from(0, kernel - 1);
        chooseEpilogue(desc, random);
        expectExactAsChosen(desc);
      }
    }
  }
  taccConvDesc_t large = channelWise(taccConvForward, 300, 301, 3, 2, 1, 96);  // stored non-temporally
  large.batch = 1;
  large.inputLayout = large.outputLayout = taccLayoutNhwc;
  expectExactAsChosen(large);
  pretendCoreModel(nullptr);
}

TEST(DepthwiseStrips, OfFewChannelsCostMoreThanPlanesOutsideTheNearestCache) {
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    taccConvDesc_t desc = channelWise(taccConvForward, 81, 81, 3, 1, 1, 3);
    const double ofBlocks = makePlan(understand(desc), *kernels).plan->predictedSeconds();
    desc.algorithm = "planes";
    desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    EXPECT_LT(makePlan(understand(desc), *kernels).plan->predictedSeconds(), ofBlocks);
  }
}

TEST(DepthwiseStrips, GradientsOfHalfABlockCostLess) {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes == blockLength) continue;
    const auto secondsOf = [&](int channels) {
      const taccConvDesc_t desc = channelWise(taccConvBackwardWeights, 30, 30, 3, 1, 1, channels);
      return makePlan(understand(desc), *kernels).plan->predictedSeconds();
    };
    EXPECT_LT(secondsOf(8), 0.8 * secondsOf(16)) << kernels->isa;
  }
}

}  // namespace
}  // namespace tacc::conv::test
