// What strides and dilation leave out: gradients of an image most of whose pixels no tap finds, gradients of the
// weights of first layers whose taps are apart, and channel-wise gradients whose input is fetched from memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "../guarded_buffer.hpp"
#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;

// Phases without a tap have a group of outputs for each block, the others have several blocks in one.
TEST(SparseStrides, ZerosAreExactForEveryNumberOfBlocks) {
  for (const int channels : {16, 33, 64, 100}) {
    for (const int kernel : {1, 2, 3}) {
      for (const int stride : {3, 4}) {
        taccConvDesc_t desc = convolution(taccConvBackwardData, 2, channels, 13, 9, 24, kernel, stride, kernel / 2);
        expectExact(desc);
        desc.accumulate = 1;
        desc.maxWorkers = 3;
        expectExactAsChosen(desc, ThreadedExecutor(3).get());
        expectExactAsChosen(desc);
      }
    }
  }
}

// More than 8 MiB, so zeros go past the caches as all else of it does.
TEST(SparseStrides, ZerosOfLargeResultsAreExact) {
  for (const int groups : {1, 16}) {
    taccConvDesc_t desc = convolution(taccConvBackwardData, 1, 64, 190, 190, 32, 3, 4, 1);
    desc.groups = groups;
    expectExactAsChosen(desc);
  }
}

// Likewise of a product between zeros: of every stride, with and without pixels behind the last one that is read.
TEST(SparseStrides, ProductsBetweenZerosOfLargeResultsAreExact) {
  std::mt19937 random(23);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 12; ++i) {
    const int stride = 2 + i % 3, channels = from(3, 5) * 16 - from(0, 2), size = from(183, 188);
    taccConvDesc_t desc =
        convolution(taccConvBackwardData, 1 + i % 2, channels, size, size + from(0, 3), from(1, 20), 1, stride, 0);
    desc.algorithm = "strided-product";
    desc.accumulate = i % 5 == 4;
    desc.maxWorkers = from(1, 3);
    if (i % 4 == 3) desc.inputLayout = desc.outputLayout = i % 8 == 3 ? taccLayoutNhwc : taccLayoutNchw;
    expectExactAsChosen(desc, ThreadedExecutor(desc.maxWorkers).get());
  }
}

taccConvDesc_t firstLayer(int batch, int channels, int height, int width, int outs, int kernel, int dilation, int pad) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, batch, channels, height, width, outs, kernel, 1, pad);
  desc.dilationHeight = desc.dilationWidth = dilation;
  desc.inputLayout = taccLayoutNchw;
  return desc;
}

TEST(SparseStrides, GradientsOfFirstLayersAreExactWithDilation) {
  std::mt19937 random(19);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 60; ++i) {
    const int kernel = from(2, 5), dilation = from(2, 4), reach = dilation * (kernel - 1);
    taccConvDesc_t desc = firstLayer(from(1, 3), from(1, 8), reach + from(1, 12), reach + from(1, 40), from(1, 70),
                                     kernel, dilation, from(0, reach));
    desc.dilationHeight = from(1, dilation);
    desc.strideHeight = from(1, 2);
    desc.accumulate = from(0, 1);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.algorithm = "few-channels";
    desc.maxWorkers = from(1, 3);
    expectExactAsChosen(desc, ThreadedExecutor(desc.maxWorkers).get());
    desc.inChannels = 1;  // whose pixels are a plane in NHWC too
    desc.inputLayout = taccLayoutNhwc;
    if (from(0, 1) == 0) desc.outputLayout = taccLayoutNhwc;
    expectExactAsChosen(desc, ThreadedExecutor(desc.maxWorkers).get());
  }
  taccConvDesc_t desc = firstLayer(2, 1, 40, 40, 147, 3, 3, 0);
  EXPECT_EQ(makePlan(understand(desc), *availableKernels().front()).algorithm, "few-channels");
  desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
  EXPECT_EQ(makePlan(understand(desc), *availableKernels().front()).algorithm, "few-channels");
}

TEST(SparseStrides, GradientsOfFirstLayersReadNothingOutside) {
  for (const bool isAtEnd : {false, true}) {
    for (const KernelSet* kernels : availableKernels()) {
      taccConvDesc_t desc = firstLayer(2, 3, 11, 17, 32, 3, 3, 2);
      desc.algorithm = "few-channels";
      const Case test(desc);
      const ChosenPlan chosen = makePlan(test.description(), *kernels);
      constexpr std::size_t pageCount = 64;
      PageBuffer input(pageCount), gradient(pageCount), result(pageCount), workspace(pageCount);
      const auto guarded = [&](PageBuffer& pages, const Floats& content) {
        return pages.place(content.data(), content.size(), isAtEnd);
      };
      const Floats scratch(chosen.plan->workspaceBytes() / sizeof(float));
      float* const to = guarded(result, test.before);
      chosen.plan->run({guarded(input, test.input), nullptr, guarded(gradient, test.outputGradient), nullptr, nullptr,
                        to, guarded(workspace, scratch), chosen.plan->workspaceBytes()},
                       TaskExecutor(*taccSerialExecutor()));
      const Floats expected = test.expected();
      EXPECT_TRUE(std::equal(to, to + expected.size(), expected.data())) << test.text();
    }
  }
}

// From memory: lines of one strip, lines that are left out, and all lines of a stride.
TEST(SparseStrides, ChannelWiseGradientsFromMemoryAreExact) {
  const std::array<std::array<int, 3>, 5> kernels{{{1, 3, 1}, {3, 3, 1}, {1, 2, 2}, {1, 3, 4}, {3, 3, 2}}};
  for (const auto& [height, width, stride] : kernels) {
    for (const taccConvPass_t pass : allPasses) {
      const bool isStrip = stride == 1;
      taccConvDesc_t desc =
          convolution(pass, 5, 160, isStrip ? 205 : 61, isStrip ? 14 : 47, 160, height, stride, height / 2);
      desc.groups = desc.inChannels;
      desc.kernelWidth = width;
      expectExactAsChosen(desc);
    }
  }
}

// Gradients of few channels and few pixels are tiles of several blocks, whose calls are fewer.
TEST(SparseStrides, FewPixelsOfFirstLayersGoInLargeTiles) {
  taccConvDesc_t desc = convolution(taccConvBackwardWeights, 1, 3, 4, 4, 492, 5, 1, 2);
  desc.inputLayout = taccLayoutNchw;
  desc.algorithm = "few-channels";
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->fmaLanes != blockLength) continue;
    EXPECT_NE(makePlan(understand(desc), *kernels).plan->kernel(), std::string(kernels->vectors) + " 5x1");
  }
}

// Groups of one channel go through kernels made for them, where tables of lanes cost more than what they multiply.
TEST(SparseStrides, GroupsOfOneChannelAreNotPermuted) {
  const KernelSet& kernels = *availableKernels().front();
  if (kernels.fmaLanes != blockLength) GTEST_SKIP() << "this CPU's vectors are shorter than a block";
  taccConvDesc_t desc = convolution(taccConvForward, 1, 825, 8, 8, 825, 1);
  desc.groups = desc.inChannels;
  EXPECT_EQ(makePlan(understand(desc), kernels).algorithm, "depthwise");
  desc = convolution(taccConvBackwardWeights, 16, 7, 32, 32, 7, 3, 3, 1);
  desc.groups = desc.inChannels;
  EXPECT_EQ(makePlan(understand(desc), kernels).algorithm, "depthwise");
}

}  // namespace
}  // namespace tacc::conv::test
