// What prices know of kinds of CPUs, pretended here.
#include "compute/conv/core_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/cost.hpp"
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

class CoreModelTest : public testing::Test {
 protected:
  ~CoreModelTest() override { pretendCoreModel(nullptr); }

  static double secondsOn(const CoreModel& model, const taccConvDesc_t& desc, const KernelSet& kernels) {
    pretendCoreModel(&model);
    return makePlan(understand(desc), kernels).plan->predictedSeconds();
  }
};

// 16 images of 150 x 150, one tap: read and written once, from memory.
taccConvDesc_t fromMemory() {
  taccConvDesc_t desc = convolution(taccConvForward, 16, 128, 150, 150, 128, 1);
  desc.groups = 128;
  return desc;
}

TEST_F(CoreModelTest, FarMemoryCostsWhatComesFromItAndNotProducts) {
  const taccConvDesc_t products = convolution(taccConvForward, 1, 128, 28, 28, 128, 3, 1, 1);
  for (const KernelSet* kernels : availableKernels()) {
    const double near = secondsOn(nearCore, products, *kernels), far = secondsOn(meshCore, products, *kernels);
    EXPECT_NEAR(far, near, 0.1 * near) << kernels->isa;
    EXPECT_GT(secondsOn(meshCore, fromMemory(), *kernels), 1.5 * secondsOn(nearCore, fromMemory(), *kernels));
  }
}

TEST_F(CoreModelTest, HalvedVectorsTakeTwiceAsLong) {
  taccConvDesc_t products = convolution(taccConvForward, 1, 128, 28, 28, 128, 3, 1, 1);
  products.algorithm = "direct";  // AMX's tiles are no vectors
  for (const KernelSet* kernels : availableKernels()) {
    const double times = secondsOn(halvingCore, products, *kernels) / secondsOn(nearCore, products, *kernels);
    EXPECT_NEAR(times, kernels->fmaLanes == 16 ? 2 : 1, 0.2) << kernels->isa;
  }
}

// Channel-wise gradients of the weights, of 16 images.
TEST_F(CoreModelTest, WhatANearLastCacheHasIsNotFetchedAhead) {
  const auto isFetched = [](const CoreModel& model, int channels, int size, int kernel, int stride) {
    taccConvDesc_t desc =
        convolution(taccConvBackwardWeights, 16, channels, size, size, channels, kernel, stride, kernel / 2);
    desc.groups = channels;
    const Shape s = understand(desc).shape;
    pretendCoreModel(&model);
    const auto floats = static_cast<double>(s.batch * s.inBlocks() * (s.inPlane() + s.outPlane()));
    return floats * sizeof(float) > leastFetchedBytes(s);
  };
  for (const CoreModel* near : {&nearCore, &halvingCore}) {
    for (const int stride : {1, 2}) {
      EXPECT_FALSE(isFetched(*near, 576, 14, 3, stride)) << stride;  // 9 and 14 MB
      EXPECT_TRUE(isFetched(*near, 128, 56, 3, stride)) << stride;   // 32 and 51 MB
    }
    EXPECT_TRUE(isFetched(*near, 576, 14, 1, 2));  // of which most pixels are left out
  }
  EXPECT_FALSE(isFetched(meshCore, 128, 112, 3, 1));
  EXPECT_TRUE(isFetched(meshCore, 576, 14, 1, 2));
}

// Of which each phase of a stride, or each block of channels, has a part that would stay in the L2 cache.
TEST_F(CoreModelTest, FarWeightsCostWhatComesFromTheLastCache) {
  taccConvDesc_t desc = convolution(taccConvBackwardData, 1, 1024, 4, 4, 512, 3, 4, 1);
  for (const char* algorithm : {"direct", "tap-scatter"}) {
    desc.algorithm = algorithm;
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->fmaLanes < blockLength) continue;
      EXPECT_GT(secondsOn(meshCore, desc, *kernels), 1.5 * secondsOn(nearCore, desc, *kernels)) << algorithm;
    }
  }
}

// Channel-wise layers of one tap in blocks read and write lines of the cache whole, however long vectors are.
TEST_F(CoreModelTest, ScalingOutOfTheCachesIsPricedByWhatMoves) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 160, 64, 64, 160, 1);
  desc.groups = 160;
  desc.algorithm = "depthwise";
  constexpr double bytes = 2.0 * 160 * 64 * 64 * 4, bytesOfLastCache = 20;
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes < blockLength) continue;
    EXPECT_LE(secondsOn(nearCore, desc, *kernels), bytes / bytesOfLastCache / assumedHertz * 1.01) << kernels->isa;
  }
}

// 19 MB of results, of one product each.
TEST_F(CoreModelTest, ResultsThatGoToMemoryCostTheirWayOnNearCoresToo) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 1, 140, 140, 240, 1);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  constexpr double bytes = 4.0 * 140 * 140 * 240, mostBytesOfSecond = 7 * assumedHertz;
  for (const char* algorithm : {"direct", "few-channels"}) {
    desc.algorithm = algorithm;
    for (const KernelSet* kernels : availableKernels()) {
      EXPECT_GE(secondsOn(nearCore, desc, *kernels), bytes / mostBytesOfSecond) << algorithm << ", " << kernels->isa;
    }
  }
}

taccConvDesc_t dataInNhwc(int inChannels, int size, int outChannels, int kernel, int stride, const char* algorithm) {
  taccConvDesc_t desc =
      convolution(taccConvBackwardData, 1, inChannels, size, size, outChannels, kernel, stride, kernel / 2);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = algorithm;
  return desc;
}

// 35 and 36 MB, of one value and of many; sums whose pixels are no whole lines of the cache are stored plainly.
TEST_F(CoreModelTest, DataThatGoesToMemoryCostsItsWayOnNearCores) {
  constexpr double bytes = 4.0 * 300 * 300 * 100;
  const taccConvDesc_t direct = dataInNhwc(96, 300, 1, 1, 1, "direct");
  const taccConvDesc_t sums = dataInNhwc(100, 300, 1, 1, 1, "short-sums");
  const taccConvDesc_t fewer = dataInNhwc(100, 300, 16, 1, 1, "short-sums");
  const taccConvDesc_t more = dataInNhwc(100, 300, 17, 1, 1, "short-sums");
  for (const KernelSet* kernels : availableKernels()) {
    EXPECT_GE(secondsOn(nearCore, direct, *kernels), 0.96 * bytes / (8 * assumedHertz)) << kernels->isa;
    if (kernels->fmaLanes < blockLength) {  // whose products take longer, and whose stores do
      EXPECT_GE(secondsOn(nearCore, sums, *kernels), bytes / (5 * assumedHertz)) << kernels->isa;
      continue;
    }
    EXPECT_GE(secondsOn(nearCore, sums, *kernels), bytes / (8 * assumedHertz));
    EXPECT_GE(secondsOn(nearCore, more, *kernels),
              secondsOn(nearCore, fewer, *kernels) + 6 * bytes / (64 * assumedHertz));  // nothing fetches it
  }
}

// 35 MB, of which strips of pixels read a value at a time, beside the products of eight images that stay in the caches.
TEST_F(CoreModelTest, SumsOfShortVectorsWaitForWhatComesFromMemory) {
  constexpr double bytes = 4.0 * 8 * 56 * 184 * 106;
  taccConvDesc_t desc = convolution(taccConvForward, 1, 106, 56, 184, 8, 1);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = "short-sums";
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes == blockLength) continue;
    desc.batch = 1;
    const double ofImage = secondsOn(nearCore, desc, *kernels);
    desc.batch = 8;
    EXPECT_GE(secondsOn(nearCore, desc, *kernels), 0.95 * (8 * ofImage + bytes / (4 * assumedHertz))) << kernels->isa;
  }
}

// Half a block is a vector: what lanes of a group take is a load, not a permutation.
TEST_F(CoreModelTest, GroupsOfAVectorCostLittleMoreThanTheirProducts) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 80, 60, 60, 80, 3, 1, 2);
  desc.groups = 10;
  desc.dilationHeight = desc.dilationWidth = 2;
  desc.algorithm = "grouped";
  constexpr double products = 60.0 * 60 * 80 * 8 * 9;
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    const double cycles = products / (2 * kernels->fmaLanes);
    EXPECT_LE(secondsOn(nearCore, desc, *kernels), 1.5 * cycles / assumedHertz) << kernels->isa;
  }
}

// Eight channels are a vector of AVX2 in NHWC, and half of what is multiplied in blocks.
TEST_F(CoreModelTest, AVectorOfChannelsOfLargeKernelsIsCheapestInNhwc) {
  taccConvDesc_t blocks = convolution(taccConvForward, 1, 8, 184, 184, 8, 9, 1, 4);
  blocks.groups = 8;
  taccConvDesc_t nhwc = blocks;
  nhwc.inputLayout = nhwc.outputLayout = taccLayoutNhwc;
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != 8) continue;
    EXPECT_LE(secondsOn(nearCore, nhwc, *kernels), 0.75 * secondsOn(nearCore, blocks, *kernels));
  }
}

// Between results of a stride, beside the products of an image of just these. 9 MB, from the last cache.
TEST_F(CoreModelTest, ZerosBetweenStridesAreWrittenOnceOnNearCores) {
  constexpr double zeros = 4.0 * 132 * 132 * 130 / 20 / assumedHertz;
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;
    for (const char* algorithm : {"direct", "short-sums"}) {
      const double strided = secondsOn(nearCore, dataInNhwc(130, 132, 8, 1, 3, algorithm), *kernels);
      const double dense = secondsOn(nearCore, dataInNhwc(130, 44, 8, 1, 1, algorithm), *kernels);
      EXPECT_NEAR(strided, dense + zeros, 0.2 * strided) << algorithm;
    }
  }
}

// Tiles of one vector, which are over sooner than those of two.
TEST_F(CoreModelTest, RunsOfFewValuesAreWaitedForByTilesOfOneVectorOnNearCores) {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;
    EXPECT_GT(secondsOn(nearCore, dataInNhwc(16, 79, 2, 5, 1, "direct"), *kernels),
              0.78 * secondsOn(nearCore, dataInNhwc(32, 79, 2, 5, 1, "direct"), *kernels));
  }
}

// Of 16 blocks of results and of one, from the last cache.
TEST_F(CoreModelTest, SeveralBlocksOfAPixelCostMoreAndOneLessOnNearCores) {
  const auto besideBlocks = [](int channels, int size, const KernelSet& kernels) {
    const taccConvDesc_t nhwc = dataInNhwc(channels, size, 1, 1, 1, "direct");
    taccConvDesc_t blocks = nhwc;
    blocks.inputLayout = blocks.outputLayout = taccLayoutNchw16c;
    return secondsOn(nearCore, nhwc, kernels) - secondsOn(nearCore, blocks, kernels);
  };
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;
    EXPECT_GT(besideBlocks(256, 76, *kernels), 1.2 * 16 * 76 * 76 / assumedHertz);
    EXPECT_LT(besideBlocks(16, 300, *kernels), -0.9 * 300 * 300 / assumedHertz);
  }
}

// Products are one line of tiles on any core.
TEST_F(CoreModelTest, EndsOfFirstLayersTilesAreHiddenByFarCoresAndInProducts) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 3, 14, 14, 16, 3, 1, 1);
  desc.inputLayout = taccLayoutNhwc;
  desc.algorithm = "few-channels";
  taccConvDesc_t product = convolution(taccConvForward, 1, 3, 14, 14, 16, 1);
  product.inputLayout = taccLayoutNhwc;
  product.algorithm = "few-channels";
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;
    const double copying = 600 / assumedHertz;  // once an image, which far cores hide
    EXPECT_NEAR(secondsOn(nearCore, desc, *kernels), secondsOn(meshCore, desc, *kernels) / 0.8 + copying, 1e-9);
    EXPECT_NEAR(secondsOn(nearCore, product, *kernels), secondsOn(meshCore, product, *kernels), 1e-9);
  }
}

TEST_F(CoreModelTest, PixelsThatShareLinesOfTheCacheCostMoreOnNearCoresToo) {
  taccConvDesc_t cut = convolution(taccConvForward, 4, 440, 96, 96, 440, 3, 1, 1), whole = cut;
  whole.inChannels = whole.outChannels = whole.groups = 448;
  cut.groups = 440;
  taccConvDesc_t cutSums = convolution(taccConvForward, 8, 2, 21, 21, 136, 1), wholeSums = cutSums;
  wholeSums.outChannels = 144;
  const std::pair<taccConvDesc_t, taccConvDesc_t> pairs[] = {{cut, whole}, {cutSums, wholeSums}};
  for (auto [less, more] : pairs) {
    for (taccConvDesc_t* desc : {&less, &more}) {
      desc->inputLayout = desc->outputLayout = taccLayoutNhwc;
      desc->algorithm = desc->groups > 1 ? "depthwise" : "short-sums";
    }
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->fmaLanes < blockLength) continue;
      EXPECT_GT(secondsOn(nearCore, less, *kernels), 1.05 * secondsOn(nearCore, more, *kernels)) << less.algorithm;
    }
  }
}

// The last block of a thousand channels is half a block, and tiles of a few blocks follow each other.
TEST_F(CoreModelTest, TilesThatShareLinesOfTheCacheCostMoreOnNearCoresToo) {
  taccConvDesc_t cut = convolution(taccConvForward, 1, 2, 48, 48, 1000, 1);
  cut.inputLayout = cut.outputLayout = taccLayoutNhwc;
  for (const char* algorithm : {"direct", "few-channels"}) {
    cut.algorithm = algorithm;
    taccConvDesc_t whole = cut;
    whole.outChannels = 1008;
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->fmaLanes < blockLength) continue;
      EXPECT_GT(secondsOn(nearCore, cut, *kernels), 1.05 * secondsOn(nearCore, whole, *kernels)) << algorithm;
    }
  }
}

// From memory and from the L2 cache.
TEST_F(CoreModelTest, GroupsThatShareLinesOfTheCacheCostLessOnNearCores) {
  for (const int size : {12, 200}) {
    taccConvDesc_t desc = convolution(taccConvForward, 1, 99, size, size, 198, 1);
    desc.groups = 9;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.algorithm = "direct";
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->fmaLanes < blockLength) continue;  // whose products are most of it
      EXPECT_LT(secondsOn(nearCore, desc, *kernels), 0.7 * secondsOn(meshCore, desc, *kernels)) << size;
    }
  }
}

TEST_F(CoreModelTest, SumsBeginLinesOfTheKernelSoonerOnNearCores) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 1, 9, 9, 16, 5, 1, 0);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = "short-sums";
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;
    EXPECT_LT(secondsOn(nearCore, desc, *kernels), 0.9 * secondsOn(meshCore, desc, *kernels));
  }
}

// Beside the same results of an image that has just the pixels that are read.
TEST_F(CoreModelTest, SumsPayForPixelsThatStridesLeaveOutOnlyFromMemory) {
  const auto timesOfDense = [](int in, int out, int height, int width, int stride, const KernelSet& kernels) {
    taccConvDesc_t strided = convolution(taccConvForward, 1, in, height * stride, width * stride, out, 1, stride);
    taccConvDesc_t dense = convolution(taccConvForward, 1, in, height, width, out, 1);
    for (taccConvDesc_t* desc : {&strided, &dense}) {
      desc->inputLayout = desc->outputLayout = taccLayoutNhwc;
      desc->algorithm = "short-sums";
    }
    return secondsOn(nearCore, strided, kernels) / secondsOn(nearCore, dense, kernels);
  };
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;  // whose products are most of it
    EXPECT_LT(timesOfDense(160, 16, 20, 20, 4, *kernels), 1.5) << kernels->isa;
    EXPECT_GT(timesOfDense(120, 80, 217, 56, 2, *kernels), 1.2) << kernels->isa;
  }
}

taccConvDesc_t innerProducts(int inChannels, int height, int width) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, inChannels, height, width, 8, 1, 1, 0);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = "inner-products";
  return desc;
}

// Half as many stay there.
TEST_F(CoreModelTest, WeightsOfInnerProductsThatLeaveTheL1CacheCostTheirWay) {
  taccConvDesc_t few = innerProducts(960, 1, 1), many = innerProducts(1920, 1, 1);
  few.batch = many.batch = 4;
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;  // whose products take as long
    EXPECT_GT(secondsOn(nearCore, many, *kernels), 2.5 * secondsOn(nearCore, few, *kernels));
  }
}

// As many pixels, one image after the other, that stay in the L2 cache.
TEST_F(CoreModelTest, InnerProductsOfNearCoresHideNothingThatComesFromMemory) {
  const taccConvDesc_t cached = innerProducts(208, 16, 25);
  taccConvDesc_t memory = cached;
  memory.batch = 100;
  constexpr double bytes = 4.0 * 100 * 16 * 25 * 208, mostBytesOfSecond = 9 * assumedHertz;
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;  // whose products take longer
    EXPECT_GE(secondsOn(nearCore, memory, *kernels),
              100 * secondsOn(nearCore, cached, *kernels) + bytes / mostBytesOfSecond);
  }
}

// Of which an image of 1 pixel in 16 has the same results.
TEST_F(CoreModelTest, PixelsBetweenStridesCostTheirWayFromNearMemory) {
  taccConvDesc_t desc = convolution(taccConvForward, 4, 608, 96, 96, 16, 3, 4, 1);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = "direct";
  constexpr double bytes = 4.0 * 4 * 96 * 96 * 608 * 9 / 16, mostBytesOfSecond = 4 * assumedHertz;
  for (const KernelSet* kernels : availableKernels()) {
    EXPECT_GE(secondsOn(nearCore, desc, *kernels), bytes / mostBytesOfSecond) << kernels->isa;
  }
}

// 16 images of 128 x 128 pixels, every second one of which is copied.
TEST_F(CoreModelTest, CopiedPixelsOfNhwcCostTheirWayOnNearCores) {
  taccConvDesc_t desc = convolution(taccConvForward, 16, 7, 128, 128, 5, 1, 2);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = "strided-product";
  taccConvDesc_t product = convolution(taccConvForward, 16, 7, 64, 64, 5, 1);
  product.inputLayout = product.outputLayout = taccLayoutNhwc;
  for (const KernelSet* kernels : availableKernels()) {
    // Of half vectors the product is of the cheaper of two algorithms.
    product.algorithm = "direct";
    double ofProduct = secondsOn(nearCore, product, *kernels);
    product.algorithm = "short-sums";
    if (kernels->fmaLanes == blockLength / 2) ofProduct = std::min(ofProduct, secondsOn(nearCore, product, *kernels));
    EXPECT_GT(secondsOn(nearCore, desc, *kernels), ofProduct + 9.0 * 16 * 64 * 64 / assumedHertz);
  }
}

// 235 channels are no whole lines of the cache, 240 are.
TEST_F(CoreModelTest, PixelsOfPartsOfLinesCostHalfVectorsMoreToMemory) {
  for (const KernelSet* kernels : availableKernels()) {
    const auto seconds = [&](int channels) {
      taccConvDesc_t desc = convolution(taccConvForward, 1, 7, 229, 229, channels, 1);
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
      desc.algorithm = "few-channels";
      return secondsOn(nearCore, desc, *kernels);
    };
    EXPECT_EQ(seconds(235) > 1.5 * seconds(240), kernels->fmaLanes == blockLength / 2) << kernels->isa;
  }
}

// Lines of such pixels fall on few places of the L1 cache, and in part of the second one.
TEST_F(CoreModelTest, PixelsPagesApartAreReorderedForGradientsOfHalfVectors) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength / 2) continue;
    for (const int in : {256, 1008, 1024}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, in, 14, 14, in == 256 ? 1024 : 256, 1);
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
      const std::string kernel = makePlan(understand(desc), *kernels).plan->kernel();
      EXPECT_EQ(kernel.find("reorders") != std::string::npos, in != 1008) << in << ": " << kernel;
    }
  }
}

// Each line of the kernel reads long pixels somewhere else.
TEST_F(CoreModelTest, InnerProductsWaitForLongPixelsOfSeveralLines) {
  taccConvDesc_t above = convolution(taccConvForward, 1, 512, 24, 24, 2, 3, 1, 1), beside = above;
  above.kernelWidth = 1;
  above.padWidth = 0;
  beside.kernelHeight = 1;
  beside.padHeight = 0;
  for (taccConvDesc_t* desc : {&above, &beside}) {
    desc->inputLayout = desc->outputLayout = taccLayoutNhwc;
    desc->algorithm = "inner-products";
  }
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes < blockLength) continue;  // whose products take longer
    EXPECT_GT(secondsOn(nearCore, above, *kernels), 1.5 * secondsOn(nearCore, beside, *kernels));
  }
}

// An image so small that copying its lines is much of it.
TEST_F(CoreModelTest, LinesThatFirstLayersCopyCostMoreOnNearCores) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 4, 5, 5, 32, 3, 1, 1);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  desc.algorithm = "few-channels";
  for (const KernelSet* kernels : availableKernels()) {
    EXPECT_GT(secondsOn(nearCore, desc, *kernels), secondsOn(meshCore, desc, *kernels) + 500 / assumedHertz);
  }
}

// Where the last cache is near, plain stores hide behind products, until a result is far larger than it.
TEST_F(CoreModelTest, ProductsAreStoredPastFarCachesSooner) {
  const auto isStreamed = [](const CoreModel& model, int size) {
    pretendCoreModel(&model);
    const taccConvDesc_t desc = convolution(taccConvForward, 16, 32, size, size, 32, 1);
    return std::pair(isNonTemporalProduct(understand(desc)), isNonTemporalResult(understand(desc)));
  };
  EXPECT_EQ(isStreamed(meshCore, 56), std::pair(false, false));
  EXPECT_EQ(isStreamed(meshCore, 112), std::pair(true, true));
  EXPECT_EQ(isStreamed(nearCore, 112), std::pair(false, true));
  EXPECT_EQ(isStreamed(nearCore, 224), std::pair(true, true));
}

// Which cores of Intel's multiply more slowly than float32, and those that start two a cycle twice as fast.
TEST_F(CoreModelTest, PairsOfBfloat16AreTakenWhereTheyAreFaster) {
  const std::string pairs = " bf16 pairs";
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardWeights}) {
    taccConvDesc_t desc = convolution(pass, 1, 256, 14, 14, 256, 3, 1, 1);
    desc.activationType = taccBfloat16;
    desc.roundWeights = pass == taccConvForward;
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->split != nullptr || pairKernels(*kernels) == nullptr) continue;
      const auto kernelOn = [&](const CoreModel& model) {
        pretendCoreModel(&model);
        return makePlan(understand(desc), *kernels).plan->kernel();
      };
      EXPECT_TRUE(kernelOn(nearCore).ends_with(pairs)) << kernelOn(nearCore);
      EXPECT_FALSE(kernelOn(meshCore).ends_with(pairs)) << kernelOn(meshCore);
    }
  }
}

// Layers in blocks, backward to the weights, that `direct` took least time for with AVX2 on a Zen 3, a tenth less and
// more than what comes next.
TEST_F(CoreModelTest, ShortVectorsGetGradientsThatAreDirectWhereTheseAreFaster) {
  const taccConvDesc_t layers[] = {convolution(taccConvBackwardWeights, 8, 1024, 8, 8, 6, 3, 3),
                                   convolution(taccConvBackwardWeights, 1, 32, 16, 16, 8, 5, 1, 2)};
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->isa != "avx2") continue;
    for (taccConvDesc_t desc : layers) {
      desc.weightLayout = taccWeightsBlocked;
      EXPECT_EQ(makePlan(understand(desc), *kernels).algorithm, "direct") << understand(desc).shape.text();
    }
  }
}

// Measured with AVX2 on a Zen 3, of results that are no whole vectors: 59 channels 31 us in NHWC and 23 in blocks, 827
// channels 106 and 73.
TEST_F(CoreModelTest, ShortVectorsStoreUnevenPixelsSlowly) {
  taccConvDesc_t first = convolution(taccConvForward, 1, 2, 25, 25, 827, 1);
  first.inputLayout = taccLayoutNchw;
  const taccConvDesc_t layers[] = {first, convolution(taccConvBackwardData, 1, 59, 56, 56, 1, 1)};
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->isa != "avx2") continue;
    for (const taccConvDesc_t& blocks : layers) {
      taccConvDesc_t nhwc = blocks;
      nhwc.inputLayout = nhwc.outputLayout = taccLayoutNhwc;
      nhwc.algorithm = "short-sums";
      EXPECT_GT(secondsOn(nearCore, nhwc, *kernels), secondsOn(nearCore, blocks, *kernels));
    }
  }
}

TEST_F(CoreModelTest, OfThisCpuComesBack) {
  const CoreModel& own = coreModel();
  const KernelSet& kernels = *availableKernels().back();
  const double before = makePlan(understand(fromMemory()), kernels).plan->predictedSeconds();
  for (const CoreModel* model : {&nearCore, &halvingCore, &meshCore, &slowPairsCore}) {
    secondsOn(*model, fromMemory(), kernels);
    EXPECT_EQ(&coreModel(), model);
  }
  pretendCoreModel(nullptr);
  EXPECT_EQ(&coreModel(), &own);
  EXPECT_EQ(makePlan(understand(fromMemory()), kernels).plan->predictedSeconds(), before);
}

}  // namespace
}  // namespace tacc::conv::test
