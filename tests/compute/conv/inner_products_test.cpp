// Few results of lines of taps and channels, in NHWC: exactly what the definition says, forward and backward to the
// data, and the same bits for every number of threads. Tensors lie between pages that may not be touched.
#include <gtest/gtest.h>

#include <limits>

#include "between_pages.hpp"
#include "nhwc_sums.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

class InnerProducts : public NhwcSums {
 protected:
  InnerProducts() : NhwcSums("inner-products", 31) {}
};

TEST_P(InnerProducts, AreExactForEveryNumberOfResultsAndRestOfAVector) {
  for (int results = 1; results <= 8; ++results) {
    for (int rest = 0; rest < blockLength; ++rest) {
      taccConvDesc_t desc = layer(from(1, 2), 16 * from(2, 5) + rest, results, from(1, 3), from(1, 40), 1);
      chooseEpilogue(desc, random_);
      expectExactBetweenPages(desc, rest % 4 == 0 ? 3 : 1, rest % 2 == 0);
    }
  }
}

TEST_P(InnerProducts, AreExactForDrawnKernels) {
  for (int i = 0; i < 120; ++i) {
    const int kernel = from(1, 5), width = from(1, kernel), least = (23 + width) / width;
    taccConvDesc_t desc =
        layer(from(1, 3), from(least, least + 60), from(1, 8), from(kernel, 14), from(width, 30), kernel);
    desc.kernelWidth = width;
    desc.padHeight = from(0, desc.kernelHeight - 1);
    desc.padWidth = from(0, desc.kernelWidth - 1);
    if (desc.height > 2 * kernel) desc.dilationHeight = from(1, 2);
    if (GetParam() == taccConvForward) {  // lines outside the image, and strides, are there in this pass alone
      desc.padHeight += from(0, 5) / 5;
      desc.padWidth += from(0, 5) / 5;
      desc.strideHeight = from(1, 4);
      desc.strideWidth = from(1, 4);
    }
    chooseEpilogue(desc, random_);
    expectExactBetweenPages(desc, i % 4 < 2 ? 1 : 3, i % 2 == 0);
  }
}

TEST_P(InnerProducts, AreTheSameBitsForEveryNumberOfThreads) {
  for (int i = 0; i < 6; ++i) {
    expectSameBitsForEveryNumberOfThreads(layer(from(1, 2), from(64, 200), from(1, 8), 19, 23, 1 + 2 * (i % 3)), 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, InnerProducts, testing::Values(taccConvForward, taccConvBackwardData),
                         [](const testing::TestParamInfo<taccConvPass_t>& tested) {
                           return tested.param == taccConvForward ? "Forward" : "BackwardData";
                         });

/// Weights that are no numbers are those of one result alone, at the ends of lines too, where taps are left out.
TEST(InnerProductsOfNoNumbers, StayWithTheirResult) {
  for (const int channels : {8, 9, 12, 16, 27}) {
    for (const int kernel : {1, 3, 5}) {
      taccConvDesc_t desc = convolution(taccConvForward, 1, channels, 9, 11, 3, kernel);
      if (channels * kernel < 24) continue;
      desc.padHeight = desc.padWidth = kernel / 2;
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
      desc.weightLayout = taccWeightsKcrs;
      Case test(desc);
      const Floats expected = test.expected();
      const std::ptrdiff_t ofResult = std::ptrdiff_t{channels} * kernel * kernel;
      std::fill_n(test.weights.data() + ofResult, ofResult, std::numeric_limits<float>::quiet_NaN());
      for (const KernelSet* kernels : availableKernels()) {
        const Floats result = test.run(*makeInnerProducts(test.description(), *kernels), *taccSerialExecutor());
        for (std::ptrdiff_t pixel = 0; pixel < 9 * 11; ++pixel) {
          ASSERT_EQ(result[pixel * 3], expected[pixel * 3]) << channels << " " << kernel << " " << kernels->isa;
          ASSERT_EQ(result[pixel * 3 + 2], expected[pixel * 3 + 2]) << channels << " " << kernel << " " << kernels->isa;
        }
      }
    }
  }
}

/// Images behind the caches, of whose pixels strides leave out most: inner products are chosen.
TEST(InnerProductsChoice, TakesFewResultsOfStridedPixels) {
  for (const int results : {1, 2, 4}) {
    taccConvDesc_t desc = convolution(taccConvForward, 1, 256, 56, 56, results, 1);
    desc.strideHeight = desc.strideWidth = 3;
    desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
    const ChosenPlan choice = makePlan(understand(desc), bestKernels());
    EXPECT_EQ(choice.algorithm, "inner-products") << results;
  }
}

}  // namespace
}  // namespace tacc::conv::test
