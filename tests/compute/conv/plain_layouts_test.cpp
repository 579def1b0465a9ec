// NCHW and NHWC in and out, for any channel count in every pass: exactly what the definition says, and never by the
// slow reference.
#include <gmock/gmock.h>

#include <random>

#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

constexpr taccLayout_t allLayouts[] = {taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc};

TEST(PlainLayouts, AreExactInEveryPair) {
  for (const taccConvPass_t pass : allPasses) {
    for (const taccLayout_t input : allLayouts) {
      for (const taccLayout_t output : allLayouts) {
        for (const int ins : {3, 17, 64}) {
          for (const int outs : {1, 16, 40}) {
            taccConvDesc_t desc = convolution(pass, 2, ins, 7, 9, outs, 3, 2, 1);
            desc.inputLayout = input;
            desc.outputLayout = output;
            expectExactAsChosen(desc);
          }
        }
      }
    }
  }
}

TEST(PlainLayouts, AreExactForRandomShapes) {
  std::mt19937 random(29);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 90; ++i) {
    const int groups = from(0, 2) == 0 ? from(2, 20) : 1;
    const bool isDepthwise = groups > 1 && from(0, 1) == 0;
    const int ins = isDepthwise ? groups : groups * from(1, groups > 1 ? 6 : 70);
    const int outs = isDepthwise ? groups : groups * from(1, groups > 1 ? 6 : 70);
    taccConvDesc_t desc = convolution(allPasses[i % 3], from(1, 4), ins, from(1, 12), from(1, 20), outs, 1);
    chooseKernel(desc, random);
    desc.groups = groups;
    desc.inputLayout = allLayouts[from(0, 2)];
    desc.outputLayout = allLayouts[from(0, 2)];
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc);
  }
}

TEST(PlainLayouts, InPartsOfTheBatchAndWithThreads) {
  const ThreadedExecutor threads(3);
  for (const taccConvPass_t pass : allPasses) {
    for (const taccLayout_t layout : {taccLayoutNchw, taccLayoutNhwc}) {
      taccConvDesc_t desc = convolution(pass, 6, 32, 60, 60, 32, 3, 1, 1);  // 0.9 MiB a copy: an image at a time
      desc.kernelHeight = 1;  // three lines would take three times as long
      desc.padHeight = 0;
      desc.inputLayout = desc.outputLayout = layout;
      expectExactAsChosen(desc);
      desc.batch = 3;
      desc.maxWorkers = 3;
      desc.accumulate = pass != taccConvForward;
      desc.residual = pass == taccConvForward;
      expectExactAsChosen(desc, threads.get());
    }
  }
}

TEST(PlainLayouts, StoredNonTemporally) {
  taccConvDesc_t desc = convolution(taccConvForward, 3, 16, 200, 201, 32, 1);  // the result is larger than 8 MiB
  desc.inputLayout = desc.outputLayout = taccLayoutNchw;
  expectExactAsChosen(desc);
}

TEST(PlainLayouts, AreSaidAndPriced) {
  taccConvDesc_t desc = convolution(taccConvForward, 1, 64, 28, 28, 64, 3, 1, 1);
  const auto infoOf = [&desc] {
    taccConvPlan_t plan = nullptr;
    taccConvInfo_t info{};
    EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
    EXPECT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
    const std::string kernel = info.kernel;
    EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess);
    return std::pair(info, kernel);
  };
  const auto [blocked, blockedKernel] = infoOf();
  EXPECT_EQ(blocked.reorderSeconds, 0);
  EXPECT_THAT(blockedKernel, testing::Not(testing::HasSubstr("reorders")));
  desc.inputLayout = taccLayoutNchw;
  const auto [one, oneKernel] = infoOf();
  EXPECT_GT(one.reorderSeconds, 0);
  EXPECT_THAT(oneKernel, testing::EndsWith("reorders input"));
  desc.outputLayout = taccLayoutNchw;
  const auto [both, bothKernel] = infoOf();
  EXPECT_GT(both.reorderSeconds, one.reorderSeconds);
  EXPECT_DOUBLE_EQ(both.predictedSeconds, blocked.predictedSeconds + both.reorderSeconds);
  EXPECT_THAT(bothKernel, testing::EndsWith("reorders input, output"));
  EXPECT_STREQ(both.algorithm, blocked.algorithm);
}

TEST(PlainLayouts, NhwcIsReadAndWrittenInPlace) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int groups : {1, 2, 64}) {
      // Of groups of some blocks short vectors gain more by their own kernels than it takes to bring both tensors into
      // blocks.
      if (pass == taccConvBackwardWeights && groups == 2 && bestKernels().fmaLanes < blockLength) continue;
      taccConvDesc_t desc = convolution(pass, 1, 64, 28, 28, 64, 3, 1, 1);
      desc.groups = groups;
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
      const ChosenPlan chosen = makePlan(understand(desc), bestKernels());
      EXPECT_EQ(chosen.plan->reorderSeconds(), 0) << chosen.algorithm;
      EXPECT_THAT(chosen.plan->kernel(), testing::Not(testing::HasSubstr("reorders")));
    }
  }
}

/// A pixel of one channel lies in NHWC as in NCHW, whose kernels read lines.
TEST(PlainLayouts, OneChannelBeforeAndBehindIsAPlane) {
  std::mt19937 random(41);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 30; ++i) {
    const int kernel = from(1, 7);
    taccConvDesc_t desc = convolution(allPasses[i % 3], from(1, 3), 1, from(kernel + 1, 40), from(kernel + 1, 70), 1,
                                      kernel, from(1, 2), from(0, kernel / 2));
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc);
    const std::string nhwc = makePlan(understand(desc), bestKernels()).plan->kernel();
    desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    EXPECT_EQ(nhwc, makePlan(understand(desc), bestKernels()).plan->kernel()) << understand(desc).shape.text();
  }
}

/// Pixels that a stride leaves apart are brought together for groups as for one.
TEST(PlainLayouts, StridedProductsOfGroupsAreExact) {
  std::mt19937 random(43);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 40; ++i) {
    const int groups = from(2, 6), stride = from(2, 4);
    taccConvDesc_t desc = convolution(i % 2 == 0 ? taccConvForward : taccConvBackwardData, from(1, 3),
                                      groups * from(1, 24), from(1, 20), from(1, 30), groups * from(1, 24), 1, stride);
    desc.groups = groups;
    desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    desc.algorithm = "strided-product";
    desc.maxWorkers = from(1, 3);
    chooseEpilogue(desc, random);
    expectExactAsChosen(desc, ThreadedExecutor(desc.maxWorkers).get());
  }
}

TEST(PlainLayouts, OfANamedAlgorithm) {
  taccConvDesc_t desc = convolution(taccConvBackwardData, 2, 20, 6, 7, 24, 3, 1, 1);
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  for (const char* const name : {"direct", "reference"}) {
    desc.algorithm = name;
    const Case test(desc);
    const ChosenPlan chosen = makePlan(test.description(), portableKernels());
    EXPECT_EQ(chosen.algorithm, name);
    EXPECT_TRUE(test.isRight(test.run(*chosen.plan, *taccSerialExecutor()), test.expected()));
  }
}

}  // namespace
}  // namespace tacc::conv::test
