// Activations in bfloat16: float32 results, rounded once.
#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <span>

#include "bfloat16_case.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/layers/kernels.hpp"
#include "plain_tiles.hpp"
#include "support/settings.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

/// All that this CPU has, but where `split` is asked for only those that multiply by tiles, also in plain loops.
std::vector<const KernelSet*> kernelsFor(const taccConvDesc_t& desc) {
  std::vector<const KernelSet*> sets = availableKernels();
  if (desc.algorithm == nullptr || std::string_view(desc.algorithm) != "split") return sets;
  std::erase_if(sets, [](const KernelSet* set) { return set->split == nullptr; });
  sets.push_back(&plainTileKernels());
  return sets;
}

void expectRounded(taccConvDesc_t desc, const taccExecutor_t& executor = *taccSerialExecutor()) {
  desc.activationType = taccBfloat16;
  const Case test(desc);  // with weights that are bfloat16 too
  Floats expected = test.expected();
  if (desc.pass != taccConvBackwardWeights) {
    for (std::size_t i = 0; i < expected.size(); ++i) expected.data()[i] = rounded(expected.data()[i]);
  }
  for (const KernelSet* kernels : kernelsFor(desc)) {
    EXPECT_TRUE(runInBfloat16(test, *kernels, executor) == expected) << test.text() << " " << kernels->isa;
  }
}

/// What is added to the products and done with the sums. `from(least, most)` draws.
template <class Draw>
void drawAdditions(taccConvDesc_t& desc, const Draw& from) {
  if (desc.pass == taccConvForward) {
    desc.bias = from(0, 1);
    desc.residual = from(0, 1);
    desc.activation = std::array{taccActivationNone, taccActivationRelu6, taccActivationHardSwish}[from(0, 2)];
  } else {
    desc.accumulate = from(0, 1);
  }
}

TEST(Bfloat16, IsExactForEveryPassAndShape) {
  std::mt19937 random(6);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 45; ++i) {
    taccConvDesc_t desc = convolution(allPasses[i % 3], from(1, 4), from(1, 50), from(5, 14), from(5, 14), from(1, 50),
                                      from(1, 5), from(1, 2), from(0, 2));
    drawAdditions(desc, from);
    expectRounded(desc);
  }
}

TEST(Bfloat16, InPairsIsExactForEveryShape) {
  std::mt19937 random(8);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 36; ++i) {
    const int groups = from(0, 4) == 0 ? from(2, 3) : 1;
    const auto channels = [&] { return groups * (groups > 1 ? 16 * from(1, 2) : from(0, 1) == 0 ? 16 : from(9, 70)); };
    taccConvDesc_t desc = convolution(i % 2 == 0 ? taccConvForward : taccConvBackwardData, from(1, 4), channels(),
                                      from(1, 20), from(1, 33), channels(), from(1, 7), from(1, 3), from(0, 6));
    desc.groups = groups;
    if (desc.padHeight >= desc.kernelHeight) desc.padHeight = desc.padWidth = desc.kernelHeight - 1;
    desc.height = std::max(desc.height, desc.kernelHeight);
    desc.width = std::max(desc.width, desc.kernelWidth);
    desc.roundWeights = 1;
    desc.algorithm = "direct";
    if (groups == 1 && from(0, 2) == 0) desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    drawAdditions(desc, from);
    if (from(0, 1) == 0) {
      expectRounded(desc);
    } else {
      desc.maxWorkers = 3;
      expectRounded(desc, ThreadedExecutor(3).get());
    }
  }
}

TEST(Bfloat16, OnTilesIsExactForEveryShape) {
  std::mt19937 random(11);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  int onTiles = 0;  // others are dearer there than in float32
  const int draws = tacc::test::isQuick() ? 12 : 60;
  for (int i = 0; i < draws; ++i) {
    const int groups = from(0, 4) == 0 ? from(2, 3) : 1;
    const auto channels = [&] { return groups * (groups > 1 ? 16 * from(1, 3) : from(1, 100)); };
    taccConvDesc_t desc =
        convolution(allPasses[i % 3], from(1, 4), channels(), from(1, 20), from(1, 33), channels(), 1);
    desc.groups = groups;
    chooseKernel(desc, random);
    drawAdditions(desc, from);
    desc.roundWeights = desc.pass != taccConvBackwardWeights;
    desc.algorithm = "split";
    desc.maxWorkers = 3;
    desc.activationType = taccBfloat16;
    onTiles += makePlan(understand(desc), plainTileKernels()).plan->kernel() == "amx 32x2 bf16 pairs" ? 1 : 0;
    expectRounded(desc, from(0, 1) == 0 ? ThreadedExecutor(3).get() : *taccSerialExecutor());
  }
  EXPECT_GE(onTiles, draws * 5 / 6);
}

TEST(Bfloat16, IsMultipliedInPairsWhereTheCpuCan) {
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
    taccConvDesc_t desc = convolution(pass, 1, 64, 28, 28, 64, 3, 1, 1);
    desc.activationType = taccBfloat16;
    for (const KernelSet* kernels : availableKernels()) {
      EXPECT_THAT(makePlan(understand(desc), *kernels).plan->kernel(), testing::Not(testing::HasSubstr("pairs")));
      desc.roundWeights = 1;
      const std::string kernel = makePlan(understand(desc), *kernels).plan->kernel();
      const bool hasPairs = pairKernels(*kernels) != nullptr && coreModel().pairProducts >= 1;
      EXPECT_EQ(kernel.ends_with(" bf16 pairs"), hasPairs || kernels->split != nullptr) << kernel;
      desc.roundWeights = 0;
    }
  }
}

TEST(Bfloat16, IsMultipliedOnTilesWhereThereAreSome) {
  for (const taccConvPass_t pass : allPasses) {
    taccConvDesc_t desc = convolution(pass, 2, 128, 28, 28, 128, 3, 1, 1);
    desc.activationType = taccBfloat16;
    desc.roundWeights = 1;
    EXPECT_EQ(makePlan(understand(desc), plainTileKernels()).plan->kernel(), "amx 32x2 bf16 pairs");
  }
}

/// What is not exact: products of numbers that are rounded once are summed in float32.
TEST(Bfloat16, RoundsWeightsOnce) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 32, 6, 6, 16, 3, 1, 1);
  desc.activationType = taccBfloat16;
  desc.roundWeights = 1;
  Case test(desc);
  std::mt19937 random(9);
  std::uniform_real_distribution<float> any(-1, 1);
  for (float& weight : std::span(test.weights.data(), test.weights.size())) weight = any(random);
  Case roundedTest = test;
  for (float& weight : std::span(roundedTest.weights.data(), roundedTest.weights.size())) weight = rounded(weight);
  const Floats exact = test.expected(), expected = roundedTest.expected();
  for (const KernelSet* kernels : availableKernels()) {
    const Floats result = runInBfloat16(test, *kernels, *taccSerialExecutor());
    const Floats& right = makePlan(test.description(), *kernels).plan->kernel().ends_with(" pairs") ? expected : exact;
    for (std::size_t i = 0; i < result.size(); ++i) {
      ASSERT_NEAR(result.data()[i], right.data()[i], std::abs(right.data()[i]) / 200 + 1e-4)
          << i << " " << kernels->isa;
    }
  }
}

TEST(Bfloat16, InPartsOfTheBatch) {
  for (const taccConvPass_t pass : allPasses) {
    expectRounded(convolution(pass, 4, 16, 8, 8, 48, 1));
    taccConvDesc_t desc = convolution(pass, 6, 32, 60, 60, 32, 3, 1, 1);  // 0.9 MiB of float32 each
    desc.kernelHeight = 1;                                                // three lines would take three times as long
    desc.padHeight = 0;
    expectRounded(desc);
    taccConvDesc_t threaded = desc;
    threaded.batch = 3;
    threaded.width = 61;
    threaded.maxWorkers = 3;
    expectRounded(threaded, ThreadedExecutor(3).get());
  }
}

TEST(Bfloat16, FirstLayersAndDepthwise) {
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardWeights}) {
    for (const taccLayout_t layout : {taccLayoutNchw, taccLayoutNhwc}) {
      taccConvDesc_t desc = convolution(pass, 3, 3, 21, 23, 20, 5, 2, 2);
      desc.inputLayout = layout;
      expectRounded(desc);
    }
  }
  taccConvDesc_t depthwise = convolution(taccConvForward, 2, 32, 9, 9, 32, 3, 1, 1);
  depthwise.groups = 32;
  expectRounded(depthwise);
}

/// Converts a part of `from` there and, non-temporally or not, and expects what `right` says of each number.
template <class From, class To, class Right>
void expectConverted(void (*convert)(const From*, To*, std::size_t, bool), const std::vector<From>& from,
                     bool isNonTemporal, const Right& right) {
  constexpr std::size_t room = 64 / sizeof(To);
  std::vector<To> result(from.size() + 3 * room);
  const std::size_t aligned = (64 - reinterpret_cast<std::uintptr_t>(result.data()) % 64) % 64 / sizeof(To);
  for (const auto& [skipped, shift] : {std::pair<std::size_t, std::size_t>{0, 0}, {5, 0}, {77, 0}, {0, 1}, {3, 7}}) {
    std::fill(result.begin(), result.end(), To{1});
    To* const to = result.data() + aligned + shift;
    const std::size_t count = from.size() - 2 * skipped;
    convert(from.data() + skipped, to, count, isNonTemporal);
    for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(right(from[skipped + i], to[i])) << skipped + i << " " << shift;
    ASSERT_EQ(to[count], To{1}) << "written behind the end";
  }
}

TEST(Bfloat16, ConvertsEveryNumber) {
  std::vector<std::uint16_t> all(1 << 16);
  std::vector<float> wide, between;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::uint16_t>(i);
    wide.push_back(__builtin_bit_cast(float, std::uint32_t{all[i]} << 16));
  }
  // Nearer to one neighbour, to the other, and in the middle, where the even one wins.
  for (std::uint32_t upper = 0; upper < 0x7f80; ++upper) {
    for (const std::uint32_t lower : {0x7fffU, 0x8000U, 0x8001U})
      between.push_back(__builtin_bit_cast(float, upper << 16 | lower));
  }
  for (const KernelSet* set : availableKernels()) {
    const layers::LayerKernels& kernels = layers::kernelTable(set->vectors);
    for (const bool isNonTemporal : {false, true}) {
      SCOPED_TRACE(std::string(set->isa) + (isNonTemporal ? ", non-temporally" : ""));
      expectConverted(kernels.fromBfloat16, all, isNonTemporal, [](std::uint16_t from, float to) {
        return __builtin_bit_cast(std::uint32_t, to) == std::uint32_t{from} << 16;
      });
      expectConverted(kernels.toBfloat16, wide, isNonTemporal, [](float from, std::uint16_t to) {
        const auto upper = __builtin_bit_cast(std::uint32_t, from) >> 16;
        return to == (std::isnan(from) ? upper | 0x40 : upper);
      });
      expectConverted(kernels.toBfloat16, between, isNonTemporal, [](float from, std::uint16_t to) {
        const auto bits = __builtin_bit_cast(std::uint32_t, from);
        const std::uint32_t upper = bits >> 16, lower = bits & 0xffff;
        return to == upper + (lower == 0x8000 ? upper & 1 : lower > 0x8000);
      });
    }
  }
}

TEST(Bfloat16, FromC) {
  taccConvDesc_t desc = convolution(taccConvForward, 2, 16, 6, 6, 32, 3, 1, 1);
  desc.activationType = taccBfloat16;
  const Case test(desc);
  taccConvPlan_t plan = nullptr;
  taccConvInfo_t info{};
  ASSERT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
  ASSERT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
  EXPECT_STREQ(info.algorithm, "direct");
  EXPECT_EQ(info.inputBytes, 2U * 2 * 16 * 36);
  EXPECT_EQ(info.outputBytes, 2U * 2 * 32 * 36);
  Floats packed(info.packedWeightBytes / sizeof(float)), workspace(info.workspaceBytes / sizeof(float));
  Floats input(info.inputBytes / sizeof(float)), output(info.outputBytes / sizeof(float)), wide(2 * 32 * 36);
  ASSERT_EQ(taccConvertNumbers(taccFloat32, test.input.data(), taccBfloat16, input.data(), test.input.size()),
            taccSuccess);
  ASSERT_EQ(taccConvPackWeights(plan, test.weights.data(), packed.data()), taccSuccess);
  const taccConvBuffers_t buffers{input.data(), packed.data(), nullptr,          nullptr,
                                  nullptr,      output.data(), workspace.data(), info.workspaceBytes};
  ASSERT_EQ(taccConvRun(plan, &buffers, taccSerialExecutor()), taccSuccess) << taccGetLastError(nullptr);
  ASSERT_EQ(taccConvertNumbers(taccBfloat16, output.data(), taccFloat32, wide.data(), wide.size()), taccSuccess);
  Floats expected = test.expected();
  for (std::size_t i = 0; i < expected.size(); ++i) expected.data()[i] = rounded(expected.data()[i]);
  EXPECT_TRUE(wide == expected);
  EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess);
}

TEST(Bfloat16, SaysWhatIsWrong) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 16, 6, 6, 32, 3);
  desc.activationType = taccInt8;
  taccConvPlan_t plan = nullptr;
  EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("neither taccFloat32 nor taccBfloat16"));
  desc.activationType = taccFloat32;
  desc.roundWeights = 1;
  EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("roundWeights belongs to activations of taccBfloat16"));
  float some[4] = {}, other[4] = {};
  EXPECT_EQ(taccConvertNumbers(taccFloat32, some, taccFloat32, other, 4), taccInvalidArgument);
  EXPECT_EQ(taccConvertNumbers(taccFloat32, nullptr, taccBfloat16, other, 4), taccInvalidArgument);
  EXPECT_EQ(taccConvertNumbers(taccFloat32, nullptr, taccBfloat16, nullptr, 0), taccSuccess);
}

}  // namespace
}  // namespace tacc::conv::test
