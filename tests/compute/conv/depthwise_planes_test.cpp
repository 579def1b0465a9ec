// Channel-wise convolutions in NCHW, before and behind: exactly what the definition says, on tensors that lie between
// pages that may not be touched, for every width and height, kernel and stride.
#include <gtest/gtest.h>

#include <random>

#include "between_pages.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

taccConvDesc_t channelWise(taccConvPass_t pass, int batch, int channels, int height, int width, int kernel, int stride,
                           int pad) {
  taccConvDesc_t desc = convolution(pass, batch, channels, height, width, channels, kernel, stride, pad);
  desc.inputLayout = desc.outputLayout = taccLayoutNchw;
  desc.groups = channels;
  desc.algorithm = "depthwise-planes";
  return desc;
}

TEST(DepthwisePlanes, AreExactForEverySize) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int kernel : {3, 5, 7}) {
      for (int size = 1; size <= 40; ++size) {
        const int stride = 1 + size % 2;
        const int other = 1 + size * 7 % 23;
        expectExactBetweenPages(channelWise(pass, 1, 2, other, size, kernel, stride, kernel / 2 + 1), 1, true);
        expectExactBetweenPages(channelWise(pass, 1, 3, size, other, kernel, 3 - stride, kernel - 1), 1, false);
      }
    }
  }
}

TEST(DepthwisePlanes, AreExactForRandomShapes) {
  std::mt19937 random(2811);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 120; ++i) {
    taccConvDesc_t desc = channelWise(allPasses[i % 3], from(1, 3), from(2, 90), from(7, 40), from(16, 90), 3, 1, 0);
    desc.kernelHeight = 3 + 2 * from(0, 2);
    desc.kernelWidth = from(0, 1) == 0 ? desc.kernelHeight : from(2, 16);
    desc.strideHeight = desc.strideWidth = from(1, 2);
    desc.padHeight = from(0, desc.kernelHeight - 1);
    desc.padWidth = from(0, desc.kernelWidth - 1);
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random);
    expectExactBetweenPages(desc, from(1, 4), from(0, 1) == 0);
  }
}

TEST(DepthwisePlanes, AreTheSameBitsForEveryNumberOfThreads) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int stride : {1, 2}) {
      taccConvDesc_t desc = channelWise(pass, 2, 70, 61, 45, 5, stride, 2);
      expectSameBitsForEveryNumberOfThreads(desc, 5);
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
