// Few channels in NCHW, before and behind: exactly what the definition says, whatever the strides, groups and threads,
// and nothing is read or written outside of the tensors.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "../guarded_buffer.hpp"
#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;

taccConvDesc_t plain(taccConvPass_t pass, int batch, int ins, int height, int width, int outs, int kernel,
                     int stride = 1, int pad = 0) {
  taccConvDesc_t desc = convolution(pass, batch, ins, height, width, outs, kernel, stride, pad);
  desc.inputLayout = desc.outputLayout = taccLayoutNchw;
  return desc;
}

TEST(Planes, AreExactForEveryWidthAndStride) {
  for (const taccConvPass_t pass : allPasses) {
    for (int width = 1; width <= 150; width += width < 40 ? 1 : 13) {
      for (const int stride : {1, 2, 3, 5}) {
        expectExact(plain(pass, 1, 1, 3, width, 2, 3, stride, 1));
        expectExact(plain(pass, 1, 2, 5, width, 1, 1, stride, 0));
      }
    }
  }
}

TEST(Planes, AreExactForEveryNumberOfChannels) {
  for (const taccConvPass_t pass : allPasses) {
    for (int ins = 1; ins <= 8; ++ins) {
      for (int outs = 1; outs <= 8; ++outs) {
        taccConvDesc_t desc = plain(pass, 2, ins, 9, 21, outs, 3, 2, 1);
        expectExact(desc);
        desc.weightLayout = taccWeightsBlocked;
        desc.groups = 3;
        desc.inChannels *= 3;
        desc.outChannels *= 3;
        desc.accumulate = pass != taccConvForward;
        desc.bias = desc.residual = desc.relu = pass == taccConvForward;
        expectExact(desc);
      }
    }
    taccConvDesc_t channelWise = plain(pass, 1, 37, 12, 19, 37, 5, 1, 2);
    channelWise.groups = 37;
    expectExact(channelWise);
    channelWise.weightLayout = taccWeightsBlocked;
    expectExact(channelWise);
  }
}

TEST(Planes, AreExactForProducts) {
  std::mt19937 random(32);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (const int pixels : {1, 63, 64, 127, 128, 129, 255, 256, 300, 1024, 1200}) {
    for (const taccConvPass_t pass : allPasses) {
      for (int i = 0; i < 4; ++i) {
        const int groups = from(1, 3);
        taccConvDesc_t desc = plain(pass, from(1, 2), groups * from(1, 8), 1, pixels, groups * from(1, 8), 1);
        desc.groups = groups;
        desc.bias = desc.relu = pass == taccConvForward && from(0, 1) == 1;
        desc.residual = pass == taccConvForward && from(0, 1) == 1;
        desc.accumulate = pass != taccConvForward && from(0, 1) == 1;
        expectExact(desc);
      }
    }
  }
}

TEST(Planes, AreExactForGradientsOfProductsInParts) {
  for (const auto& [batch, height, width] : {std::array{1, 461, 463}, {3, 311, 230}, {5, 7, 9}}) {
    for (const int groups : {1, 3}) {
      taccConvDesc_t desc = plain(taccConvBackwardWeights, batch, groups * 7, height, width, groups * 8, 1);
      desc.groups = groups;
      desc.accumulate = groups > 1;
      expectExact(desc);
    }
  }
}

TEST(Planes, AreExactForRandomShapes) {
  std::mt19937 random(31);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 400; ++i) {
    const int groups = from(0, 1) == 0 ? from(2, 9) : 1;
    taccConvDesc_t desc =
        plain(allPasses[i % 3], from(1, 3), groups * from(1, 8), from(1, 20), from(1, 70), groups * from(1, 8), 1);
    chooseKernel(desc, random);
    desc.groups = groups;
    if (from(0, 3) == 0) {
      desc.kernelWidth = from(6, 13);
      desc.width = std::max(desc.width, desc.dilationWidth * (desc.kernelWidth - 1) + 1);
    }
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExact(desc);
  }
}

TEST(Planes, AreTheSameBitsForEveryNumberOfThreads) {
  for (const taccConvPass_t pass : allPasses) {
    for (taccConvDesc_t desc : {plain(pass, 2, 2, 61, 90, 3, 5, 1, 2), plain(pass, 3, 8, 200, 131, 8, 3, 2, 1),
                                plain(pass, 1, 3, 61, 90, 8, 1)}) {
      desc.algorithm = "planes";
      expectSameBitsForEveryNumberOfThreads(desc, 5);
    }
  }
}

TEST(Planes, TouchNothingOutsideOfTheTensors) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int width : {1, 15, 16, 17, 66}) {
      for (const int stride : {0, 1, 2, 3}) {  // 0: a product
        taccConvDesc_t desc =
            plain(pass, 1, 2, 4, width, 3, stride == 0 ? 1 : 3, std::max(1, stride), stride == 0 ? 0 : 1);
        desc.algorithm = "planes";
        desc.residual = pass == taccConvForward;
        const Case test(desc);
        for (const KernelSet* kernels : availableKernels()) {
          const auto plan = makePlan(test.description(), *kernels).plan;
          for (const bool isAtEnd : {true, false}) {
            const auto guarded = [&](PageBuffer& pages, const Floats& content) {
              return pages.place(content.data(), content.size(), isAtEnd);
            };
            constexpr std::size_t pageCount = 8;
            PageBuffer input(pageCount), gradient(pageCount), residual(pageCount), result(pageCount);
            Floats packed(plan->packedFloats());
            plan->pack(test.weights.data(), packed.data());
            Floats workspace(plan->workspaceBytes() / sizeof(float));
            float* const to = guarded(result, test.before);
            plan->run(
                {guarded(input, test.input), packed.data(), guarded(gradient, test.outputGradient), test.bias.data(),
                 guarded(residual, test.residual), to, workspace.data(), plan->workspaceBytes()},
                TaskExecutor(*taccSerialExecutor()));
            const Floats expected = test.expected();
            EXPECT_TRUE(std::equal(to, to + expected.size(), expected.data())) << test.text();
          }
        }
      }
    }
  }
}

// Their tiles of short vectors multiply more for what they read than those of blocks half of whose lanes are empty.
TEST(Planes, OfShortVectorsAreCheapestForLargeKernels) {
  pretendCoreModel(&nearCore);
  for (const int kernel : {5, 11}) {
    for (const KernelSet* kernels : availableKernels()) {
      if (kernels->fmaLanes != blockLength / 2) continue;
      const auto planOf = [&](taccConvDesc_t desc) { return makePlan(understand(desc), *kernels); };
      const taccConvDesc_t blocks = convolution(taccConvForward, 1, 6, 131, 131, 8, kernel, 1, kernel / 2);
      const ChosenPlan planes = planOf(plain(taccConvForward, 1, 6, 131, 131, 8, kernel, 1, kernel / 2));
      EXPECT_EQ(planes.algorithm, "planes");
      EXPECT_LT(planes.plan->predictedSeconds(), planOf(blocks).plan->predictedSeconds());
    }
  }
  pretendCoreModel(nullptr);
}

}  // namespace
}  // namespace tacc::conv::test
