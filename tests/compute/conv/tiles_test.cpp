// Convolutions on tiles, AMX's and those in plain loops: both kinds of numbers, blocks and NHWC, from and to tensors
// that lie between pages that may not be touched.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "bfloat16_case.hpp"
#include "paged_tensor.hpp"
#include "pass_name.hpp"
#include "plain_tiles.hpp"
#include "support/settings.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

std::vector<const KernelSet*> tileKernels() {
  std::vector<const KernelSet*> sets = {&plainTileKernels()};
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->split != nullptr) sets.push_back(kernels);
  }
  return sets;
}

class Tiles : public testing::Test {
 protected:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool isOneOf(int count) { return from(1, count) == 1; }

  /// With the kernel that `desc` has.
  taccConvDesc_t finished(taccConvDesc_t desc) {
    desc.algorithm = "split";
    desc.maxWorkers = 3;
    desc.inputLayout = isOneOf(3) ? taccLayoutNchw16c : taccLayoutNhwc;
    desc.outputLayout = isOneOf(4) ? taccLayoutNchw16c : taccLayoutNhwc;
    if (isOneOf(2)) desc.activationType = taccBfloat16;
    desc.roundWeights = desc.activationType == taccBfloat16 && desc.pass != taccConvBackwardWeights;
    chooseEpilogue(desc, random_);
    // It rounds, so what it gives in bfloat16 is not known exactly.
    if (desc.activation == taccActivationSilu) desc.activation = taccActivationRelu;
    desc.weightLayout = isOneOf(2) ? taccWeightsKcrs : taccWeightsBlocked;
    return desc;
  }

  void expectExact(const taccConvDesc_t& desc) {
    const Case test(desc);
    const Floats right = expectedNumbers(test);
    const int workers = from(0, 1) == 0 ? 1 : 3;
    const bool isAtEnd = from(0, 3) != 0;
    const ThreadedExecutor threads(workers);
    for (const KernelSet* kernels : tileKernels()) {
      // Plain loops take long.
      constexpr std::size_t large = 1 << 20;
      if (test.input.size() > large && kernels == &plainTileKernels() && tileKernels().size() > 1) continue;
      const auto plan = makePlan(test.description(), *kernels).plan;
      ++kernels_[plan->kernel()];
      const Floats result = runBetweenPages(test, *plan, isAtEnd, threads.get());
      EXPECT_TRUE(test.isRight(result, right))
          << test.text() << ": " << kernels->isa << " " << plan->kernel() << ", " << workers << " workers, layouts "
          << desc.inputLayout << " and " << desc.outputLayout;
    }
  }

  int draws() const { return tacc::test::isQuick() ? 8 : 24; }

  std::mt19937 random_{31};
  std::map<std::string, int> kernels_;  // how often
};

class TilesOfPass : public Tiles, public testing::WithParamInterface<taccConvPass_t> {};

TEST_P(TilesOfPass, AreExactForAnyShapeAndLayout) {
  for (int i = 0; i < draws(); ++i) {
    const int groups = isOneOf(5) ? from(2, 3) : 1;
    const auto channels = [&] { return groups * (groups > 1 ? 16 * from(1, 3) : from(1, 100)); };
    taccConvDesc_t desc = convolution(GetParam(), from(1, 4), channels(), from(1, 18), from(1, 33), channels(), 1);
    desc.groups = groups;
    chooseKernel(desc, random_);
    expectExact(finished(desc));
  }
  EXPECT_THAT(kernels_, testing::Contains(testing::Key("amx 32x2")));
  EXPECT_THAT(kernels_, testing::Contains(testing::Key("amx 32x2 bf16 pairs")));
}

/// Whose pixels are rows where they lie, if channels are whole steps: the last tile ends behind the tensor.
TEST_P(TilesOfPass, AreExactForProducts) {
  for (int i = 0; i < draws(); ++i) {
    const int groups = isOneOf(5) ? 2 : 1;
    const auto channels = [&] { return groups * 16 * from(1, 9) + (groups == 1 && isOneOf(3) ? from(1, 15) : 0); };
    expectExact(finished([&] {
      taccConvDesc_t desc = convolution(GetParam(), from(1, 4), channels(), from(1, 20), from(1, 20), channels(), 1);
      desc.groups = groups;
      return desc;
    }()));
  }
  EXPECT_THAT(kernels_, testing::Contains(testing::Key("amx 32x2 bf16 pairs")));
}

/// Bfloat16, of which several groups are one for the tiles.
TEST_P(TilesOfPass, AreExactForGroupsOfFewChannels) {
  for (int i = 0; i < draws(); ++i) {
    const int groups = 16 * from(1, 4), ins = from(1, 20), outs = from(1, 20);
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), groups * ins, from(1, 12), from(1, 20), groups * outs, 1);
    desc.groups = groups;
    chooseKernel(desc, random_);
    desc = finished(desc);
    desc.activationType = taccBfloat16;
    desc.roundWeights = GetParam() != taccConvBackwardWeights;
    if (GetParam() == taccConvBackwardWeights) desc.algorithm = nullptr;  // tiles serve whole blocks there
    expectExact(desc);
  }
  if (GetParam() != taccConvBackwardWeights) {
    EXPECT_GE(kernels_["amx 32x2 bf16 pairs"], draws() / 2);
  }
}

/// Of one or two blocks of channels, which are read in place, and sums of one block of outputs.
TEST_P(TilesOfPass, AreExactForFewBlocksOfProducts) {
  for (int i = 0; i < draws(); ++i) {
    const auto channels = [&] { return isOneOf(2) ? 16 : from(1, 48); };
    expectExact(finished(convolution(GetParam(), from(1, 3), channels(), from(1, 20), from(1, 40), channels(), 1)));
  }
}

/// Whose rows are lines of the kernel, forward and in NHWC: at the borders a part of one.
TEST_P(TilesOfPass, AreExactForFewChannels) {
  for (int i = 0; i < draws(); ++i) {
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 9), from(1, 20), from(1, 40), from(1, 70), 1);
    chooseKernel(desc, random_);
    if (isOneOf(2)) desc.dilationWidth = 1;
    expectExact(finished(desc));
  }
}

/// Lines that end within tiles: what is between them is nowhere, or the place of another phase of a stride.
TEST_P(TilesOfPass, AreExactForNarrowImages) {
  for (int i = 0; i < 3 * draws(); ++i) {
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 40), from(1, 40), from(1, 6), from(1, 40), 1);
    chooseKernel(desc, random_);
    expectExact(finished(desc));
  }
}

INSTANTIATE_TEST_SUITE_P(Split, TilesOfPass, testing::ValuesIn(allPasses), passName);

/// Results that the caches do not hold, in bfloat16 too; the input comes from memory.
TEST_F(Tiles, AreExactForLargeTensors) {
  for (const taccLayout_t layout : {taccLayoutNhwc, taccLayoutNchw16c}) {
    taccConvDesc_t desc = convolution(taccConvForward, 2, 32, 130, 131, 128, 1);
    desc.algorithm = "split";
    desc.maxWorkers = 3;
    desc.activationType = taccBfloat16;
    desc.roundWeights = 1;
    desc.inputLayout = desc.outputLayout = layout;
    expectExact(desc);
  }
}

}  // namespace
}  // namespace tacc::conv::test
