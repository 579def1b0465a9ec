// Layers whose image has few channels: drawn ones, by the algorithm that reads the image where it is and copies lines
// only where kernels reach into the padding. Tensors lie between pages that may not be touched.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "between_pages.hpp"
#include "compute/conv/core_model.hpp"
#include "pass_name.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

/// Exact with every instruction set, with tensors at an end of their pages.
void expectFirstLayer(taccConvDesc_t desc, int workers, bool isAtEnd) {
  desc.algorithm = "few-channels";
  expectExactBetweenPages(desc, workers, isAtEnd);
}

class FirstLayers : public testing::TestWithParam<taccConvPass_t> {};

TEST_P(FirstLayers, AreExactForDrawnShapes) {
  std::mt19937 random(20);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 80; ++i) {
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 8), 1, 1, from(1, 70), 1);
    desc.kernelHeight = from(1, 9);
    desc.kernelWidth = from(1, 9);
    desc.strideHeight = from(1, 4);
    desc.strideWidth = from(1, 4);
    desc.dilationHeight = from(1, 2);
    desc.inputLayout = from(0, 1) == 0 ? taccLayoutNchw : taccLayoutNhwc;
    const bool canBeApart = GetParam() == taccConvForward || desc.inputLayout == taccLayoutNchw;
    desc.dilationWidth = canBeApart ? from(1, 3) : 1;
    // Now and then outputs that see nothing but padding.
    desc.padHeight = from(0, desc.kernelHeight);
    desc.padWidth = from(0, desc.kernelWidth + from(0, 5) / 5);
    // Of most images a large part is inside, and of some nothing.
    desc.height = std::max(from(1, 40), (desc.kernelHeight - 1) * desc.dilationHeight + 1 - 2 * desc.padHeight);
    desc.width = std::max(from(1, 90), (desc.kernelWidth - 1) * desc.dilationWidth + 1 - 2 * desc.padWidth);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    // Gradients of any number of channels, whose lines are as long as a block.
    const int reach = (desc.kernelWidth - 1) * desc.dilationWidth + 1;
    const int columns = (desc.width + 2 * desc.padWidth - reach) / desc.strideWidth + 1;
    const bool mayBeNhwc = GetParam() == taccConvForward || columns * desc.outChannels >= 16;
    if (mayBeNhwc && from(0, 1) == 0) desc.outputLayout = taccLayoutNhwc;
    chooseEpilogue(desc, random);
    expectFirstLayer(desc, i % 4 < 2 ? 1 : 3, i % 2 == 0);
  }
}

/// Whose gradients have tiles of half a block where that is a vector.
TEST_P(FirstLayers, AreExactForEveryFewOutputs) {
  std::mt19937 random(22);
  for (int outs = 1; outs <= 9; ++outs) {
    taccConvDesc_t desc = convolution(GetParam(), 2, 1 + outs % 4, 19, 23, outs, 5, 1 + outs % 3, outs % 3);
    desc.inputLayout = outs % 2 == 0 ? taccLayoutNchw : taccLayoutNhwc;
    if (outs % 4 > 1) desc.outputLayout = taccLayoutNhwc;
    for (const taccWeightLayout_t layout : {taccWeightsKcrs, taccWeightsBlocked}) {
      desc.weightLayout = layout;
      chooseEpilogue(desc, random);
      expectFirstLayer(desc, 1, false);
    }
  }
}

/// Whose gradients of the weights are summed over several images at once.
TEST_P(FirstLayers, AreExactForManySmallImages) {
  std::mt19937 random(21);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 40; ++i) {
    const int kernel = from(1, 5);
    taccConvDesc_t desc = convolution(GetParam(), from(4, 40), from(1, 6), from(kernel, 9), from(kernel, 9),
                                      from(1, 70), kernel, from(1, 3), from(0, kernel / 2));
    desc.inputLayout = from(0, 1) == 0 ? taccLayoutNchw : taccLayoutNhwc;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectFirstLayer(desc, i % 4 < 2 ? 1 : 3, i % 2 == 0);
  }
}

/// Whose taps are apart: a tap of its own each, or lines of every so many pixels, whatever the number of workers.
TEST(FirstLayersGradient, OfTapsThatAreApartIsTheSameBitsForEveryNumberOfThreads) {
  for (const int dilation : {2, 3}) {
    for (const int size : {9, 48}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 2, 3, size, size, 47, 3, 1, dilation);
      desc.dilationHeight = desc.dilationWidth = dilation;
      desc.inputLayout = taccLayoutNchw;
      desc.algorithm = "few-channels";
      expectSameBitsForEveryNumberOfThreads(desc, 4);
    }
  }
}

TEST_P(FirstLayers, OfNetworksAreExact) {
  struct Shape {
    int channels, size, outs, kernel, stride, pad;
  };
  for (const Shape& s :
       {Shape{3, 60, 16, 3, 2, 1}, Shape{3, 32, 16, 3, 1, 1}, Shape{3, 64, 32, 6, 2, 2}, Shape{1, 50, 64, 9, 1, 4},
        Shape{3, 64, 64, 7, 2, 3}, Shape{4, 84, 32, 8, 4, 0}, Shape{3, 70, 96, 11, 4, 2}, Shape{1, 28, 32, 5, 1, 2}}) {
    for (const taccLayout_t layout : {taccLayoutNchw, taccLayoutNhwc}) {
      taccConvDesc_t desc = convolution(GetParam(), 2, s.channels, s.size, s.size, s.outs, s.kernel, s.stride, s.pad);
      desc.inputLayout = layout;
      expectFirstLayer(desc, layout == taccLayoutNchw ? 1 : 3, true);
    }
  }
}

/// Workers take fewer blocks of outputs than one alone, in other tiles.
TEST_P(FirstLayers, AreTheSameBitsForEveryNumberOfThreads) {
  std::mt19937 random(22);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 24; ++i) {
    const int kernel = from(1, 7);
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 4), from(kernel, 40), from(kernel, 40),
                                      from(17, 130), kernel, from(1, 2), from(0, kernel / 2));
    desc.inputLayout = from(0, 1) == 0 ? taccLayoutNchw : taccLayoutNhwc;
    desc.algorithm = "few-channels";
    expectSameBitsForEveryNumberOfThreads(desc, 5);
  }
}

/// Of gradients of weights: whether a tile has the values of more than one line of the kernel, by the plan's name of
/// its tiles, "avx512 8x3".
bool joinsLines(const taccConvDesc_t& given, const KernelSet& kernels) {
  taccConvDesc_t desc = given;
  desc.algorithm = "few-channels";
  const std::string name = makePlan(understand(desc), kernels).plan->kernel();
  const int values = desc.kernelWidth * (desc.inputLayout == taccLayoutNhwc ? desc.inChannels : 1);
  return std::stoi(name.substr(name.find(' ') + 1)) > values;
}

/// A line by itself has few sums for each vector of the output's gradient that is read, which two lines share.
TEST(FirstLayerTiles, JoinLinesOfFewValues) {
  struct Shape {
    int channels, height, width, outs, kernelHeight, kernelWidth, stride;
    bool joins;
  };
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength) continue;
    for (const Shape& s : {Shape{2, 60, 60, 48, 2, 2, 2, true}, Shape{1, 100, 76, 7, 3, 3, 1, true},
                           Shape{1, 40, 40, 32, 1, 5, 1, false}, Shape{1, 40, 40, 48, 1, 2, 2, false}}) {
      for (const taccLayout_t layout : {taccLayoutNchw, taccLayoutNhwc}) {
        taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, s.channels, s.height, s.width, s.outs, 1);
        desc.kernelHeight = s.kernelHeight;
        desc.kernelWidth = s.kernelWidth;
        desc.strideHeight = desc.strideWidth = s.stride;
        desc.inputLayout = layout;
        EXPECT_EQ(joinsLines(desc, *kernels), s.joins) << understand(desc).shape.text() << " layout " << layout;
      }
    }
  }
}

/// Where vectors are half a block, a product that goes line by line through many blocks of a result waits for memory.
TEST(FirstLayerPrices, OfProductsHideLessOfResultsInMemory) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    const auto secondsOfPixel = [&](int outs, int size) {
      taccConvDesc_t desc = convolution(taccConvForward, 1, 3, size, size, outs, 1);
      desc.inputLayout = taccLayoutNchw;
      desc.algorithm = "few-channels";
      return makePlan(understand(desc), *kernels).plan->predictedSeconds() / size / size;
    };
    EXPECT_GT(secondsOfPixel(192, 248), 1.15 * secondsOfPixel(192, 62)) << kernels->isa;
  }
  pretendCoreModel(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Exact, FirstLayers, testing::Values(taccConvForward, taccConvBackwardWeights), passName);

}  // namespace
}  // namespace tacc::conv::test
