// Gradients of the weights of few output channels, by the algorithm that is for them: forced by its name, on drawn
// shapes and on those at which it cuts its work into parts.
#include <gmock/gmock.h>

#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"
#include "core/error.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

constexpr const char* name = "few-outputs";

/// Exact with every instruction set, for one worker and for several.
void expectFewOutputs(taccConvDesc_t desc) {
  desc.algorithm = name;
  for (const int workers : {1, 3}) {
    desc.maxWorkers = workers;
    const Case test(desc);
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels()) {
      const ChosenPlan plan = makePlan(test.description(), *kernels);
      EXPECT_EQ(plan.algorithm, name);
      EXPECT_TRUE(test.run(*plan.plan, ThreadedExecutor(workers).get()) == expected)
          << test.text() << " with " << plan.plan->kernel() << ", " << workers << " workers";
    }
  }
}

TEST(FewOutputs, OfDrawnShapes) {
  std::mt19937 random(29);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 60; ++i) {
    taccConvDesc_t desc =
        convolution(taccConvBackwardWeights, from(1, 5), from(1, 150), from(1, 12), from(1, 20), from(1, 15), 1);
    chooseKernel(desc, random);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.accumulate = from(0, 1);
    expectFewOutputs(desc);
  }
}

TEST(FewOutputs, OfEveryNumberOfThem) {
  for (int outs = 1; outs <= 15; ++outs)
    expectFewOutputs(convolution(taccConvBackwardWeights, 2, 37, 5, 6, outs, 3, 1, 1));
}

TEST(FewOutputs, InPartsOfThePixels) {
  for (const int batch : {1, 4}) {
    expectFewOutputs(convolution(taccConvBackwardWeights, batch, 20, 130, 101, 3, 1));  // of one image, and of several
    expectFewOutputs(convolution(taccConvBackwardWeights, batch, 5, 90, 120, 2, 3, 1, 1));
  }
}

TEST(FewOutputs, InTurnsOfLinesThatFitTheCache) {
  expectFewOutputs(convolution(taccConvBackwardWeights, 1, 70, 9, 1500, 2, 3, 1, 1));
  expectFewOutputs(convolution(taccConvBackwardWeights, 2, 40, 7, 2000, 1, 3, 2, 1));
}

TEST(FewOutputs, ServeNothingElse) {
  const auto expectRefused = [](taccConvDesc_t desc) {
    desc.algorithm = name;
    try {
      makePlan(understand(desc), portableKernels());
      ADD_FAILURE() << "it serves " << Case(desc).text();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(name));
    }
  };
  expectRefused(convolution(taccConvForward, 1, 32, 5, 5, 4, 3, 1, 1));
  expectRefused(convolution(taccConvBackwardData, 1, 32, 5, 5, 4, 3, 1, 1));
  expectRefused(convolution(taccConvBackwardWeights, 1, 32, 5, 5, 16, 3, 1, 1));
  taccConvDesc_t grouped = convolution(taccConvBackwardWeights, 1, 32, 5, 5, 4, 3, 1, 1);
  grouped.groups = 2;
  expectRefused(grouped);
}

TEST(FewOutputs, AreChosenForOneOfManyPixels) {
  const taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 512, 56, 56, 1, 3, 1, 1);
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->split != nullptr) continue;  // AMX's products have a rule of their own
    EXPECT_EQ(makePlan(understand(desc), *kernels).algorithm, name) << kernels->isa;
  }
}

/// Where vectors are half a block, sums of one or two outputs wait for what they are made of.
TEST(FewOutputs, AreNotChosenForTwoOfFewInputsOfShortVectors) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    for (const int stride : {1, 3}) {
      const taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 6, 112, 112, 2, 5, stride, 2);
      EXPECT_NE(makePlan(understand(desc), *kernels).algorithm, name) << kernels->isa;
    }
  }
  pretendCoreModel(nullptr);
}

}  // namespace
}  // namespace tacc::conv::test
