// Every algorithm on every instruction set gives exactly what the definition says: integers small enough that all sums
// are exact.
#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"
#include "pass_name.hpp"

namespace tacc::conv::test {
namespace {

class Pass : public testing::TestWithParam<taccConvPass_t> {};

TEST_P(Pass, EveryWidthOfTiles) {
  for (int width = 1; width <= 31; ++width) {
    expectExact(convolution(GetParam(), 1, 16, 3, width, 32, 1));
    expectExact(convolution(GetParam(), 1, 16, 3, width, 32, 3, 1, 1));
  }
}

TEST_P(Pass, EveryNumberOfChannels) {
  for (int channels = 1; channels <= 50; channels += 3) {
    expectExact(convolution(GetParam(), 1, channels, 5, 9, 32, 3, 1, 1));
    expectExact(convolution(GetParam(), 1, 32, 5, 9, channels, 3, 1, 1));
    expectExact(convolution(GetParam(), 2, channels, 4, 4, channels + 1, 1));
  }
}

TEST_P(Pass, BlocksOfOutputs) {
  for (int blocks = 1; blocks <= 13; ++blocks) expectExact(convolution(GetParam(), 1, 16, 4, 6, 16 * blocks, 1));
}

TEST_P(Pass, KernelsPadsAndStrides) {
  for (const int kernel : {1, 2, 3, 5, 7}) {
    for (int pad = 0; pad <= 3; ++pad) {
      for (int stride = 1; stride <= 4; ++stride)
        expectExact(convolution(GetParam(), 1, 18, 11, 15, 20, kernel, stride, pad));
    }
  }
}

TEST_P(Pass, StridedProductsOfManyImages) {
  for (int batch = 1; batch <= 4; ++batch) expectExact(convolution(GetParam(), batch, 20, 9, 12, 33, 1, 2, 0));
  expectExact(convolution(GetParam(), 6, 128, 64, 64, 16, 1, 2, 0));  // two images at once
}

TEST_P(Pass, WideKernelsOnNarrowImages) {
  // Masks that leave out up to five pixels at either end, of tiles of every width.
  for (int width = 1; width <= 19; width += width < 12 ? 1 : 3) {
    for (const int kernel : {6, 7, 9, 11, 13}) {
      for (const int outs : {16, 64}) {
        taccConvDesc_t desc = convolution(GetParam(), 1, 17, 5, width, outs, kernel, 1, kernel / 2);
        desc.kernelHeight = 3;
        desc.padHeight = 1;
        expectExact(desc);
      }
    }
    expectExact(convolution(GetParam(), 2, 16, 6, width, 40, 7, 1, 6));
    expectExact(convolution(GetParam(), 1, 16, 6, width, 32, 9, 2, 4));
  }
}

TEST_P(Pass, InNhwc) {
  std::mt19937 random(10);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  constexpr taccLayout_t layouts[] = {taccLayoutNhwc, taccLayoutNhwc, taccLayoutNchw16c};
  for (int i = 0; i < 100; ++i) {
    const int groups = from(0, 4) == 0 ? from(2, 3) : 1;
    const bool isDepthwise = groups == 1 && from(0, 2) == 0;
    const int blocks = 16 * from(1, 6);
    const int ins = groups * (groups == 1 && from(0, 1) == 0 ? from(1, 70) : 16 * from(1, 4));
    taccConvDesc_t desc = convolution(GetParam(), from(1, 4), isDepthwise ? blocks : ins, from(1, 12), from(1, 20),
                                      isDepthwise ? blocks : groups * blocks, 1);
    if (from(0, 3) != 0) chooseKernel(desc, random);
    if (from(0, 6) == 0) desc.height = desc.width = desc.kernelHeight = desc.kernelWidth = 1;  // a line of images
    if (isDepthwise) {  // other kernels are reordered
      desc.kernelWidth = from(0, 1) == 0 ? 3 : 5;
      desc.strideWidth = from(1, 2);
      desc.dilationWidth = 1;
      desc.padWidth = from(0, desc.kernelWidth - 1);
      desc.width = from(desc.kernelWidth, 40);
    }
    desc.groups = isDepthwise ? desc.inChannels : groups;
    desc.inputLayout = layouts[from(0, 2)];
    desc.outputLayout = desc.inputLayout == taccLayoutNhwc ? layouts[from(0, 2)] : taccLayoutNhwc;
    if (GetParam() == taccConvBackwardData) std::swap(desc.inChannels, desc.outChannels);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExact(desc);
  }
  taccConvDesc_t large = convolution(GetParam(), 1, 32, 230, 310, 32, 1);  // stored non-temporally
  large.inputLayout = large.outputLayout = taccLayoutNhwc;
  expectExact(large);
}

TEST_P(Pass, DepthwiseInNhwcOfPixelsThatShareSets) {
  // Lines of pixels 2 KiB or a multiple of it apart are copied, some at a time, before they are read.
  std::mt19937 random(13);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const int channels : {512, 1024}) {
    for (const int kernel : {3, 5}) {
      for (const int stride : {1, 2}) {
        taccConvDesc_t desc =
            convolution(GetParam(), 1, channels, from(12, 20), from(30, 50), channels, kernel, stride);
        desc.groups = channels;
        desc.kernelHeight = from(1, 5);
        desc.strideHeight = from(1, 3);
        desc.dilationHeight = from(1, 3);
        desc.padHeight = from(0, 6);
        desc.padWidth = from(0, kernel - 1);
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        chooseEpilogue(desc, random);
        desc.algorithm = "depthwise";
        expectExactAsChosen(desc);  // where the caches of this CPU are far, they are not copied
        pretendCoreModel(&nearCore);
        EXPECT_GT(makePlan(understand(desc), *availableKernels().front()).plan->workspaceBytes(), 0U);
        expectExactAsChosen(desc);
        pretendCoreModel(nullptr);
        desc.inputLayout = taccLayoutNchw16c;
        expectExactAsChosen(desc);
        std::swap(desc.inputLayout, desc.outputLayout);
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST_P(Pass, StridedProductsInNhwc) {
  std::mt19937 random(11);
  for (const auto& [ins, outs] : {std::array{16, 16}, {64, 32}, {32, 80}, {256, 16}}) {
    for (const auto& [strideHeight, strideWidth] : {std::array{2, 2}, {3, 2}, {1, 2}, {2, 1}}) {
      for (const taccLayout_t other : {taccLayoutNhwc, taccLayoutNchw16c}) {
        // With lines and columns behind the last one that is read, and without.
        taccConvDesc_t desc = convolution(GetParam(), 3, ins, 7 + strideHeight, 10, outs, 1);
        desc.strideHeight = strideHeight;
        desc.strideWidth = strideWidth;
        desc.inputLayout = taccLayoutNhwc;
        desc.outputLayout = other;
        chooseEpilogue(desc, random);
        desc.algorithm = "strided-product";
        expectExactAsChosen(desc);
        if (GetParam() == taccConvBackwardData) continue;  // it writes whole blocks
        desc.inChannels = ins - 5;
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST_P(Pass, StridedProductsOfPlanes) {
  std::mt19937 random(14);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 40; ++i) {
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 40), from(1, 12), from(1, 40), from(1, 40), 1);
    desc.strideHeight = from(1, 3);
    desc.strideWidth = desc.strideHeight == 1 ? from(2, 4) : from(1, 4);
    // One line or column of results takes no stride: that is another shape then.
    desc.height = std::max(desc.height, desc.strideHeight + 1);
    desc.width = std::max(desc.width, desc.strideWidth + 1);
    desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    desc.algorithm = "strided-product";
    expectExactAsChosen(desc);
  }
}

TEST_P(Pass, PadsLargerThanTheKernel) { expectExact(convolution(GetParam(), 1, 16, 5, 6, 16, 3, 1, 5)); }

TEST(BackwardWeights, ProductsThatFindOnlyPadding) {
  // The stride steps over the image, and workers share the blocks of the input's channels.
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, 2, 168, 1, 1, 35, 1, 2, 1);
  desc.maxWorkers = 4;
  expectExact(desc);
  // Lines so long that each goes by itself; the first one is padding, and the others are added to it.
  taccConvDesc_t wide = convolution(taccConvBackwardWeights, 1, 32, 2, 5000, 32, 1, 1, 1);
  wide.algorithm = "direct";
  expectExactAsChosen(wide);
}

TEST_P(Pass, UnequalInBothDirections) {
  taccConvDesc_t desc = convolution(GetParam(), 2, 17, 13, 9, 33, 3);
  desc.kernelHeight = 5;
  desc.strideHeight = 2;
  desc.padHeight = 2;
  desc.strideWidth = 3;
  desc.padWidth = 1;
  expectExact(desc);
  desc.kernelHeight = 1;
  desc.kernelWidth = 7;
  desc.padWidth = 3;
  desc.padHeight = 0;
  expectExact(desc);
}

TEST_P(Pass, Dilation) {
  for (int dilation = 1; dilation <= 4; ++dilation) {
    for (const int stride : {1, 2}) {
      taccConvDesc_t desc = convolution(GetParam(), 1, 16, 14, 13, 32, 3, stride, dilation);
      desc.dilationHeight = desc.dilationWidth = dilation;
      expectExact(desc);
    }
  }
}

TEST_P(Pass, Groups) {
  for (const auto& [groups, ins, outs] : {std::array{2, 32, 64}, {3, 48, 96}, {2, 6, 10}, {4, 64, 32}, {5, 5, 10}}) {
    taccConvDesc_t desc = convolution(GetParam(), 2, ins, 7, 8, outs, 3, 1, 1);
    desc.groups = groups;
    expectExact(desc);
    desc.weightLayout = taccWeightsBlocked;
    expectExact(desc);
  }
}

TEST_P(Pass, GroupsThatCutBlocks) {
  for (const auto& [groups, ins, outs] : {std::array{8, 4, 4},
                                          {4, 8, 8},
                                          {5, 3, 7},
                                          {3, 20, 80},
                                          {3, 80, 20},
                                          {12, 1, 2},
                                          {6, 5, 5},
                                          {2, 17, 40},
                                          {21, 1, 23},
                                          {3, 2, 32}}) {
    for (const int stride : {1, 2}) {
      taccConvDesc_t desc = convolution(GetParam(), 2, groups * ins, 9, 17, groups * outs, 3, stride, 1);
      desc.groups = groups;
      expectExact(desc);
      desc.weightLayout = taccWeightsBlocked;
      desc.accumulate = GetParam() != taccConvForward;
      expectExact(desc);
      desc.kernelHeight = desc.kernelWidth = 1;
      desc.padHeight = desc.padWidth = 0;
      expectExact(desc);
    }
  }
}

TEST_P(Pass, Depthwise) {
  for (const int channels : {16, 32, 21}) {
    for (const int stride : {1, 2}) {
      for (const int pad : {0, 1, 2}) {
        taccConvDesc_t desc = convolution(GetParam(), 2, channels, 10, 19, channels, 3, stride, pad);
        desc.groups = channels;
        expectExact(desc);
        desc.weightLayout = taccWeightsBlocked;
        desc.accumulate = GetParam() != taccConvForward;
        expectExact(desc);
      }
    }
  }
}

TEST_P(Pass, DepthwiseOfEveryWidth) {
  // Every place of a strip's ends, with the padding of the usual layers and others.
  for (const int kernel : {3, 5, 7}) {
    for (const int stride : {1, 2}) {
      for (const int pad : {0, 1, kernel / 2, kernel - 1, kernel}) {
        for (int width = 7; width <= 57; width += width < 33 ? 1 : 6) {
          taccConvDesc_t desc = convolution(GetParam(), 1, 17, 7, width, 17, kernel, stride, pad);
          desc.groups = 17;
          expectExact(desc);
        }
      }
    }
  }
}

TEST_P(Pass, DepthwiseWithDilation) {
  for (const int kernel : {3, 5, 7}) {
    for (const int dilation : {2, 3}) {
      const int reach = dilation * (kernel - 1);
      for (const int pad : {0, 1, reach / 2, reach, reach + 1}) {
        for (int width = reach + 1; width <= reach + 31; width += width < reach + 17 ? 2 : 7) {
          taccConvDesc_t desc = convolution(GetParam(), 1, 17, reach + 2, width, 17, kernel, 1, pad);
          desc.dilationHeight = desc.dilationWidth = dilation;
          desc.groups = 17;
          expectExact(desc);
        }
      }
    }
  }
}

TEST_P(Pass, DepthwiseWithWideStrides) {
  for (const int kernel : {2, 3, 4, 5, 7, 9}) {
    for (const int stride : {3, 4}) {
      for (const int pad : {0, kernel / 2, kernel - 1}) {
        for (int width = 9; width <= 93; width += 12) {
          taccConvDesc_t desc = convolution(GetParam(), 1, 17, 9, width, 17, kernel, stride, pad);
          desc.groups = 17;
          expectExact(desc);
        }
      }
    }
  }
}

TEST_P(Pass, DepthwiseInParts) {
  // Kernels that are as wide as several that there are.
  for (int kernel = 1; kernel <= 16; ++kernel) {
    for (const int stride : {1, 2}) {
      for (const int pad : {0, kernel / 2, kernel - 1}) {
        for (const int width : {kernel, 17, 30}) {
          taccConvDesc_t desc = convolution(GetParam(), 2, 20, 6, std::max(width, kernel), 20, kernel, stride, pad);
          desc.kernelHeight = 2;
          desc.padHeight = 1;
          desc.groups = 20;
          desc.bias = desc.residual = desc.relu = GetParam() == taccConvForward;
          desc.accumulate = GetParam() != taccConvForward && kernel % 2 == 0;
          expectExact(desc);
        }
      }
    }
  }
  taccConvDesc_t large = convolution(GetParam(), 1, 17, 60, 90, 17, 8, 1, 4);  // some lines at a time
  large.groups = 17;
  expectExact(large);
}

TEST_P(Pass, DepthwiseOfRandomShapes) {
  std::mt19937 random(3);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 60; ++i) {
    const int channels = from(2, 200);
    taccConvDesc_t desc =
        convolution(GetParam(), from(1, 3), channels, from(1, 24), from(1, 40), channels, from(1, 11), from(1, 3));
    desc.groups = channels;
    if (from(0, 1) == 0) desc.kernelHeight = from(1, 11);
    if (from(0, 2) == 0) desc.strideHeight = from(1, 3);
    desc.padHeight = from(0, desc.kernelHeight);
    desc.padWidth = from(0, desc.kernelWidth);
    desc.dilationHeight = from(0, 2) == 0 ? from(1, 3) : 1;
    desc.dilationWidth = from(0, 2) == 0 ? from(1, 3) : 1;
    desc.height = std::max(desc.height, desc.dilationHeight * (desc.kernelHeight - 1) + 1);
    desc.width = std::max(desc.width, desc.dilationWidth * (desc.kernelWidth - 1) + 1);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExact(desc);
  }
}

TEST_P(Pass, DepthwiseStoredNonTemporally) {
  for (const int stride : {1, 2}) {
    taccConvDesc_t desc = convolution(GetParam(), 3, 70, 120, 100 * stride, 70, 3, stride, 1);
    desc.groups = 70;
    expectExact(desc);
  }
}

TEST_P(Pass, BlockedWeights) {
  for (const int channels : {3, 16, 40}) {
    taccConvDesc_t desc = convolution(GetParam(), 1, channels, 6, 7, channels + 5, 3, 1, 1);
    desc.weightLayout = taccWeightsBlocked;
    expectExact(desc);
  }
}

TEST_P(Pass, BatchesAndManyChannels) {
  expectExact(convolution(GetParam(), 1, 480, 4, 4, 32, 3, 1, 1));  // several chunks of input channels
  expectExact(convolution(GetParam(), 1, 32, 4, 4, 480, 3, 1, 1));
  expectExact(convolution(GetParam(), 5, 48, 6, 6, 32, 1));    // several images at once
  expectExact(convolution(GetParam(), 1, 64, 48, 70, 16, 1));  // several parts of an image
  expectExact(convolution(GetParam(), 1, 16, 70, 48, 64, 1, 2));
  expectExact(convolution(GetParam(), 1, 40, 5, 6, 33, 1));         // whole blocks and a part of one
  expectExact(convolution(GetParam(), 1, 480, 4, 4, 80, 3, 1, 1));  // more weights than half of any L2 cache
  expectExact(convolution(GetParam(), 1, 32, 15, 14, 16, 1, 2));    // short lines, every second pixel
  expectExact(convolution(GetParam(), 1, 40, 79, 75, 88, 1, 2));    // more than any L2 cache: line by line
}

TEST_P(Pass, ResultsStoredNonTemporally) {
  for (const CoreModel* model : {&meshCore, &nearCore}) {  // of which the latter stores products through the caches
    pretendCoreModel(model);
    expectExact(convolution(GetParam(), 1, 17, 230, 300, 17, 1));
    expectExact(convolution(GetParam(), 1, 17, 230, 300, 17, 3, 2, 1));  // backward to the data in four phases
    pretendCoreModel(nullptr);
  }
}

TEST_P(Pass, Accumulates) {
  taccConvDesc_t desc = convolution(GetParam(), 2, 20, 9, 9, 40, 3, 2, 1);
  if (desc.pass == taccConvForward) {
    desc.residual = 1;
  } else {
    desc.accumulate = 1;
  }
  expectExact(desc);
  desc.weightLayout = taccWeightsBlocked;
  expectExact(desc);
  desc.strideHeight = desc.strideWidth = 1;
  desc.inChannels = 480;
  desc.height = desc.width = 4;
  expectExact(desc);
}

INSTANTIATE_TEST_SUITE_P(Exact, Pass, testing::ValuesIn(allPasses), passName);

TEST(FirstLayer, FewChannelsInBothLayouts) {
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardWeights}) {
    for (const taccLayout_t layout : {taccLayoutNchw, taccLayoutNhwc}) {
      for (int channels = 1; channels <= 8; ++channels) {
        taccConvDesc_t desc = convolution(pass, 2, channels, 13, 21, 20, 7, 2, 3);
        desc.inputLayout = layout;
        expectExact(desc);
        desc.padHeight = desc.padWidth = 0;
        desc.weightLayout = taccWeightsBlocked;
        expectExact(desc);
      }
      for (int stride = 1; stride <= 5; ++stride) {
        for (const int dilation : {1, 2}) {
          taccConvDesc_t desc = convolution(pass, 2, 3, 19, 33, 50, 3, stride, dilation);
          desc.inputLayout = layout;
          desc.dilationHeight = dilation;
          expectExact(desc);
        }
      }
      for (int channels = 1; channels <= 8; ++channels) {  // to NHWC, of whole blocks
        for (const int outs : {16, 80}) {
          taccConvDesc_t desc = convolution(pass, 2, channels, 14, 23, outs, 3 + channels % 3, 1 + channels % 2, 1);
          desc.inputLayout = layout;
          desc.outputLayout = taccLayoutNhwc;
          desc.accumulate = pass == taccConvBackwardWeights && outs == 80;
          desc.bias = desc.residual = pass == taccConvForward;
          expectExact(desc);
        }
      }
      taccConvDesc_t large = convolution(pass, 1, 3, 230, 300, 17, 3, 1, 1);
      large.inputLayout = layout;
      expectExact(large);
      large.outChannels = 32;
      large.outputLayout = taccLayoutNhwc;
      expectExact(large);
      taccConvDesc_t tall = convolution(pass, 1, 3, 50, 330, 16, 11, 4, 1);  // lines in several parts
      tall.inputLayout = layout;
      tall.accumulate = pass == taccConvBackwardWeights;
      expectExact(tall);
    }
  }
}

TEST(Epilogue, AllCombinations) {
  for (int which = 0; which < 20; ++which) {
    for (const int outs : {16, 27}) {
      taccConvDesc_t desc = convolution(taccConvForward, 1, 48, 4, 5, outs, 3, 1, 1);
      desc.bias = which & 1;
      desc.residual = (which >> 1) & 1;
      desc.activation = allActivations[which >> 2];
      expectExact(desc);
      desc.inChannels = 480;  // several chunks: the epilogue comes once
      expectExact(desc);
      desc.groups = 2;
      desc.inChannels = 64;
      desc.outChannels = 32;
      expectExact(desc);
      desc.groups = desc.outChannels = 64;
      expectExact(desc);
      desc.groups = 8;
      desc.outChannels = 40;
      expectExact(desc);
      desc = convolution(taccConvForward, 1, 3, 9, 9, outs, 3, 1, 1);
      desc.inputLayout = taccLayoutNchw;
      desc.bias = which & 1;
      desc.residual = (which >> 1) & 1;
      desc.activation = allActivations[which >> 2];
      expectExact(desc);
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
