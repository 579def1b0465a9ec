// 1x1 convolutions of NCHW on both sides, in every pass: exactly what the definition says.
#include <array>
#include <random>

#include "between_pages.hpp"
#include "compute/conv/algorithms/plain_strips.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

TEST(PlainProduct, EveryTailAndEpilogue) {
  std::mt19937 random(12);
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData, taccConvBackwardWeights}) {
    for (const auto& [ins, outs] : {std::array{1, 1}, {16, 24}, {24, 15}, {3, 65}, {130, 40}, {7, 29}}) {
      // Pixels of no whole vector, of whole ones alone, of a strip and more, and one behind them.
      for (const auto& [height, width] : {std::array{1, 1}, {3, 5}, {4, 4}, {7, 7}, {8, 16}, {9, 21}, {13, 5}}) {
        for (int epilogue = 0; epilogue < 4; ++epilogue) {
          taccConvDesc_t desc = convolution(pass, 2, ins, height, width, outs, 1);
          desc.inputLayout = desc.outputLayout = taccLayoutNchw;
          desc.weightLayout = epilogue % 2 == 0 ? taccWeightsKcrs : taccWeightsBlocked;
          chooseEpilogue(desc, random);
          desc.algorithm = "plain-product";
          expectExactAsChosen(desc);
        }
      }
    }
  }
  taccConvDesc_t large = convolution(taccConvForward, 1, 3, 240, 320, 32, 1);  // stored non-temporally
  large.inputLayout = large.outputLayout = taccLayoutNchw;
  large.algorithm = "plain-product";
  expectExactAsChosen(large);
}

/// More pixels than are gone through at a time, aligned and not, by several workers.
TEST(PlainProduct, OfDrawnShapesOfManyPixels) {
  std::mt19937 random(97);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 36; ++i) {
    taccConvDesc_t desc = convolution(allPasses[i / 12], from(1, 2), from(1, 30), from(40, 130), 16, from(1, 30), 1);
    desc.width = i % 3 == 0 ? 16 * from(2, 7) : from(30, 120);
    desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    desc.weightLayout = taccWeightsKcrs;
    desc.maxWorkers = from(1, 4);
    chooseEpilogue(desc, random);
    desc.algorithm = "plain-product";
    expectExactAsChosen(desc);
  }
}

/// Few channels on one side, which are read where they lie, and many, which are copied; pixels of every rest of a
/// vector. Nothing behind the tensors is read.
TEST(PlainProduct, GradientsTouchNothingOutsideOfTheTensors) {
  std::mt19937 random(98);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int rest = 0; rest < 16; ++rest) {
    for (const int few : {1, 3, 7, 20}) {
      const int many = from(20, 50);
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, from(1, 2), rest % 2 == 0 ? few : many, 1,
                                        16 * from(1, 6) + rest, rest % 2 == 0 ? many : few, 1);
      desc.inputLayout = desc.outputLayout = taccLayoutNchw;
      desc.weightLayout = taccWeightsKcrs;
      desc.accumulate = from(0, 1) == 1;
      desc.algorithm = "plain-product";
      expectExactBetweenPages(desc, from(1, 3), rest % 4 < 2);
    }
  }
}

/// Lines of 14 x 14 pixels are no whole ones of the cache, of 12 x 16 they are: of many values that costs half vectors
/// more, but where what is read is copied.
TEST(PlainProductPrices, CutLinesCostHalfVectorsMoreOfManyValues) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
      const auto ofCut = [&](int values, int kernel) {
        const auto ofPixel = [&](int height, int width) {
          const int ins = pass == taccConvForward ? values : 48, outs = pass == taccConvForward ? 48 : values;
          taccConvDesc_t desc = convolution(pass, 1, ins, height, width, outs, kernel, 1, kernel / 2);
          desc.inputLayout = desc.outputLayout = taccLayoutNchw;
          desc.algorithm = "plain-product";
          return makePlan(understand(desc), *kernels).plan->predictedSeconds() / (height * width);
        };
        return ofPixel(14, 14) / ofPixel(12, 16);
      };
      const bool areHalves = kernels->fmaLanes == blockLength / 2;
      EXPECT_LT(ofCut(64, 1), 1.1) << kernels->isa;  // a part of a vector at the end
      EXPECT_EQ(ofCut(1024, 1) > 1.2, areHalves) << kernels->isa;
      if (pass == taccConvForward) {
        EXPECT_LT(ofCut(100, 3), 1.12) << kernels->isa;
      }
    }
  }
  pretendCoreModel(nullptr);
}

/// What tiles go through before the next one is read from the L2 cache by those behind the first.
TEST(PlainProductStrips, StayInTheL2Cache) {
  std::mt19937 random(31);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const KernelSet* kernels : availableKernels()) {
    for (int i = 0; i < 50; ++i) {
      const int values = from(1, 3000);
      const PlainStrips strips(*kernels, values, from(1, 300), from(1, 5000));
      const auto bytes = static_cast<std::size_t>(strips.stripPixels() * values) * sizeof(float);
      const auto together = static_cast<std::size_t>(strips.stripsTogether());
      EXPECT_TRUE(together == 1 || together * bytes <= l2CacheBytes()) << values << " values, " << kernels->isa;
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
