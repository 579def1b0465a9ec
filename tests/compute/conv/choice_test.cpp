// Which algorithm a plan gets: the cheapest of those that serve, never one that is there by name only; and what is not
// served is an error that says what would be.
#include <gmock/gmock.h>

#include <array>
#include <random>
#include <sstream>

#include "compute/conv/core_model.hpp"
#include "conv_case.hpp"
#include "core/error.hpp"

namespace tacc::conv::test {
namespace {

/// Any convolution that the interface takes.
taccConvDesc_t drawConvolution(std::mt19937& random) {
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const int groups = from(0, 2) == 0 ? from(2, 40) : 1;
  const bool isDepthwise = groups > 1 && from(0, 1) == 0;
  const int ins = isDepthwise ? groups : groups * from(1, groups > 1 ? 20 : 300);
  const int outs = isDepthwise ? groups : groups * from(1, groups > 1 ? 20 : 300);
  taccConvDesc_t desc = convolution(allPasses[from(0, 2)], from(1, 9), ins, from(1, 70), from(1, 70), outs, 1);
  chooseKernel(desc, random);
  desc.groups = groups;
  constexpr taccLayout_t layouts[] = {taccLayoutNchw16c, taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc};
  desc.inputLayout = layouts[from(0, 3)];
  desc.outputLayout = layouts[from(0, 3)];
  desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
  desc.activationType = from(0, 3) == 0 ? taccBfloat16 : taccFloat32;
  desc.winograd = desc.pass != taccConvBackwardWeights && from(0, 3) == 0;
  chooseEpilogue(desc, random);
  desc.maxWorkers = from(1, 3);
  return desc;
}

/// The names of all algorithms, each once.
std::vector<std::string> allNames() {
  std::vector<std::string> names;
  std::istringstream text(algorithmNames(nullptr));
  for (std::string name; std::getline(text >> std::ws, name, ',');) names.push_back(name);
  return names;
}

ConvOffer offerOf(std::string_view name) {
  const auto isIt = [&](const ConvAlgorithm& algorithm) { return algorithm.name == name; };
  return std::find_if(allAlgorithms().begin(), allAlgorithms().end(), isIt)->offer;
}

TEST(Choice, IsTheCheapestOfAllThatServe) {
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    taccConvDesc_t desc = drawConvolution(random);
    const std::string text = understand(desc).shape.text();
    for (const KernelSet* kernels : availableKernels()) {
      desc.algorithm = nullptr;
      const ChosenPlan chosen = makePlan(understand(desc), *kernels);
      EXPECT_NE(offerOf(chosen.algorithm), ConvOffer::byNameOnly) << text << " " << chosen.algorithm;
      EXPECT_GT(chosen.plan->predictedSeconds(), 0);
      for (const std::string& name : allNames()) {
        if (offerOf(chosen.algorithm) == ConvOffer::byOwnRule || offerOf(name) != ConvOffer::byPrice) continue;
        desc.algorithm = name.c_str();
        try {
          EXPECT_GE(makePlan(understand(desc), *kernels).plan->predictedSeconds(), chosen.plan->predictedSeconds())
              << text << " " << kernels->isa << ": " << chosen.algorithm << " in place of " << name;
        } catch (const Error&) {  // it does not serve this
        }
      }
    }
  }
}

/// As measured on a Zen 3: small planes of NCHW are fastest where they lie, gradients of weights with a stride, and of
/// products of planes of several pages, in blocks.
TEST(Choice, OfPlanesByHalfVectorsIsWhatWasFastest) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    const auto chosen = [&](taccConvPass_t pass, int ins, int size, int outs, int kernel, int stride, int batch = 1) {
      taccConvDesc_t desc = convolution(pass, batch, ins, size, size, outs, kernel, stride, kernel / 2);
      if (kernel > 1) desc.groups = ins;
      desc.inputLayout = desc.outputLayout = taccLayoutNchw;
      return makePlan(understand(desc), *kernels).algorithm;
    };
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData}) {
      for (const auto& [channels, size] : {std::array{192, 28}, {384, 14}, {960, 7}})
        EXPECT_EQ(chosen(pass, channels, size, channels, 3, 1), "depthwise-planes") << size;
    }
    for (const auto& [channels, size] : {std::array{144, 56}, {192, 28}, {576, 14}})
      EXPECT_EQ(chosen(taccConvBackwardWeights, channels, size, channels, 3, 2), "depthwise") << size;
    EXPECT_EQ(chosen(taccConvBackwardWeights, 464, 14, 464, 3, 2, 16), "depthwise-planes");
    EXPECT_EQ(chosen(taccConvBackwardWeights, 232, 7, 232, 3, 1, 16), "depthwise-planes");
    for (const auto& [ins, outs] : {std::array{64, 64}, {64, 256}, {256, 64}})
      EXPECT_EQ(chosen(taccConvBackwardWeights, ins, 56, outs, 1, 1), "direct") << outs;
    EXPECT_EQ(chosen(taccConvBackwardWeights, 144, 56, 24, 1, 1), "plain-product");
  }
  pretendCoreModel(nullptr);
}

/// As measured on a Zen 3 whose other hyperthread is busy: where pixels are any distance apart, short sums take 0.69 to
/// 0.86 of the time of `few-channels`, and of 8 channels up to 1.2 times as long.
TEST(Choice, OfFirstLayersInNhwcByHalfVectorsIsWhatWasFastest) {
  pretendCoreModel(&nearCore);
  for (const KernelSet* kernels : availableKernels()) {
    if (2 * kernels->fmaLanes != blockLength) continue;
    const auto chosen = [&](int channels, int size, int outs, int kernel, int stride, int pad, int batch = 1) {
      taccConvDesc_t desc = convolution(taccConvForward, batch, channels, size, size, outs, kernel, stride, pad);
      desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
      return makePlan(understand(desc), *kernels).algorithm;
    };
    EXPECT_EQ(chosen(3, 224, 64, 7, 2, 3), "short-sums");
    EXPECT_EQ(chosen(3, 224, 64, 7, 2, 3, 8), "short-sums");
    EXPECT_EQ(chosen(3, 227, 96, 11, 4, 0), "short-sums");
    EXPECT_EQ(chosen(2, 128, 128, 9, 2, 4), "short-sums");
    EXPECT_EQ(chosen(8, 112, 32, 7, 2, 3), "few-channels");
  }
  pretendCoreModel(nullptr);
}

TEST(Choice, NoPriceIsZero) {
  // Of what lies outside the image nothing is multiplied, and yet it takes time.
  std::mt19937 random(10);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 1500; ++i) {
    taccConvDesc_t desc = drawConvolution(random);
    desc.activationType = taccFloat32;
    if (i % 3 == 0) {  // a small image in the middle of wide padding, and far between the taps of its results
      desc.height = desc.width = desc.kernelHeight = desc.kernelWidth = 1;
      desc.padHeight = from(0, 7);
      desc.padWidth = from(0, 7);
      desc.strideHeight = from(1, 9);
      desc.strideWidth = from(1, 9);
    }
    for (const KernelSet* kernels : availableKernels()) {
      const Description d = withKernels(understand(desc), *kernels);
      for (const ConvAlgorithm& algorithm : allAlgorithms()) {
        if (!serves(algorithm, d)) continue;
        EXPECT_GT(algorithm.make(d, *kernels)->predictedSeconds(), 0)
            << d.shape.text() << " pass " << desc.pass << " " << kernels->isa << " " << algorithm.name;
      }
    }
  }
}

TEST(Choice, DoesNotDependOnTheNumberOfWorkers) {
  std::mt19937 random(8);
  for (int i = 0; i < 200; ++i) {
    taccConvDesc_t desc = drawConvolution(random);
    for (const KernelSet* kernels : availableKernels()) {
      desc.maxWorkers = 1;
      const ChosenPlan one = makePlan(understand(desc), *kernels);
      desc.maxWorkers = 16;
      const ChosenPlan many = makePlan(understand(desc), *kernels);
      EXPECT_EQ(one.algorithm, many.algorithm) << understand(desc).shape.text();
      EXPECT_EQ(one.plan->predictedSeconds(), many.plan->predictedSeconds()) << understand(desc).shape.text();
    }
  }
}

TEST(Choice, WhatAnAlgorithmDoesNotServeIsAnErrorThatSaysWhatDoes) {
  std::mt19937 random(9);
  int errors = 0;
  for (int i = 0; i < 200; ++i) {
    taccConvDesc_t desc = drawConvolution(random);
    for (const std::string& name : allNames()) {
      desc.algorithm = name.c_str();
      try {
        EXPECT_EQ(makePlan(understand(desc), portableKernels()).algorithm, name);
      } catch (const Error& error) {
        ++errors;
        const std::string message = error.what();
        EXPECT_THAT(message, testing::HasSubstr("\"" + name + "\" does not serve")) << name;
        // Every algorithm that the sentence names does serve it.
        const std::size_t from = message.rfind("; ") + 2;
        const std::size_t end = message.rfind(" would");
        ASSERT_LT(from, end) << message;
        std::istringstream served(message.substr(from, end - from));
        for (std::string other; std::getline(served >> std::ws, other, ',');) {
          desc.algorithm = other.c_str();
          EXPECT_NO_THROW(makePlan(understand(desc), portableKernels())) << message << " but not " << other;
        }
      }
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(Choice, OfTilesKnowsWhatWeightsThatFindNoRegisterCost) {
  // AVX2's tiles of 7 pixels read half of their weights over and over: better than 4 and 3, not than 5, 5 and 4.
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->isa != "avx2") continue;
    const auto tileOf = [&](int width) {
      return std::string(makePlan(understand(convolution(taccConvForward, 1, 128, width, width, 32, 3, 1, 1)), *kernels)
                             .plan->kernel());
    };
    EXPECT_EQ(tileOf(14), "avx2 5x1");
    EXPECT_EQ(tileOf(7), "avx2 7x1");
  }
}

}  // namespace
}  // namespace tacc::conv::test
