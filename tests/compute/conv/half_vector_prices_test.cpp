// Prices of vectors of half a block where caches are near, as measured on a Zen 3: of what strides leave out, groups
// that are gone through one after the other, tall kernels, and few outputs.
#include <gmock/gmock.h>

#include <functional>

#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

class HalfVectorPrices : public testing::Test {
 protected:
  HalfVectorPrices() { pretendCoreModel(&nearCore); }
  ~HalfVectorPrices() override { pretendCoreModel(nullptr); }

  static void forHalfVectors(const std::function<void(const KernelSet&)>& expect) {
    for (const KernelSet* kernels : availableKernels()) {
      if (2 * kernels->fmaLanes == blockLength) expect(*kernels);
    }
  }
  static double secondsOf(taccConvDesc_t desc, const KernelSet& kernels, const char* algorithm) {
    desc.algorithm = algorithm;
    return makePlan(understand(desc), kernels).plan->predictedSeconds();
  }
  static taccConvDesc_t channelWise(taccConvPass_t pass, int batch, int channels, int size, int kernel, int stride) {
    taccConvDesc_t desc = convolution(pass, batch, channels, size, size, channels, kernel, stride, kernel / 2);
    desc.groups = channels;
    return desc;
  }
};

/// A line of the cache that is read between others, of each pixel: nothing brings it in time.
TEST_F(HalfVectorPrices, PixelsBetweenStridesCostTheirWay) {
  const taccConvDesc_t forward = channelWise(taccConvForward, 2, 24, 96, 3, 4);
  const taccConvDesc_t weights = [] {
    taccConvDesc_t desc = convolution(taccConvBackwardWeights, 16, 11, 50, 50, 8, 2, 4);
    desc.weightLayout = taccWeightsBlocked;
    return desc;
  }();
  forHalfVectors([&](const KernelSet& kernels) {
    constexpr double linesRead = 2 * 2 * 72.0 * 72, linesOfTaps = 16 * 144.0 * 4;
    EXPECT_GE(secondsOf(forward, kernels, "depthwise"), 5 * linesRead / assumedHertz) << kernels.isa;
    EXPECT_GE(secondsOf(weights, kernels, "direct"), 16 * linesOfTaps / assumedHertz) << kernels.isa;
    EXPECT_EQ(makePlan(understand(weights), kernels).algorithm, "few-outputs") << kernels.isa;
  });
}

/// Of 3 MB in the L2 cache's place and of 172 MB in memory's: a pixel of the latter is brought anew for each group.
TEST_F(HalfVectorPrices, GroupsOfGradientsBringPixelsFromMemoryAnew) {
  const auto cycles = [](const KernelSet& kernels, int size) {
    taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 205, size, size, 410, 3, 1, 1);
    desc.groups = 41;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    return secondsOf(desc, kernels, "direct") * assumedHertz / (double(size) * size);  // of a pixel
  };
  forHalfVectors([&](const KernelSet& kernels) {
    constexpr double linesOfPixel = 41 * (1.25 + 1.5625);
    EXPECT_GE(cycles(kernels, 187), cycles(kernels, 60) + 20 * linesOfPixel) << kernels.isa;
  });
}

/// A product goes through an image once, of which hardware brings a part in time; and what is little more than the last
/// cache is there still for the most part.
TEST_F(HalfVectorPrices, GroupsOfProductsBringPixelsFromMemoryTheMoreTheLarger) {
  constexpr int channels = 288, groups = 8;
  constexpr double linesOfPixel = groups * 2 * (1 + (channels / groups - 1.0) / blockLength);
  const auto cycles = [](const KernelSet& kernels, int size) {
    taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, channels, size, size, channels, 1);
    desc.groups = groups;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    return secondsOf(desc, kernels, "direct") * assumedHertz / (double(size) * size) / linesOfPixel;
  };
  forHalfVectors([&](const KernelSet& kernels) {
    const double ofCache = cycles(kernels, 80), ofLittleMore = cycles(kernels, 90), ofMuchMore = cycles(kernels, 160);
    EXPECT_GE(ofLittleMore, ofCache) << kernels.isa;
    EXPECT_LE(ofLittleMore, ofCache + 2) << kernels.isa;
    EXPECT_NEAR(ofMuchMore, ofCache + 8.5, 0.5) << kernels.isa;
  });
}

/// Nine lines of the image are in the L2 cache, where seven narrower ones are in the L1 cache.
TEST_F(HalfVectorPrices, GradientsOfTallKernelsWaitForLinesOfTheImage) {
  const auto ofProduct = [](const KernelSet& kernels, int kernel, int size) {
    return secondsOf(channelWise(taccConvBackwardWeights, 1, 16, size, kernel, 1), kernels, "depthwise") /
           (double(kernel) * kernel * size * size);
  };
  forHalfVectors([&](const KernelSet& kernels) {
    EXPECT_GE(ofProduct(kernels, 9, 272), 1.15 * ofProduct(kernels, 7, 60)) << kernels.isa;
  });
}

/// A result of more than the caches is read before it is written between zeros, and written past them from copies.
TEST_F(HalfVectorPrices, DataBetweenZerosIsCopiedWhereItLeavesTheCaches) {
  const auto desc = [](taccLayout_t layout, int batch) {
    taccConvDesc_t data = convolution(taccConvBackwardData, batch, 1760, 39, 39, 2, 1, 3);
    data.inputLayout = data.outputLayout = layout;
    return data;
  };
  forHalfVectors([&](const KernelSet& kernels) {
    constexpr double bytes = 8 * 4.0 * 1760 * 39 * 39;
    EXPECT_GE(secondsOf(desc(taccLayoutNhwc, 8), kernels, "short-sums"), bytes / (6 * assumedHertz)) << kernels.isa;
    EXPECT_LE(secondsOf(desc(taccLayoutNchw16c, 8), kernels, "strided-product"),
              0.7 * secondsOf(desc(taccLayoutNhwc, 8), kernels, "short-sums"))
        << kernels.isa;
  });
}

/// Results of 17 channels end within lines of the cache: many products hide what stores to two lines cost, and few do
/// not.
TEST_F(HalfVectorPrices, ManyProductsHideUnevenStores) {
  const auto cycles = [](const KernelSet& kernels, int outs, int kernel) {
    taccConvDesc_t desc = convolution(taccConvForward, 1, 2, 100, 100, outs, kernel, 1, kernel / 2);
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    return secondsOf(desc, kernels, "short-sums") * assumedHertz / (100.0 * 100);  // of a pixel
  };
  forHalfVectors([&](const KernelSet& kernels) {
    EXPECT_NEAR(cycles(kernels, 17, 7), cycles(kernels, 24, 7), 5) << kernels.isa;
    EXPECT_GT(cycles(kernels, 17, 1), cycles(kernels, 24, 1) + 6) << kernels.isa;
  });
}

/// A plane of a few lines is over before products hide how its stores are cut.
TEST_F(HalfVectorPrices, SmallPlanesHideLessOfUnevenStores) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 1, 11, 11, 281, 3, 1, 1);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  forHalfVectors([&](const KernelSet& kernels) {
    EXPECT_EQ(makePlan(understand(desc), kernels).algorithm, "few-channels") << kernels.isa;
  });
}

/// Half a tile fetches lines of other blocks, too.
TEST_F(HalfVectorPrices, GradientsOfEightOutputsAreSummedTapByTap) {
  forHalfVectors([&](const KernelSet& kernels) {
    for (const taccLayout_t layout : {taccLayoutNchw16c, taccLayoutNhwc}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 16, 56, 56, 8, 3, 1, 1);
      desc.inputLayout = desc.outputLayout = layout;
      EXPECT_EQ(makePlan(understand(desc), kernels).algorithm, "few-outputs") << kernels.isa << " layout " << layout;
    }
  });
}

/// A line of a large image is read by seven taps, of every second pixel.
TEST_F(HalfVectorPrices, WideKernelsOfFewChannelsFindLinesThatTheyRead) {
  const taccConvDesc_t desc = [] {
    taccConvDesc_t first = convolution(taccConvBackwardWeights, 1, 3, 224, 224, 64, 7, 2, 3);
    first.weightLayout = taccWeightsBlocked;
    return first;
  }();
  forHalfVectors([&](const KernelSet& kernels) {
    constexpr double products = 112.0 * 112 * 49 * 3 * 64, ofCycle = 16;
    EXPECT_LE(secondsOf(desc, kernels, "direct"), 1.4 * products / ofCycle / assumedHertz) << kernels.isa;
  });
}

/// Of a pixel of 24 channels all are in registers, and none of them is empty.
TEST_F(HalfVectorPrices, ScalingIsCheapestInNhwcOfChannelsThatFillNoBlocks) {
  taccConvDesc_t blocks = channelWise(taccConvForward, 1, 24, 133, 1, 1), nhwc = blocks;
  nhwc.inputLayout = nhwc.outputLayout = taccLayoutNhwc;
  forHalfVectors([&](const KernelSet& kernels) {
    EXPECT_LE(secondsOf(nhwc, kernels, "depthwise-nhwc"), 0.8 * secondsOf(blocks, kernels, "depthwise")) << kernels.isa;
  });
}

/// Half a block of outputs is summed by itself.
TEST_F(HalfVectorPrices, FirstLayersOfFewOutputsHaveHalfTiles) {
  forHalfVectors([&](const KernelSet& kernels) {
    const auto kernelOf = [&](int outs) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 4, 3, 39, 39, outs, 5, 4, 2);
      desc.inputLayout = taccLayoutNchw;
      desc.weightLayout = taccWeightsBlocked;
      desc.algorithm = "few-channels";
      return makePlan(understand(desc), kernels).plan->kernel();
    };
    EXPECT_THAT(kernelOf(6), testing::EndsWith("x0.5")) << kernels.isa;
    EXPECT_THAT(kernelOf(9), testing::EndsWith("x1")) << kernels.isa;
  });
}

/// Pixels of NHWC that several taps of a line see are read once, a few cycles less than one a product; kernels that
/// have no strips of their own in blocks go through lines in parts, and few results wait for their own products.
TEST_F(HalfVectorPrices, TapsOfALineShareWhatIsReadInNhwc) {
  struct {
    int height, width, kernel, pad;
    double ofProduct, ofBlocks;  // cycles, and of the time in blocks
  } const layers[] = {{96, 29, 6, 3, 0.75, 0.6}, {208, 8, 9, 1, 1.8, 0.6}};
  for (const auto& layer : layers) {
    taccConvDesc_t blocks =
        convolution(taccConvForward, 1, 8, layer.height, layer.width, 8, layer.kernel, 1, layer.pad);
    blocks.groups = 8;
    taccConvDesc_t nhwc = blocks;
    nhwc.inputLayout = nhwc.outputLayout = taccLayoutNhwc;
    const double results = (layer.height + 2.0 * layer.pad - layer.kernel + 1) *
                           (layer.width + 2.0 * layer.pad - layer.kernel + 1),
                 products = results * layer.kernel * layer.kernel;
    forHalfVectors([&](const KernelSet& kernels) {
      const double seconds = secondsOf(nhwc, kernels, "depthwise-nhwc");
      EXPECT_LE(seconds * assumedHertz, layer.ofProduct * products) << kernels.isa << " " << layer.kernel;
      EXPECT_LE(seconds, layer.ofBlocks * secondsOf(blocks, kernels, "depthwise"))
          << kernels.isa << " " << layer.kernel;
    });
  }
}

}  // namespace
}  // namespace tacc::conv::test
