// Channel-wise convolutions whose lines are several strips: strips are gone through in some lines at a time, where
// vectors are short, and in few pixels of both halves of a block where there is a stride and lines are long.
#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

taccConvDesc_t channelWise(taccConvPass_t pass, int height, int width, int kernel, int stride, int pad) {
  constexpr int channels = 20;  // a block and a part of one
  taccConvDesc_t desc = convolution(pass, 2, channels, height, width, channels, kernel, stride, pad);
  desc.groups = channels;
  desc.algorithm = "depthwise";
  return desc;
}

TEST(DepthwiseStrips, AreExactInLongLines) {
  std::mt19937 random(5);
  for (const taccConvPass_t pass : allPasses) {
    for (const int kernel : {3, 5}) {
      for (const int stride : {1, 2}) {
        for (const int width : {15, 27, 28, 29, 55, 56, 57, 63, 64, 65, 111}) {
          for (int pad = 0; pad < kernel; ++pad) {
            taccConvDesc_t desc = channelWise(pass, 9, width, kernel, stride, pad);
            chooseEpilogue(desc, random);
            expectExactAsChosen(desc);
          }
        }
      }
    }
  }
}

TEST(DepthwiseStrips, AreExactForFewAndManyLines) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int stride : {1, 2}) {
      for (const int kernelHeight : {1, 2, 3, 4, 7}) {
        for (const int height : {1, 2, 3, 5, 8, 13, 18}) {
          for (const int padHeight : {0, 1, 3}) {
            taccConvDesc_t desc = channelWise(pass, height, 56, 3, stride, 1);
            desc.kernelHeight = kernelHeight;
            desc.padHeight = padHeight;
            if (height + 2 * padHeight < kernelHeight) continue;
            expectExactAsChosen(desc);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tacc::conv::test
