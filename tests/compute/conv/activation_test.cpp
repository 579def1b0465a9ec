// The functions that a forward pass applies at last: by every algorithm, where they bend, and as such.
#include "compute/conv/activation.hpp"
#if defined(__x86_64__)
#include "compute/conv/amx/amx_kernels.hpp"
#endif

#include <bit>
#include <cmath>
#include <limits>

#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

constexpr taccActivation_t functions[] = {taccActivationRelu6, taccActivationSilu, taccActivationHardSwish};

/// In double, by the definition.
double expectedOf(taccActivation_t function, double x) {
  if (function == taccActivationRelu6) return std::clamp(x, 0.0, 6.0);
  return function == taccActivationSilu ? x / (1 + std::exp(-x)) : x * std::clamp(x + 3, 0.0, 6.0) / 6;
}

/// Of 16 numbers.
void activate16(const KernelSet& kernels, taccActivation_t function, float* numbers) {
  kernels.activate(function, numbers, 1);
}

TEST(Activation, IsRightForNumbersOfEverySize) {
  constexpr std::uint32_t step = 4999;  // of all 2^32 bit patterns
  for (const KernelSet* kernels : availableKernels()) {
    for (const taccActivation_t function : functions) {
      for (std::uint32_t bits = 0; bits <= std::numeric_limits<std::uint32_t>::max() - 16 * step;) {
        float numbers[16], results[16];
        for (int i = 0; i < 16; ++i, bits += step) numbers[i] = results[i] = std::bit_cast<float>(bits);
        activate16(*kernels, function, results);
        for (int i = 0; i < 16; ++i) {
          if (!std::isfinite(numbers[i])) continue;
          const double right = expectedOf(function, numbers[i]);
          const double allowed = 4e-7 * std::abs(right) + 1e-36;
          // x + 3 rounds before it is multiplied.
          const double hard = function == taccActivationHardSwish ? std::abs(double{numbers[i]}) * 5e-8 : 0;
          ASSERT_LE(std::abs(results[i] - right), allowed + hard)
              << kernels->isa << " function " << function << " of " << numbers[i];
          ASSERT_LE(std::abs(results[i] - applyActivation(function, numbers[i])), 2 * (allowed + hard)) << numbers[i];
        }
      }
    }
  }
}

TEST(Activation, KeepsWhatIsNotANumberAndZeros) {
  for (const KernelSet* kernels : availableKernels()) {
    for (const taccActivation_t function : functions) {
      float numbers[16] = {0, -0.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
      activate16(*kernels, function, numbers);
      EXPECT_EQ(numbers[0], 0) << kernels->isa;
      EXPECT_EQ(numbers[1], 0) << kernels->isa;
      EXPECT_EQ(numbers[2], function == taccActivationRelu6 ? 6 : std::numeric_limits<float>::infinity());
      // As ReLU, ReLU6 takes it for 0.
      EXPECT_EQ(std::isnan(numbers[3]), function != taccActivationRelu6) << kernels->isa;
    }
  }
}

/// With results around zero, where the functions bend: sums of few products.
taccConvDesc_t withSmallResults(int ins, int outs, int kernel, int groups) {
  taccConvDesc_t desc = convolution(taccConvForward, 2, ins, 9, 17, outs, kernel, 1, kernel / 2);
  desc.groups = groups;
  desc.bias = 1;
  return desc;
}

TEST(Activation, ByEveryAlgorithm) {
  for (const taccActivation_t function : allActivations) {
    for (const auto& [ins, outs, kernel, groups] : {std::array{2, 40, 1, 1},
                                                    {3, 33, 1, 1},
                                                    {1, 20, 3, 1},
                                                    {4, 3, 3, 1},
                                                    {5, 2, 1, 1},
                                                    {24, 24, 3, 24},
                                                    {17, 17, 5, 17},
                                                    {16, 16, 8, 16},
                                                    {20, 20, 1, 20},
                                                    {8, 12, 1, 4},
                                                    {12, 24, 3, 12}}) {
      for (const int residual : {0, 1}) {
        taccConvDesc_t desc = withSmallResults(ins, outs, kernel, groups);
        desc.activation = function;
        desc.residual = residual;
        expectExact(desc);
        if (groups > 1 && groups == ins && groups == outs) {
          desc.strideHeight = desc.strideWidth = 2;
          expectExact(desc);
        }
        desc.inputLayout = desc.outputLayout = taccLayoutNchw;
        expectExactAsChosen(desc);
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        expectExactAsChosen(desc);
      }
    }
  }
}

TEST(Activation, OfResultsStoredNonTemporally) {
  for (const taccActivation_t function : functions) {
    taccConvDesc_t desc = convolution(taccConvForward, 1, 2, 230, 300, 17, 1);
    desc.activation = function;
    expectExact(desc);
    desc = convolution(taccConvForward, 3, 70, 120, 100, 70, 3, 1, 1);
    desc.groups = 70;
    desc.activation = function;
    expectExact(desc);
  }
}

#if defined(__x86_64__)
TEST(Activation, OfProductsOfSplitNumbers) {
  // What delivers sums of AMX's tiles uses vectors alone, so it is there for more CPUs.
  if (__builtin_cpu_supports("avx512bw") == 0) GTEST_SKIP() << "this CPU has no AVX-512 with words";
  constexpr int positions = 5, floats = 16 * positions;
  const std::vector<std::ptrdiff_t> places = {0, 48, 16, -1, 32};
  for (const taccActivation_t function : allActivations) {
    for (const bool hasAddend : {false, true}) {
      Floats sums(16 * 16), output(floats), addend(floats), bias(16);
      for (std::ptrdiff_t i = 0; i < floats; ++i) {
        sums[i] = smallInteger(1, static_cast<std::uint64_t>(i), 9);
        addend[i] = hasAddend ? smallInteger(2, static_cast<std::uint64_t>(i), 9) : 0;
        bias[i % 16] = smallInteger(3, static_cast<std::uint64_t>(i % 16), 2);
      }
      DeliverWork work;
      work.sums = sums.data();
      work.positions = positions;
      work.blocks = 1;
      work.outputs = places.data();
      work.bias = bias.data();
      work.addend = hasAddend ? addend.data() : nullptr;
      work.output = output.data();
      work.activation = function;
      amxKernelTable().deliver(work);
      for (std::ptrdiff_t i = 0; i < floats; ++i) {
        const std::ptrdiff_t place = places[static_cast<std::size_t>(i / 16)] + i % 16;
        if (place < 16 && i >= 16) continue;  // nowhere
        const float right = applyActivation(function, sums[i] + bias[i % 16] + addend[place]);
        EXPECT_NEAR(output[place], right, function == taccActivationSilu ? 1e-6F * std::abs(right) : 0);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace tacc::conv::test
