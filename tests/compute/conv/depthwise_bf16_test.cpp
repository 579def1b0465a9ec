// Channel-wise layers of bfloat16, which some CPUs have kernels for: from and to tensors that lie between pages that
// may not be touched.
#include <gmock/gmock.h>

#include <random>

#include "bfloat16_case.hpp"
#include "paged_tensor.hpp"
#include "pass_name.hpp"
#include "support/settings.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

class DepthwiseBf16 : public testing::TestWithParam<taccConvPass_t> {
 protected:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool isOneOf(int count) { return from(1, count) == 1; }
  taccLayout_t drawnLayout() { return isOneOf(2) ? taccLayoutNhwc : taccLayoutNchw16c; }

  /// A layer of some channels; kernels 3, 5 and 7 wide with strides of 1 and 2 are in place.
  taccConvDesc_t drawn(int mostWidth) {
    const int kernel = 3 + 2 * from(0, 2), channels = isOneOf(3) ? 16 * from(1, 5) : from(2, 90);
    taccConvDesc_t desc = convolution(GetParam(), from(1, 3), channels, from(1, 12), from(1, mostWidth), channels,
                                      kernel, from(1, 2), from(0, kernel - 1));
    desc.groups = channels;
    desc.kernelHeight = isOneOf(2) ? kernel : from(1, 7);
    desc.padHeight = from(0, desc.kernelHeight - 1);
    desc.strideHeight = isOneOf(3) ? from(1, 3) : desc.strideWidth;
    desc.height = std::max(desc.height, desc.kernelHeight);
    desc.width = std::max(desc.width, desc.kernelWidth);
    desc.activationType = taccBfloat16;
    desc.algorithm = "depthwise";
    desc.maxWorkers = 3;
    desc.inputLayout = drawnLayout();
    desc.outputLayout = isOneOf(5) ? drawnLayout() : desc.inputLayout;
    desc.weightLayout = isOneOf(2) ? taccWeightsKcrs : taccWeightsBlocked;
    chooseEpilogue(desc, random_);
    // It rounds, so what it gives in bfloat16 is not known exactly.
    if (desc.activation == taccActivationSilu) desc.activation = taccActivationRelu;
    return desc;
  }

  void expectExact(const taccConvDesc_t& desc) {
    const Case test(desc);
    const Floats right = expectedNumbers(test);
    const int workers = isOneOf(2) ? 1 : 3;
    const bool isAtEnd = !isOneOf(3);
    const ThreadedExecutor threads(workers);
    for (const KernelSet* kernels : availableKernels()) {
      const auto plan = makePlan(test.description(), *kernels).plan;
      inPlace_ += plan->kernel().ends_with("in place") ? 1 : 0;
      const Floats result = runBetweenPages(test, *plan, isAtEnd, threads.get());
      EXPECT_TRUE(test.isRight(result, right))
          << test.text() << ": " << kernels->isa << " " << plan->kernel() << ", " << workers << " workers, layouts "
          << desc.inputLayout << " and " << desc.outputLayout;
    }
  }

  static bool hasKernels() {
    const auto sets = availableKernels();
    return std::ranges::any_of(sets, [](const KernelSet* set) { return bf16DepthwiseKernels(*set) != nullptr; });
  }

  std::mt19937 random_{17};
  int inPlace_ = 0;  // layers that were
};

TEST_P(DepthwiseBf16, IsExactForAnyShapeAndLayout) {
  const int draws = tacc::test::isQuick() ? 30 : 150;
  for (int i = 0; i < draws; ++i) expectExact(drawn(i % 3 == 0 ? 64 : 30));
  EXPECT_GE(inPlace_, hasKernels() ? draws / 2 : 0);
}

/// Results that the caches do not hold, and pixels of NHWC that share sets of the L1 cache.
TEST_P(DepthwiseBf16, IsExactForLargeTensors) {
  for (const taccLayout_t layout : {taccLayoutNhwc, taccLayoutNchw16c}) {
    for (const auto& [channels, size] : {std::pair{48, 310}, {1024, 17}}) {
      taccConvDesc_t desc = convolution(GetParam(), 1, channels, size, size, channels, 3, 1, 1);
      desc.groups = channels;
      desc.activationType = taccBfloat16;
      desc.inputLayout = desc.outputLayout = layout;
      desc.maxWorkers = 3;
      expectExact(desc);
    }
  }
  EXPECT_GE(inPlace_, hasKernels() ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Channelwise, DepthwiseBf16, testing::ValuesIn(allPasses), passName);

}  // namespace
}  // namespace tacc::conv::test
