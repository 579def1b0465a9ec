// Results that are sums of few values, in NHWC: exactly what the definition says, forward and backward to the data, and
// the same bits for every number of threads. Tensors lie between pages that may not be touched.
#include <gtest/gtest.h>

#include "between_pages.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "nhwc_sums.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

class ShortSums : public NhwcSums {
 protected:
  ShortSums() : NhwcSums("short-sums", 29) {}
};

TEST_P(ShortSums, AreExactForEveryWidthOfTiles) {
  for (int results = 1; results <= 80; ++results) {
    // One line of as many pixels as there are in no tile, in one, and in several.
    taccConvDesc_t desc = layer(1, from(1, 40), results, 1, results % 3 == 0 ? from(1, 14) : from(15, 60), 1);
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, results % 4 == 0 ? 3 : 1, results % 2 == 0);
  }
}

TEST_P(ShortSums, AreExactForDrawnKernels) {
  for (int i = 0; i < 90; ++i) {
    const int kernel = from(1, 5), values = std::max(1, from(1, 180) / (kernel * kernel));
    taccConvDesc_t desc = layer(from(1, 3), values, from(1, 70), from(kernel, 20), from(kernel, 30), kernel);
    desc.kernelWidth = from(1, kernel);
    desc.padHeight = from(0, desc.kernelHeight - 1);
    desc.padWidth = from(0, desc.kernelWidth - 1);
    if (desc.height > 2 * kernel) desc.dilationHeight = from(1, 2);
    if (GetParam() == taccConvForward) {  // lines outside the image, and strides, are there in this pass alone
      desc.padHeight += from(0, 5) / 5;
      desc.strideHeight = from(1, 3);
      desc.strideWidth = from(1, 3);
    }
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 4 < 2 ? 1 : 3, i % 2 == 0);
  }
}

TEST_P(ShortSums, AreExactForManyImagesAndLargeResults) {
  for (const int batch : {2, 37}) expectExactBetweenPages(layer(batch, 12, 40, 1, 1, 1), 3, true);
  expectExactBetweenPages(layer(from(1, 4), 193, 75, 1, 1, 1), 2, true);
  expectExactBetweenPages(layer(from(1, 4), 1000, 27, 1, 1, 1), 2, true);  // whose weights any L2 cache holds
  expectExactBetweenPages(layer(1, 3, 48, 210, 211, 1), 2, true);          // stored non-temporally
  expectExactBetweenPages(layer(1, 2, 96, 150, 151, 3), 1, true);
}

/// Products of half vectors may have many values; where weights do not stay in the L2 cache, some tiles at a time go
/// through all strips.
TEST_P(ShortSums, AreExactForProductsOfManyValues) {
  pretendCoreModel(&nearCore);
  const auto expectSameExactly = [&](int batch, int values, int results, int height, int width) {
    taccConvDesc_t desc = layer(batch, values, results, height, width, 1);
    desc.algorithm = nullptr;
    chooseEpilogue(desc, random_);
    expectExact(desc);
  };
  for (int i = 0; i < 6; ++i) expectSameExactly(from(1, 2), from(193, 1024), from(1, 130), from(4, 6), from(6, 8));
  expectSameExactly(1, 1024, from(540, 560), 4, 6);
  pretendCoreModel(nullptr);
}

/// Half vectors take many values of few channels.
TEST_P(ShortSums, AreExactForManyTapsOfFewChannels) {
  pretendCoreModel(&nearCore);
  for (int i = 0; i < 6; ++i) {
    const int kernel = from(7, 11), taps = kernel * kernel;
    const int channels = from(ceilDivide(193, taps), std::min(8, 512 / taps));
    taccConvDesc_t desc = layer(1, channels, from(1, 70), from(kernel, 26), from(kernel, 30), kernel);
    desc.padHeight = desc.padWidth = from(0, kernel / 2);
    if (GetParam() == taccConvForward) desc.strideHeight = desc.strideWidth = from(1, 4);
    chooseEpilogue(desc, random_);
    for (const KernelSet* kernels : availableKernels()) {
      if (2 * kernels->fmaLanes == blockLength) {
        EXPECT_EQ(makePlan(understand(desc), *kernels).algorithm, "short-sums");
      }
    }
    desc.algorithm = nullptr;
    expectExact(desc);
  }
  pretendCoreModel(nullptr);
}

/// Strips fetch what the next one reads where it comes from memory; here everything does.
TEST_P(ShortSums, AreExactOfWhatComesFromMemory) {
  CoreModel model = nearCore;
  model.lastCacheBytes = 0;
  pretendCoreModel(&model);
  for (int i = 0; i < 20; ++i) {
    const int kernel = 1 + 2 * (i % 2), values = std::max(1, from(1, 180) / (kernel * kernel));
    expectExactBetweenPages(layer(from(1, 3), values, from(1, 70), from(3, 20), from(3, 30), kernel), 2, i % 4 < 2);
  }
  pretendCoreModel(nullptr);
}

/// Backward to the data these lie between zeros.
TEST_P(ShortSums, AreExactForProductsWithStrides) {
  for (int i = 0; i < 50; ++i) {
    taccConvDesc_t desc = layer(from(1, 3), from(1, 60), from(1, 70), from(1, 20), from(1, 30), 1);
    desc.strideHeight = from(1, 4);
    desc.strideWidth = from(1, 4);
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 4 < 2 ? 1 : 3, i % 2 == 0);
  }
}

/// Of half vectors, products of every second pixel are made so of pixels pages apart too, which are not reordered.
TEST_P(ShortSums, AreExactForStridedProductsOfPages) {
  pretendCoreModel(&nearCore);
  const auto expectOf = [&](int results) {
    taccConvDesc_t desc = layer(1, 1024, results, 13, 14, 1);
    desc.strideHeight = desc.strideWidth = 2;
    desc.algorithm = "strided-product";
    chooseEpilogue(desc, random_);
    expectExact(desc);
    for (const KernelSet* kernels : availableKernels()) {
      const std::string kernel = makePlan(understand(desc), *kernels).plan->kernel();
      EXPECT_EQ(kernel.find("reorders") == std::string::npos, kernels->fmaLanes == blockLength / 2) << kernel;
    }
  };
  expectOf(16 * from(1, 3));
  if (GetParam() == taccConvForward) {  // backward, zeros lie between whole blocks
    expectOf(8);
    expectOf(40);
  }
  pretendCoreModel(nullptr);
}

/// Of half vectors. Where nothing falls on each other, pixels of 8 results are as many as a tile has.
TEST_P(ShortSums, ReadNoMorePixelsAtOnceThanTheL1CacheKeeps) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength / 2) continue;
    const auto pixelsOfTile = [&](int values, int results, int image, int stride) {
      taccConvDesc_t desc = layer(1, values, results, image * stride, image * stride, 1);
      desc.strideHeight = desc.strideWidth = stride;
      const std::string kernel = makePlan(understand(desc), *kernels).plan->kernel();
      return std::stoi(kernel.substr(kernel.rfind(' ') + 1));
    };
    for (int i = 0; i < 40; ++i) {
      const int values = 256 * from(1, 8), results = i % 2 == 0 ? 8 * from(1, 16) : from(1, 130), image = from(5, 20);
      EXPECT_LT(pixelsOfTile(values, results, image, 1), linesKept(values))
          << values << " values, " << results << " results";
    }
    for (const int results : {8, 40}) {
      for (const int values : {1024, 2048}) EXPECT_LT(pixelsOfTile(values, results, 14, 1), 8) << results << " results";
    }
    if (GetParam() == taccConvForward) {
      EXPECT_LT(pixelsOfTile(128, 8, 14, 8), 8);
    }
    EXPECT_EQ(pixelsOfTile(1040, 8, 14, 1), 14);
  }
  pretendCoreModel(nullptr);
}

TEST_P(ShortSums, AreTheSameBitsForEveryNumberOfThreads) {
  for (int i = 0; i < 6; ++i) {
    const int kernel = 1 + 2 * (i % 3);
    expectSameBitsForEveryNumberOfThreads(layer(from(1, 2), from(1, 7), from(1, 90), 19, 23, kernel), 4);
  }
  // Products of few pixels are cut along the channels, too, and some of their tiles are narrower.
  pretendCoreModel(&nearCore);
  for (int i = 0; i < 3; ++i) {
    taccConvDesc_t desc = layer(1, from(193, 400), from(100, 200), from(4, 7), 7, 1);
    desc.algorithm = nullptr;
    chooseEpilogue(desc, random_);
    expectSameBitsForEveryNumberOfThreads(desc, 9);
  }
  pretendCoreModel(nullptr);
  // Whichever algorithm serves them.
  for (const int image : {7, 12}) {
    taccConvDesc_t desc = layer(1, from(193, 400), from(8, 300), image, image, 1);
    desc.algorithm = nullptr;
    expectSameBitsForEveryNumberOfThreads(desc, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, ShortSums, testing::Values(taccConvForward, taccConvBackwardData),
                         [](const testing::TestParamInfo<taccConvPass_t>& tested) {
                           return tested.param == taccConvForward ? "Forward" : "BackwardData";
                         });

/// What another algorithm would have to do is refused: strides backward, groups, blocks, and many values.
TEST(ShortSumsChoice, ServesNothingElse) {
  const auto serves = [](taccConvDesc_t desc) {
    desc.algorithm = "short-sums";
    const Description d = withKernels(understand(desc), *availableKernels().front());
    return cheapestServing(d, *availableKernels().front()).plan != nullptr;
  };
  taccConvDesc_t desc = convolution(taccConvBackwardData, 1, 64, 9, 9, 8, 3);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  EXPECT_TRUE(serves(desc));
  taccConvDesc_t other = desc;
  other.strideWidth = 2;
  EXPECT_FALSE(serves(other));
  other = desc;
  other.groups = 4;
  EXPECT_FALSE(serves(other));
  other = desc;
  other.outputLayout = taccLayoutNchw16c;
  EXPECT_FALSE(serves(other));
  other = desc;
  other.outChannels = 64;
  EXPECT_FALSE(serves(other));
}

/// A product of few pixels is of as few strips, which are cut along the channels where workers are more.
TEST(ShortSumsTasks, AreEnoughForEveryWorkerOfAFewPixels) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength / 2) continue;
    for (const int workers : {2, 7, 16, 40}) {
      for (const int values : {16, 1024}) {
        taccConvDesc_t desc = convolution(taccConvForward, 1, values, 7, 7, 500, 1);
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        desc.algorithm = "short-sums";
        desc.maxWorkers = workers;
        Case test(desc);
        std::size_t most = 0;
        const taccExecutor_t counting = {
            &most, 1, [](void* context, std::size_t tasks, void (*task)(void*, std::size_t, int), void* argument) {
              *static_cast<std::size_t*>(context) = tasks;
              for (std::size_t i = 0; i < tasks; ++i) task(argument, i, 0);
            }};
        test.run(*makePlan(test.description(), *kernels).plan, counting);
        EXPECT_GE(most, static_cast<std::size_t>(workers)) << values << " values";
      }
    }
  }
  pretendCoreModel(nullptr);
}

/// Products of half vectors are served of more values, where a tile is not all there is; for any number of workers.
TEST(ShortSumsChoice, ServesLongProductsOfHalfVectors) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    taccConvDesc_t desc = convolution(taccConvForward, 1, 1024, 14, 14, 1000, 1);
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.algorithm = "short-sums";
    const auto serves = [&] {
      const Description d = withKernels(understand(desc), *kernels);
      return cheapestServing(d, *kernels).plan != nullptr;
    };
    EXPECT_EQ(serves(), kernels->fmaLanes == blockLength / 2) << kernels->isa;
    desc.maxWorkers = 64;
    EXPECT_EQ(serves(), kernels->fmaLanes == blockLength / 2) << kernels->isa;
    desc.height = desc.width = 7;
    EXPECT_EQ(serves(), kernels->fmaLanes == blockLength / 2) << kernels->isa;
    desc.height = desc.width = 4;
    EXPECT_FALSE(serves()) << kernels->isa;
    desc.height = desc.width = 14;
    desc.inChannels = 2049;
    EXPECT_FALSE(serves()) << kernels->isa;
    desc.inChannels = 1024;
    desc.kernelHeight = desc.kernelWidth = 3;
    EXPECT_FALSE(serves()) << kernels->isa;
  }
  pretendCoreModel(nullptr);
}

}  // namespace
}  // namespace tacc::conv::test
