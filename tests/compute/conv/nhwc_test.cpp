// NHWC in place, of any number of channels: where they are no multiple of 16, another pixel begins behind the last one,
// or the tensor ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "between_pages.hpp"
#include "pass_name.hpp"

namespace tacc::conv::test {
namespace {

/// The algorithms that serve a description as it is, but for those that only names choose.
std::set<std::string> servingInPlace(const taccConvDesc_t& desc) {
  std::set<std::string> names;
  for (const KernelSet* kernels : availableKernels()) {
    const Description d = withKernels(understand(desc), *kernels);
    for (const ConvAlgorithm& algorithm : allAlgorithms()) {
      if (algorithm.offer == ConvOffer::byPrice && serves(algorithm, d)) names.emplace(algorithm.name);
    }
  }
  return names;
}

class Nhwc : public testing::TestWithParam<taccConvPass_t> {
 protected:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  /// NHWC on both sides, or on one of them.
  void chooseLayouts(taccConvDesc_t& desc) {
    desc.inputLayout = taccLayoutNhwc;
    desc.outputLayout = from(0, 3) == 0 ? taccLayoutNchw16c : taccLayoutNhwc;
    if (from(0, 7) == 0) std::swap(desc.inputLayout, desc.outputLayout);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
  }
  void expectExactByAll(taccConvDesc_t desc, int number) {
    for (const std::string& name : servingInPlace(desc)) {
      desc.algorithm = name.c_str();
      expectExactBetweenPages(desc, number % 2 == 0 ? 1 : 3, number % 4 < 3);
      served_.insert(name);
    }
  }

  std::mt19937 random_{16};
  std::set<std::string> served_;
};

TEST_P(Nhwc, IsExactForAnyChannels) {
  for (int i = 0; i < 60; ++i) {
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 70), from(1, 9), from(1, 16), from(1, 70), 1);
    chooseKernel(desc, random_);
    chooseLayouts(desc);
    chooseEpilogue(desc, random_);
    expectExactByAll(desc, i);
  }
  EXPECT_THAT(served_, testing::Contains("direct"));
}

/// Of as many pixels as a product goes through in several parts, or brings together over a stride.
TEST_P(Nhwc, IsExactForProductsOfManyPixels) {
  for (int i = 0; i < 16; ++i) {
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), from(1, 70), from(1, 24), from(9, 40), from(1, 70), 1);
    desc.strideHeight = desc.strideWidth = from(0, 3) == 0 ? 2 : 1;
    chooseLayouts(desc);
    chooseEpilogue(desc, random_);
    expectExactByAll(desc, i);
  }
  EXPECT_THAT(served_, testing::Contains("direct"));
}

TEST_P(Nhwc, IsExactChannelByChannel) {
  for (int i = 0; i < 60; ++i) {
    const int channels = from(1, i % 2 == 0 ? 90 : blockLength), kernel = 3 + 2 * from(0, 2);
    taccConvDesc_t desc =
        convolution(GetParam(), from(1, 3), channels, from(kernel, 20), from(kernel, 40), channels, kernel);
    desc.groups = channels;
    desc.strideHeight = desc.strideWidth = from(1, 2);
    desc.padHeight = from(0, kernel - 1);
    desc.padWidth = from(0, kernel - 1);
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    if (from(0, 2) == 0) chooseEpilogue(desc, random_);
    expectExactByAll(desc, i);
  }
  EXPECT_THAT(served_, testing::Contains("depthwise"));
}

/// Groups that begin and end within blocks: the channels of others are behind theirs, and are others' to write.
TEST_P(Nhwc, IsExactGroupByGroup) {
  for (int i = 0; i < 40; ++i) {
    const int groups = from(2, 5), ins = from(1, 40), outs = from(1, 40);
    taccConvDesc_t desc = convolution(GetParam(), from(1, 2), groups * ins, from(3, 9), from(3, 18), groups * outs, 3);
    chooseKernel(desc, random_);
    desc.groups = groups;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random_);
    expectExactByAll(desc, i);
  }
  EXPECT_THAT(served_, testing::Contains("direct"));
}

INSTANTIATE_TEST_SUITE_P(Exact, Nhwc, testing::ValuesIn(allPasses), passName);

/// Layers of networks with other numbers of channels than multiples of 16 are not reordered.
TEST(NhwcChoice, ReordersNothingOfUsualLayers) {
  for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
    for (const int channels : {24, 40, 58, 72, 116, 184, 728}) {
      for (const bool isDepthwise : {false, true}) {
        taccConvDesc_t desc = convolution(pass, 1, channels, 28, 28, channels, isDepthwise ? 3 : 1, 1, isDepthwise);
        desc.groups = isDepthwise ? channels : 1;
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        const ChosenPlan chosen = makePlan(understand(desc), bestKernels());
        EXPECT_THAT(chosen.plan->kernel(), testing::Not(testing::HasSubstr("reorders")))
            << channels << " channels, " << chosen.algorithm;
      }
    }
  }
}

/// Vectors that are as long as blocks leave out what a single block lacks; shorter ones end with its last channel.
TEST(NhwcChoice, ReordersNoSingleBlock) {
  for (const KernelSet* kernels : availableKernels()) {
    for (const taccConvPass_t pass : allPasses) {
      for (const int channels : {5, 8, 12}) {
        if (kernels->fmaLanes != blockLength && channels < kernels->fmaLanes) continue;
        taccConvDesc_t desc = convolution(pass, 1, channels, 112, 112, channels, 3, 1, 1);
        desc.groups = channels;
        desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
        const ChosenPlan chosen = makePlan(understand(desc), *kernels);
        EXPECT_THAT(chosen.plan->kernel(), testing::Not(testing::HasSubstr("reorders")))
            << channels << " channels, " << chosen.algorithm;
      }
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
