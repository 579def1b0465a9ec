// Where a vector is half a block, as with AVX2, a last block of at most 8 channels is computed by half, and gradients
// of weights in tiles of a block and a half: the same numbers, zeros where there is no channel, and for less.
#include <gmock/gmock.h>

#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

TEST(HalfBlocks, AreExactAtEveryWidthAndEnd) {
  std::mt19937 random(24);
  for (const taccConvPass_t pass : allPasses) {
    for (const int channels : {1, 5, 8, 17, 24, 25, 40, 53, 72}) {
      for (const int width : {1, 2, 3, 4, 5, 7, 9, 13, 14, 16, 23}) {
        for (const auto& [kernel, stride, pad] : {std::array{1, 1, 0}, {1, 2, 0}, {3, 1, 1}, {3, 2, 1}, {5, 1, 4}}) {
          taccConvDesc_t desc = convolution(pass, 1, 20, 5, width + kernel - 1, channels, kernel, stride, pad);
          if (pass == taccConvBackwardData) std::swap(desc.inChannels, desc.outChannels);
          chooseEpilogue(desc, random);
          desc.algorithm = "direct";
          expectExactAsChosen(desc);
        }
      }
    }
  }
}

TEST(HalfBlocks, OfGradientsAreExactOfEveryNumberOfRowsAndOutputs) {
  for (int outs = 2; outs <= 152; outs += outs < 8 ? 6 : outs < 80 ? 8 : 24) {
    for (const int ins : {1, 7, 16, 18, 19, 40, 150}) {
      for (const int kernel : {1, 3}) {
        taccConvDesc_t desc = convolution(taccConvBackwardWeights, 2, ins, 6, 7, outs, kernel, 1, kernel / 2);
        desc.accumulate = outs % 16 == 0;
        desc.weightLayout = outs % 24 == 0 ? taccWeightsKcrs : taccWeightsBlocked;
        desc.algorithm = "direct";
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST(HalfBlocks, OfGradientsOfGroupsAreExact) {
  for (const int groups : {2, 3, 8}) {
    for (const int ofGroup : {5, 8}) {
      for (const auto& [kernel, stride] : {std::array{1, 1}, {1, 2}, {2, 1}, {5, 2}}) {
        taccConvDesc_t desc =
            convolution(taccConvBackwardWeights, 2, groups * ofGroup, 11, 13, groups * 8, kernel, stride, kernel / 2);
        desc.groups = groups;
        desc.accumulate = kernel == 2;
        desc.algorithm = "grouped";
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST(HalfBlocks, OfGradientsAreExactOfPixelsInSeveralParts) {
  for (const int outs : {8, 16, 24, 40, 48, 72}) {
    for (const int ins : {5, 16, 20, 48}) {
      for (const auto& [height, width] : {std::array{1, 129}, {14, 14}, {19, 21}}) {
        taccConvDesc_t desc = convolution(taccConvBackwardWeights, 2, ins, height, width, outs, 1);
        desc.accumulate = ins % 16 == 0;
        desc.weightLayout = outs % 16 == 0 ? taccWeightsKcrs : taccWeightsBlocked;
        desc.algorithm = "direct";
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST(HalfBlocks, OfGradientsAreExactOfLinesThatTheCacheKeeps) {
  std::mt19937 random(41);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 12; ++i) {
    const int width = from(1, 90), height = from(900, 2500) / width;
    taccConvDesc_t desc = convolution(taccConvBackwardWeights, from(1, 2), from(1, 40), height, width, from(1, 60), 1);
    desc.weightLayout = i % 3 == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    desc.algorithm = "direct";
    expectExactAsChosen(desc);
  }
}

TEST(HalfBlocks, AreExactWithSeveralThreads) {
  // Tiles that share a block stay in one task, also where taps outside of a small image are zeros that a task writes.
  for (const int outs : {24, 48, 136, 200}) {
    for (const auto& [size, kernel] : {std::array{1, 5}, {2, 9}, {9, 3}, {11, 1}}) {
      for (const int workers : {2, 3, 7}) {
        for (const taccConvPass_t pass : allPasses) {
          taccConvDesc_t desc = convolution(pass, 1, 40, size, size, outs, kernel, 1, kernel / 2);
          desc.weightLayout = taccWeightsBlocked;
          desc.maxWorkers = workers;
          desc.algorithm = "direct";
          expectExactAsChosen(desc, ThreadedExecutor(workers).get());
        }
      }
    }
  }
}

TEST(HalfBlocks, CostLess) {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->halfPixelLimit[1] == 0) continue;
    for (const taccConvPass_t pass : allPasses) {
      const auto secondsOf = [&](int channels) {
        taccConvDesc_t desc = convolution(pass, 1, 144, 56, 56, channels, 1);
        if (pass == taccConvBackwardData) std::swap(desc.inChannels, desc.outChannels);
        if (channels <= blockLength) desc.algorithm = "direct";  // there are others for few channels
        const ChosenPlan chosen = makePlan(understand(desc), *kernels);
        EXPECT_EQ(chosen.algorithm, "direct");
        if (channels == 24) {
          EXPECT_THAT(chosen.plan->kernel(), testing::HasSubstr("x1.5"));
        }
        return chosen.plan->predictedSeconds();
      };
      EXPECT_LT(secondsOf(8), 0.8 * secondsOf(16)) << kernels->isa << " pass " << pass;
      EXPECT_LT(secondsOf(24), 0.85 * secondsOf(32)) << kernels->isa << " pass " << pass;
      EXPECT_LT(secondsOf(40), 0.92 * secondsOf(48)) << kernels->isa << " pass " << pass;
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
