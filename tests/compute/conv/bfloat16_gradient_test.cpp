// Gradients of weights of activations in bfloat16, in pairs of pixels where the CPU multiplies such.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "../guarded_buffer.hpp"
#include "bfloat16_case.hpp"
#include "compute/conv/core_model.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;

taccConvDesc_t gradientOf(int batch, int ins, int height, int width, int outs, int kernel, int stride, int pad) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, batch, ins, height, width, outs, kernel, stride, pad);
  desc.activationType = taccBfloat16;
  desc.algorithm = "direct";  // by pairs wherever there are some
  return desc;
}

/// Any shape, in blocks or NHWC.
taccConvDesc_t drawnGradient(std::mt19937& random) {
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const int groups = from(0, 4) == 0 ? from(2, 3) : 1;
  const bool isNhwc = groups == 1 && from(0, 2) == 0;
  const int ins = groups * (groups > 1 ? 16 * from(1, 2) : from(1, 50));
  const int outs = groups * (groups > 1 || isNhwc ? 16 * from(1, 4) : from(1, 70));
  taccConvDesc_t desc = gradientOf(from(1, 4), ins, from(1, 15), from(1, 20), outs, 1, 1, 0);
  if (from(0, 2) == 0) {
    desc.strideHeight = from(1, 3);  // of a 1x1 kernel
    desc.strideWidth = from(1, 3);
  } else {
    chooseKernel(desc, random);
  }
  desc.groups = groups;
  if (isNhwc) desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  if (from(0, 1) == 0) desc.weightLayout = taccWeightsKcrs;
  desc.accumulate = from(0, 1);
  return desc;
}

TEST(Bfloat16Gradient, IsExactForEveryShape) {
  std::mt19937 random(21);
  for (int i = 0; i < 150; ++i) {
    const Case test(drawnGradient(random));
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels())
      EXPECT_TRUE(runInBfloat16(test, *kernels, *taccSerialExecutor()) == expected) << test.text() << kernels->isa;
  }
}

TEST(Bfloat16Gradient, OfManyImagesIsSummedInPartsExactly) {
  for (const taccWeightLayout_t layout : {taccWeightsBlocked, taccWeightsKcrs}) {
    taccConvDesc_t desc = gradientOf(5, 32, 61, 60, 48, 3, 1, 1);  // one image at a time
    desc.weightLayout = layout;
    const Case test(desc);
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels())
      EXPECT_TRUE(runInBfloat16(test, *kernels, *taccSerialExecutor()) == expected) << kernels->isa;
  }
}

/// Any numbers in place of small integers.
void fillWithAny(Case& test, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (Floats* floats : {&test.input, &test.outputGradient})
    for (std::size_t i = 0; i < floats->size(); ++i) floats->data()[i] = rounded(normal(random));
}

TEST(Bfloat16Gradient, IsTheSameBitsForEveryNumberOfThreads) {
  std::mt19937 random(22);
  for (int i = 0; i < 20; ++i) {
    taccConvDesc_t desc = drawnGradient(random);
    desc.accumulate = 0;
    desc.maxWorkers = 4;
    Case test(desc);
    fillWithAny(test, 5);
    for (const KernelSet* kernels : availableKernels()) {
      const Floats alone = runInBfloat16(test, *kernels, *taccSerialExecutor());
      for (const int workers : {2, 3, 4})
        EXPECT_TRUE(runInBfloat16(test, *kernels, ThreadedExecutor(workers).get()) == alone) << test.text();
    }
  }
}

/// Products of bfloat16 are exact in float32, so errors are those of its sums: at most half a unit for each product.
TEST(Bfloat16Gradient, ErrorsAreThoseOfSumsInFloat32) {
  for (const taccConvDesc_t& desc : {gradientOf(2, 32, 13, 13, 48, 3, 1, 1), gradientOf(3, 48, 9, 8, 32, 1, 1, 0),
                                     gradientOf(2, 16, 15, 15, 32, 3, 2, 1)}) {
    Case test(desc);
    fillWithAny(test, 6);
    Case magnitudes = test;
    for (Floats* floats : {&magnitudes.input, &magnitudes.outputGradient})
      for (std::size_t i = 0; i < floats->size(); ++i) floats->data()[i] = std::abs(floats->data()[i]);
    const Floats right = test.expected(), scale = magnitudes.expected();
    for (const KernelSet* kernels : availableKernels()) {
      const Floats result = runInBfloat16(test, *kernels, *taccSerialExecutor());
      double largest = 0;
      for (std::size_t i = 0; i < result.size(); ++i) {
        if (scale.data()[i] == 0) continue;
        largest = std::max(largest, std::abs(double(result.data()[i]) - right.data()[i]) * 0x1p24 / scale.data()[i]);
      }
      EXPECT_LT(largest, 16) << test.text() << " " << kernels->isa;
    }
  }
}

/// A pair at the end of a line has a pixel that no tap sees there: of the next line, image or block.
TEST(Bfloat16Gradient, KeepsWhatIsNotFiniteToItsTaps) {
  for (const int width : {6, 7}) {
    Case test(gradientOf(2, 16, 5, width, 16, 3, 1, 1));
    const auto at = [&](int y, int x) { return (std::ptrdiff_t{y} * width + x) * blockLength; };
    test.input[at(2, 0) + 3] = std::numeric_limits<float>::infinity();  // no tap on the right sees column 0
    test.outputGradient[at(3, width - 1) + 2] = std::numeric_limits<float>::quiet_NaN();
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels()) {
      const Floats result = runInBfloat16(test, *kernels, *taccSerialExecutor());
      for (std::size_t i = 0; i < result.size(); ++i) {
        const float right = expected.data()[i], is = result.data()[i];
        EXPECT_TRUE(std::isfinite(right) ? is == right : !std::isfinite(is)) << width << " " << i << kernels->isa;
      }
    }
  }
}

TEST(Bfloat16Gradient, ReadsNothingOutsideItsTensors) {
  std::mt19937 random(23);
  for (int i = 0; i < 30; ++i) {
    taccConvDesc_t desc = drawnGradient(random);
    desc.accumulate = 0;
    const Case test(desc);
    const Floats expected = test.expected();
    for (const KernelSet* kernels : availableKernels()) {
      const auto plan = makePlan(test.description(), *kernels).plan;
      Halves input(test.input), gradient(test.outputGradient);
      Floats result = test.before, workspace(plan->workspaceBytes() / sizeof(float));
      for (const bool isAtEnd : {false, true}) {
        PageBuffer inputPages(64), gradientPages(64);
        const auto guarded = [&](PageBuffer& pages, Halves& numbers, std::size_t count) {
          const std::size_t bytes = count * sizeof(std::uint16_t);
          unsigned char* const to = isAtEnd ? pages.atEnd(bytes) : pages.atBegin();
          std::memcpy(to, numbers.data(), bytes);
          return reinterpret_cast<const float*>(to);
        };
        ASSERT_LE(std::max(test.input.size(), test.outputGradient.size()) * 2, std::size_t{64} * 4096);
        plan->run({guarded(inputPages, input, test.input.size()), nullptr,
                   guarded(gradientPages, gradient, test.outputGradient.size()), nullptr, nullptr, result.data(),
                   workspace.data(), plan->workspaceBytes()},
                  TaskExecutor(*taccSerialExecutor()));
        EXPECT_TRUE(result == expected) << test.text() << " " << kernels->isa;
      }
    }
  }
}

TEST(Bfloat16Gradient, IsMultipliedInPairsWhereTheCpuCan) {
  taccConvDesc_t desc = gradientOf(1, 64, 28, 28, 64, 3, 1, 1);
  taccConvDesc_t ofFloats = desc;
  ofFloats.activationType = taccFloat32;
  for (const char* algorithm : {static_cast<const char*>(nullptr), "direct"}) {
    desc.algorithm = ofFloats.algorithm = algorithm;
    for (const KernelSet* kernels : availableKernels()) {
      const auto plan = makePlan(understand(desc), *kernels).plan;
      const bool isFaster = coreModel().pairProducts >= 1;
      const bool isOnTiles = algorithm == nullptr && kernels->split != nullptr;
      const bool hasPairs = (pairKernels(*kernels) != nullptr && (isFaster || algorithm != nullptr)) || isOnTiles;
      EXPECT_EQ(plan->kernel().ends_with(" bf16 pairs"), hasPairs) << plan->kernel();
      const double ofSame = makePlan(understand(ofFloats), *kernels).plan->predictedSeconds();
      if (hasPairs && (isFaster || isOnTiles)) {
        EXPECT_LT(plan->predictedSeconds(), 0.8 * ofSame);
      }
    }
  }
}

/// The instructions take numbers below 2^-126 for zero, of operands and of sums.
TEST(Bfloat16Gradient, TakesTheSmallestNumbersForThemselvesOrZero) {
  Case test(gradientOf(1, 16, 4, 4, 16, 1, 1, 0));
  std::fill_n(test.input.data(), test.input.size(), 0x1p-130F);
  std::fill_n(test.outputGradient.data(), test.outputGradient.size(), 1.0F);
  for (const KernelSet* kernels : availableKernels()) {
    const bool hasPairs = makePlan(test.description(), *kernels).plan->kernel().ends_with(" pairs");
    const Floats result = runInBfloat16(test, *kernels, *taccSerialExecutor());
    for (std::size_t i = 0; i < result.size(); ++i)
      EXPECT_EQ(result.data()[i], hasPairs ? 0.0F : 0x1p-126F) << kernels->isa;
  }
}

}  // namespace
}  // namespace tacc::conv::test
