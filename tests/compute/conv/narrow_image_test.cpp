// Images that are smaller than the kernel reaches: plans for the taps that are left, and for strides that mean nothing.
#include <gmock/gmock.h>

#include <array>
#include <random>

#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

TEST(NarrowImages, AreExactForAllKernels) {
  for (const taccConvPass_t pass : allPasses) {
    for (int size = 1; size <= 3; ++size) {
      for (int kernel = 2; kernel <= 9; ++kernel) {
        for (const int stride : {1, 2, 4}) {
          taccConvDesc_t desc = convolution(pass, 2, 20, size, size, 35, kernel, stride, kernel / 2);
          desc.accumulate = pass != taccConvForward && stride == 2;
          expectExactAsChosen(desc);
          desc.weightLayout = taccWeightsBlocked;
          expectExactAsChosen(desc);
        }
      }
    }
  }
}

/// Of tall ones tiles of pixels below each other are computed, forward and backward to the data.
TEST(NarrowImages, AreExactWhereTall) {
  std::mt19937 random(31);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 120; ++i) {
    const taccConvPass_t pass = i % 2 == 0 ? taccConvForward : taccConvBackwardData;
    const int kernel = from(1, 5), stride = from(1, 3);
    taccConvDesc_t desc =
        convolution(pass, from(1, 3), from(9, 40), from(12, 60), from(1, 5 * stride), from(9, 70), kernel, stride);
    desc.kernelWidth = from(1, 4);
    desc.padHeight = from(0, kernel / 2 + 1);
    desc.padWidth = from(desc.kernelWidth / 2, desc.kernelWidth);
    desc.dilationHeight = from(1, 2);
    if (i % 5 == 0) {
      desc.inChannels = desc.outChannels = 48;
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    }
    desc.algorithm = "direct";
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc);
    desc.maxWorkers = 3;
    expectExactAsChosen(desc, ThreadedExecutor(3).get());
  }
}

TEST(NarrowImages, AreExactForRandomShapes) {
  std::mt19937 random(30);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  constexpr taccLayout_t layouts[] = {taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc};
  for (int i = 0; i < 300; ++i) {
    const int groups = from(0, 1) == 0 ? from(2, 20) : 1;
    const bool isDepthwise = groups > 1 && from(0, 1) == 0;
    const int ins = isDepthwise ? groups : groups * from(1, groups > 1 ? 6 : 40);
    const int outs = isDepthwise ? groups : groups * from(1, groups > 1 ? 6 : 40);
    taccConvDesc_t desc = convolution(allPasses[i % 3], from(1, 3), ins, from(1, 4), from(1, 6), outs, 1);
    desc.kernelHeight = from(1, 11);
    desc.kernelWidth = from(1, 11);
    desc.strideHeight = from(1, 4);
    desc.strideWidth = from(1, 4);
    desc.dilationHeight = from(1, 3);
    desc.dilationWidth = from(1, 3);
    const auto padOf = [&](int kernel, int dilation, int size) {
      return std::max(from(0, dilation * kernel), (dilation * (kernel - 1) + 2 - size) / 2);
    };
    desc.padHeight = padOf(desc.kernelHeight, desc.dilationHeight, desc.height);
    desc.padWidth = padOf(desc.kernelWidth, desc.dilationWidth, desc.width);
    desc.groups = groups;
    desc.inputLayout = layouts[from(0, 2)];
    desc.outputLayout = layouts[from(0, 2)];
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc);
  }
}

TEST(NarrowImages, CountOnlyTapsThatAreInside) {
  // A kernel of 9x9 over one pixel reads no more weights than one of 1x1.
  taccConvDesc_t desc = convolution(taccConvForward, 1, 64, 1, 1, 64, 9, 1, 4);
  const Description wide = simplified(understand(desc));
  EXPECT_EQ(wide.shape.kernelHeight, 1);
  EXPECT_EQ(wide.shape.kernelWidth, 1);
  EXPECT_EQ(wide.shape.outHeight, 1);
  EXPECT_TRUE(wide.shape.isProduct());
  desc.strideHeight = 3;
  EXPECT_EQ(simplified(understand(desc)).shape.strideHeight, 1);
  desc.height = 3;
  const Description tall = simplified(understand(desc));
  EXPECT_EQ(tall.shape.kernelWidth, 3);  // the column of pixels is a line, and the one result sees all of it
  EXPECT_EQ(tall.shape.strideWidth, 1);
  EXPECT_EQ(tall.shape.padWidth, 0);
  EXPECT_EQ(tall.shape.kernelHeight, 1);
  EXPECT_EQ(tall.shape.width, 3);
  // An algorithm may still be asked for that only serves what the simpler shape does not have.
  desc = convolution(taccConvForward, 2, 20, 1, 1, 30, 1, 2);
  desc.algorithm = "strided-product";
  const Case test(desc);
  const ChosenPlan chosen = makePlan(test.description(), portableKernels());
  EXPECT_EQ(chosen.algorithm, "strided-product");
  EXPECT_TRUE(test.isRight(test.run(*chosen.plan, *taccSerialExecutor()), test.expected()));
}

TEST(NarrowImages, AKernelOverTheWholeImageIsAProduct) {
  std::mt19937 random(3);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const taccConvPass_t pass : allPasses) {
    for (int i = 0; i < 30; ++i) {
      taccConvDesc_t desc = convolution(pass, from(1, 20), from(1, 40), from(1, 6), from(1, 6), from(1, 70), 1);
      desc.kernelHeight = desc.height;
      desc.kernelWidth = desc.width;
      desc.strideHeight = from(1, 3);
      desc.inputLayout = taccLayoutNchw;
      desc.outputLayout = from(0, 1) == 0 ? taccLayoutNchw : taccLayoutNchw16c;
      chooseEpilogue(desc, random);
      const Description wide = simplified(understand(desc));
      EXPECT_TRUE(wide.shape.isProduct());
      EXPECT_EQ(wide.shape.inChannels, desc.inChannels * desc.height * desc.width);
      EXPECT_EQ(wide.inputLayout, taccLayoutNhwc);
      expectExactAsChosen(desc);
      desc.weightLayout = taccWeightsBlocked;  // in which inputs have another order
      expectExactAsChosen(desc);
    }
  }
}

TEST(NarrowImages, GradientsOfOnePixelAreOuterProducts) {
  std::mt19937 random(4);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const taccLayout_t layout : {taccLayoutNchw, taccLayoutNhwc, taccLayoutNchw16c}) {
    for (int i = 0; i < 30; ++i) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, from(1, 20), from(1, 90), 1, 1, from(1, 70), 1);
      if (layout == taccLayoutNchw16c) desc.inChannels = desc.outChannels = 16 * from(1, 5);
      desc.inputLayout = layout;
      desc.outputLayout = desc.outChannels % 16 == 0 && i % 2 == 0 ? taccLayoutNchw16c : layout;
      desc.accumulate = i % 2;
      desc.maxWorkers = from(1, 3);
      desc.algorithm = "outer-products";
      expectExactAsChosen(desc, ThreadedExecutor(desc.maxWorkers).get());
    }
  }
  taccConvDesc_t large = convolution(taccConvBackwardWeights, 2, 4096, 1, 1, 600, 1);  // stored non-temporally
  large.inputLayout = large.outputLayout = taccLayoutNhwc;
  large.algorithm = "outer-products";
  expectExactAsChosen(large);
}

TEST(NarrowImages, GradientsOfMostlyZerosAreThoseOfTheTapsThatAreLeft) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, 20, 40, 300, 1, 35, 7, 1, 3);
  EXPECT_EQ(simplified(understand(desc)).shape.kernelWidth, 7);
  EXPECT_EQ(simplified(understand(desc)).shape.kernelHeight, 1);
  desc.batch = 2;
  desc.height = 2;  // one result: it begins with the image
  desc.width = 2;
  desc.kernelHeight = desc.kernelWidth = 3;
  desc.padHeight = desc.padWidth = 1;
  desc.strideHeight = desc.strideWidth = 2;
  EXPECT_EQ(simplified(understand(desc)).shape.kernelWidth, 3);  // more weights than pixels
  desc.groups = 5;
  EXPECT_EQ(simplified(understand(desc)).shape.kernelWidth, 2);
  for (const auto& [ins, outs, groups] : {std::array{40, 35, 1}, {34, 54, 2}, {21, 21, 21}, {12, 24, 12}}) {
    for (const taccWeightLayout_t layout : {taccWeightsKcrs, taccWeightsBlocked}) {
      for (const int accumulate : {0, 1}) {
        desc.inChannels = ins;
        desc.outChannels = outs;
        desc.groups = groups;
        desc.weightLayout = layout;
        desc.accumulate = accumulate;
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST(NarrowImages, ColumnsOfPixelsAndProductsOfGroupsInEveryLayout) {
  for (const taccConvPass_t pass : allPasses) {
    for (const taccLayout_t layout : {taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc}) {
      for (const auto& [ins, outs, groups] : {std::array{20, 35, 1}, {3, 4, 1}, {21, 21, 21}, {24, 12, 4}}) {
        taccConvDesc_t desc = convolution(pass, 3, ins, 29, 1, outs, 5, 2, 2);
        desc.groups = groups;
        desc.inputLayout = desc.outputLayout = layout;
        expectExactAsChosen(desc);
        desc.width = 7;
        desc.kernelHeight = desc.kernelWidth = desc.strideHeight = desc.strideWidth = 1;
        desc.padHeight = desc.padWidth = 0;
        expectExactAsChosen(desc);
      }
    }
  }
}

/// The gradient of a single pixel's weights, of which nothing is summed.
TEST(NarrowImages, GradientsOfOnePixel) {
  for (const int ins : {1, 5, 16, 28, 40, 100}) {
    for (const int outs : {16, 20, 48, 96}) {
      for (const int groups : {1, 2}) {
        if (groups == 2 && (ins % 16 != 0 || outs % 16 != 0)) continue;
        taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, groups * ins, 1, 1, groups * outs, 1);
        desc.groups = groups;
        for (const taccWeightLayout_t layout : {taccWeightsKcrs, taccWeightsBlocked}) {
          desc.weightLayout = layout;
          for (const int accumulate : {0, 1}) {
            desc.accumulate = accumulate;
            // The only output may lie in the padding.
            for (const auto& [padHeight, padWidth] : {std::pair{1, 1}, {1, 0}, {0, 1}, {0, 0}}) {
              desc.padHeight = padHeight;
              desc.padWidth = padWidth;
              desc.strideHeight = desc.strideWidth = 3;
              expectExact(desc);
            }
            desc.strideHeight = desc.strideWidth = 1;
            expectExact(desc);
            desc.maxWorkers = 3;
            expectExactAsChosen(desc, ThreadedExecutor(3).get());
            desc.maxWorkers = 1;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
