// Groups that cut blocks, with strides: kernels for three taps side by side, whose ends are at either end of a line.
#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

taccConvDesc_t grouped(taccConvPass_t pass, int groups, int ofGroup, int width, int stride, int pad) {
  taccConvDesc_t desc = convolution(pass, 2, groups * ofGroup, 6, width, groups * ofGroup, 3, stride, pad);
  desc.groups = groups;
  desc.algorithm = "grouped";
  return desc;
}

TEST(GroupedWithStrides, AreExactAtEveryWidthAndPadding) {
  std::mt19937 random(8);
  for (const taccConvPass_t pass : allPasses) {
    for (const auto& [groups, ofGroup] : {std::array{4, 8}, {6, 8}, {8, 4}, {5, 3}}) {
      for (int width = 3; width <= 33; width += width < 21 ? 1 : 6) {
        for (int pad = 0; pad <= 3; ++pad) {
          for (const int stride : {1, 2}) {
            taccConvDesc_t desc = grouped(pass, groups, ofGroup, width, stride, pad);
            chooseEpilogue(desc, random);
            expectExactAsChosen(desc);
          }
        }
      }
    }
  }
}

TEST(GroupedWithStrides, AreExactWithOtherHeightsOfTheKernel) {
  for (const taccConvPass_t pass : allPasses) {
    for (const int kernelHeight : {1, 2, 5}) {
      for (const int strideHeight : {1, 2, 3}) {
        for (const int dilationHeight : {1, 2}) {
          taccConvDesc_t desc = grouped(pass, 4, 8, 15, 2, 1);
          desc.height = 11;
          desc.kernelHeight = kernelHeight;
          desc.strideHeight = strideHeight;
          desc.dilationHeight = dilationHeight;
          desc.padHeight = kernelHeight;
          expectExactAsChosen(desc);
          desc.weightLayout = taccWeightsBlocked;
          desc.maxWorkers = 3;
          expectExactAsChosen(desc, ThreadedExecutor(3).get());
        }
      }
    }
  }
}

/// By one worker, and added to what is there by three.
void expectExactWeights(taccConvDesc_t desc) {
  desc.algorithm = "grouped";
  expectExactAsChosen(desc);
  desc.accumulate = 1;
  desc.maxWorkers = 3;
  expectExactAsChosen(desc, ThreadedExecutor(3).get());
}

/// Images that do not stay in an L2 cache are gone through once for all lines of the kernel by one worker, and by each
/// line of the kernel where workers are many.
TEST(GroupedWithStrides, WeightsAreExactFromBehindTheCaches) {
  for (const int kernelHeight : {1, 3, 4}) {
    for (const int stride : {1, 2}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 16, 16, 40, 40, 16, 3, stride, 1);
      desc.groups = 2;
      desc.kernelHeight = kernelHeight;
      expectExactWeights(desc);
    }
  }
}

/// So many blocks of results that they take turns line by line, with lines fetched for later.
TEST(GroupedWithStrides, WeightsOfManyBlocksAreExactFromBehindTheCaches) {
  for (const auto& [groups, ofGroup] : {std::array{44, 4}, {7, 23}, {50, 3}}) {
    for (const auto& [kernel, stride] : {std::array{1, 1}, {1, 2}, {2, 1}}) {
      taccConvDesc_t desc = convolution(taccConvBackwardWeights, 3, groups * ofGroup, 90, 75, groups * ofGroup, kernel,
                                        stride, kernel - 1);
      desc.groups = groups;
      expectExactWeights(desc);
    }
  }
}

TEST(GroupedWithStrides, GoLineByLineBackward) {
  for (const KernelSet* kernels : availableKernels()) {
    const ChosenPlan chosen = makePlan(understand(grouped(taccConvBackwardData, 32, 8, 56, 2, 1)), *kernels);
    EXPECT_EQ(chosen.plan->kernel(), std::string(kernels->vectors) + " grouped lines");
  }
}

}  // namespace
}  // namespace tacc::conv::test
