// Gradients of the weights of few pixels, by the algorithm that is for them: forced by its name, on drawn shapes of
// every number of pixels that it serves.
#include <gmock/gmock.h>

#include <random>

#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/kernels/few_pixels_kernels.hpp"
#include "conv_case.hpp"
#include "core/error.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

constexpr const char* name = "few-pixels";

/// Exact with every instruction set that has it, for one worker and for several.
void expectFewPixels(taccConvDesc_t desc) {
  desc.algorithm = name;
  for (const int workers : {1, 3}) {
    desc.maxWorkers = workers;
    const Case test(desc);
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->fmaLanes == blockLength) continue;
      const ChosenPlan plan = makePlan(test.description(), *kernels);
      EXPECT_EQ(plan.algorithm, name);
      EXPECT_TRUE(test.run(*plan.plan, ThreadedExecutor(workers).get()) == expected)
          << test.text() << " with " << plan.plan->kernel() << ", " << workers << " workers";
    }
  }
}

TEST(FewPixels, OfDrawnShapes) {
  std::mt19937 random(37);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 120; ++i) {
    const int lines = from(1, 4), columns = from(1, mostFewPixels / lines);
    taccConvDesc_t desc = convolution(taccConvBackwardWeights, from(1, mostFewPixels / (lines * columns)), from(1, 70),
                                      1, 1, from(1, 40), 1);
    desc.kernelHeight = from(1, 3);
    desc.kernelWidth = from(1, 3);
    desc.strideHeight = from(1, 3);
    desc.strideWidth = from(1, 3);
    desc.dilationHeight = from(1, 2);
    desc.dilationWidth = from(1, 2);
    const auto size = [&](int results, int kernel, int stride, int dilation, int& pad) {
      const int reach = (results - 1) * stride + dilation * (kernel - 1) + 1;
      pad = from(0, std::min(dilation * (kernel - 1), (reach - 1) / 2));
      return reach - 2 * pad;
    };
    desc.height = size(lines, desc.kernelHeight, desc.strideHeight, desc.dilationHeight, desc.padHeight);
    desc.width = size(columns, desc.kernelWidth, desc.strideWidth, desc.dilationWidth, desc.padWidth);
    if (from(0, 1) == 0) desc.inputLayout = taccLayoutNhwc;
    if (desc.outChannels % blockLength == 0 || from(0, 3) == 0) {
      desc.outChannels = std::max(1, desc.outChannels / blockLength) * blockLength;
      desc.outputLayout = taccLayoutNhwc;
    }
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.accumulate = from(0, 1);
    expectFewPixels(desc);
  }
}

TEST(FewPixels, OfEveryNumberOfThem) {
  for (int pixels = 1; pixels <= mostFewPixels; ++pixels) {
    for (const int outs : {3, 20}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 37, 1, pixels, outs, 1);
      desc.weightLayout = taccWeightsBlocked;
      expectFewPixels(desc);
    }
  }
}

TEST(FewPixels, ServeNothingElse) {
  const auto expectRefused = [](taccConvDesc_t desc) {
    desc.algorithm = name;
    try {
      makePlan(understand(desc), portableKernels());
      ADD_FAILURE() << "it serves " << Case(desc).text();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(name));
    }
  };
  expectRefused(convolution(taccConvForward, 1, 32, 2, 2, 32, 1));
  expectRefused(convolution(taccConvBackwardData, 1, 32, 2, 2, 32, 1));
  expectRefused(convolution(taccConvBackwardWeights, 1, 32, 2, 5, 32, 1));
  taccConvDesc_t grouped = convolution(taccConvBackwardWeights, 1, 32, 2, 2, 32, 1);
  grouped.groups = 2;
  expectRefused(grouped);
}

/// Where vectors are half a block and caches are near, which is where that has been measured.
TEST(FewPixels, AreChosenForFourOfManyChannels) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    for (const int kernel : {1, 3}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 256, 2, 2, 512, kernel, 1, kernel / 2);
      desc.weightLayout = taccWeightsBlocked;
      EXPECT_EQ(makePlan(understand(desc), *kernels).algorithm, name) << kernels->isa;
      desc.height = desc.width = 8;
      EXPECT_NE(makePlan(understand(desc), *kernels).algorithm, name) << kernels->isa;
    }
  }
  pretendCoreModel(nullptr);
}

/// Prices of others have not been measured.
TEST(FewPixels, AreOfferedToOthersByNameAlone) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 256, 2, 2, 512, 1);
  desc.weightLayout = taccWeightsBlocked;
  for (const KernelSet* kernels : availableKernels()) {
    for (const CoreModel* model : {&nearCore, &meshCore}) {
      pretendCoreModel(model);
      if (areNearHalves(kernels->fmaLanes)) continue;
      EXPECT_NE(makePlan(understand(desc), *kernels).algorithm, name) << kernels->isa;
    }
  }
  pretendCoreModel(nullptr);
}

}  // namespace
}  // namespace tacc::conv::test
