// Winograd's convolutions: 2x2 tiles only halve numbers and stay exact on small integers; larger ones divide by 3
// and 5.
#include <cmath>

#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

/// The largest error in terms of the largest value.
double relativeError(const Floats& result, const Floats& expected) {
  double error = 0;
  double scale = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    // A value that is not a number counts as an error of any size.
    const double difference = std::abs(double(result.data()[i]) - expected.data()[i]);
    error = difference <= error ? error : difference;
    scale = std::max(scale, std::abs(double(expected.data()[i])));
  }
  return error / scale;
}

void expectWinograd(taccConvDesc_t desc) {
  desc.winograd = 1;
  for (const char* name : {"winograd-2x2", "winograd-4x4", "winograd-5x5", "winograd-6x6"}) {
    desc.algorithm = name;
    const Case test(desc);
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels()) {
      const ChosenPlan chosen = makePlan(test.description(), *kernels);
      EXPECT_EQ(chosen.algorithm, name);
      const Floats result = test.run(*chosen.plan, *taccSerialExecutor());
      const double exactly = desc.activation == taccActivationSilu ? 1e-6 : 0;
      const double limit = chosen.algorithm == "winograd-2x2"   ? exactly
                           : chosen.algorithm == "winograd-6x6" ? 2e-5
                                                                : 1e-5;
      EXPECT_LE(relativeError(result, expected), limit)
          << test.text() << " with " << name << " " << chosen.plan->kernel();
    }
  }
}

constexpr taccConvPass_t passes[] = {taccConvForward, taccConvBackwardData};

TEST(Winograd, EverySizeOfImage) {
  for (const taccConvPass_t pass : passes) {
    for (int size = 3; size <= 13; ++size) expectWinograd(convolution(pass, 1, 32, size, 16 - size, 32, 3, 1, 1));
  }
}

TEST(Winograd, EveryPadding) {
  for (const taccConvPass_t pass : passes) {
    for (int pad = 0; pad <= 2; ++pad) expectWinograd(convolution(pass, 2, 16, 9, 10, 48, 3, 1, pad));
  }
}

TEST(Winograd, ChannelsThatDoNotFillBlocks) {
  for (const taccConvPass_t pass : passes) {
    expectWinograd(convolution(pass, 1, 19, 8, 8, 37, 3, 1, 1));
    expectWinograd(convolution(pass, 3, 5, 12, 7, 70, 3, 1, 1));
  }
}

TEST(Winograd, ManyTilesAndImages) {
  for (const taccConvPass_t pass : passes) {
    expectWinograd(convolution(pass, 3, 80, 14, 14, 48, 3, 1, 1));
    expectWinograd(convolution(pass, 1, 16, 61, 50, 16, 3, 1, 1));
  }
}

TEST(Winograd, ResultsStoredNonTemporally) {
  expectWinograd(convolution(taccConvForward, 1, 3, 370, 369, 16, 3, 1, 1));
}

TEST(Winograd, Epilogue) {
  taccConvDesc_t desc = convolution(taccConvForward, 2, 24, 9, 11, 27, 3, 1, 1);
  desc.bias = desc.relu = desc.residual = 1;
  expectWinograd(desc);
  desc.relu = 0;
  for (const taccActivation_t activation : {taccActivationSilu, taccActivationHardSwish}) {
    desc.activation = activation;
    expectWinograd(desc);
  }
  desc = convolution(taccConvBackwardData, 2, 24, 9, 11, 27, 3, 1, 1);
  desc.accumulate = 1;
  desc.weightLayout = taccWeightsBlocked;
  expectWinograd(desc);
}

TEST(Winograd, IsUsedOnlyWhenAskedFor) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 64, 56, 56, 64, 3, 1, 1);
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "direct");
  desc.winograd = 1;
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "winograd-6x6");
  desc.height = desc.width = 16;  // nothing is wasted by tiles of 4
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "winograd-4x4");
  desc.height = desc.width = 14;  // three tiles of 5 waste less than four of 4
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "winograd-5x5");
  // Weights of 16 MiB that are read once are worth it, and those that are read many times not.
  desc.inChannels = desc.outChannels = 512;
  desc.height = desc.width = 7;
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "winograd-2x2");
  desc.inChannels = desc.outChannels = 256;
  desc.height = desc.width = 56;
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "winograd-4x4");
  desc.strideHeight = 2;
  EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, "direct");
}

}  // namespace
}  // namespace tacc::conv::test
