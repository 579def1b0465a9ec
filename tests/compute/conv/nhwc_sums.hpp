// What tests share of algorithms for sums of the values of a pixel in NHWC, forward and backward to the data.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "conv_case.hpp"

namespace tacc::conv::test {

class NhwcSums : public testing::TestWithParam<taccConvPass_t> {
 protected:
  NhwcSums(const char* algorithm, unsigned seed) : algorithm_(algorithm), random_(seed) {}

  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  /// `values`: channels that are summed over, `results`: those that are written.
  taccConvDesc_t layer(int batch, int values, int results, int height, int width, int kernel) {
    const bool isForward = GetParam() == taccConvForward;
    taccConvDesc_t desc = convolution(GetParam(), batch, isForward ? values : results, height, width,
                                      isForward ? results : values, kernel);
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
    desc.algorithm = algorithm_;
    return desc;
  }

  const char* algorithm_;
  std::mt19937 random_;
};

}  // namespace tacc::conv::test
