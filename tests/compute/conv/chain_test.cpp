// Two convolutions one behind the other, in one pass or in turn: exactly what the definition says of one and then the
// other.
#include "compute/conv/chain.hpp"

#include <gmock/gmock.h>

#include <random>

#include "../guarded_buffer.hpp"
#include "conv_case.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;
using ::testing::HasSubstr;

/// Both descriptions, their tensors, and what the second gives of what the first gives.
struct ChainCase {
  ChainCase(const taccConvDesc_t& firstDesc, const taccConvDesc_t& secondDesc)
      : chain(understandChain(firstDesc, secondDesc)), first(inside(firstDesc)), second(reading(secondDesc)) {
    second.input = first.expected();
  }

  Floats packed(const ChainPlan& plan) const {
    Floats floats(plan.packedFloats());
    std::fill_n(floats.data(), floats.size(), 1e30F);
    plan.packBoth(first.weights.data(), chain.first.bias ? first.bias.data() : nullptr, second.weights.data(),
                  floats.data());
    return floats;
  }

  Floats run(const ChainPlan& plan, const taccExecutor_t& executor) const {
    const Floats weights = packed(plan);
    Floats workspace(plan.workspaceBytes() / sizeof(float));
    std::fill_n(workspace.data(), workspace.size(), 1e30F);
    Floats result = second.before;
    plan.run({first.input.data(), weights.data(), nullptr, second.bias.data(), second.residual.data(), result.data(),
              workspace.data(), plan.workspaceBytes()},
             TaskExecutor(executor));
    return result;
  }

  void expectRight(const ChosenChain& chosen, const taccExecutor_t& executor, const Floats& expected) const {
    EXPECT_TRUE(second.isRight(run(*chosen.plan, executor), expected))
        << first.text() << ", then " << second.text() << " by " << chosen.algorithm << " " << chosen.plan->kernel();
  }

  Chain chain;
  Case first, second;

 private:
  static taccConvDesc_t inside(taccConvDesc_t desc) {
    desc.outputLayout = taccLayoutNchw16c;
    return desc;
  }
  static taccConvDesc_t reading(taccConvDesc_t desc) {
    desc.inputLayout = taccLayoutNchw16c;
    return desc;
  }
};

taccConvDesc_t channelWise(int batch, int channels, int height, int width, int kernel, int stride, int pad) {
  taccConvDesc_t desc = convolution(taccConvForward, batch, channels, height, width, channels, kernel, stride, pad);
  desc.groups = channels;
  return desc;
}

/// A convolution of `outs` channels that reads what `first` writes.
taccConvDesc_t behind(const taccConvDesc_t& first, int outs, int kernel = 1) {
  const Shape s = understand(first).shape;
  taccConvDesc_t desc = convolution(taccConvForward, s.batch, s.outChannels, s.outHeight, s.outWidth, outs, kernel);
  desc.padHeight = desc.padWidth = kernel / 2;
  desc.maxWorkers = first.maxWorkers;
  return desc;
}

/// With every instruction set, by every algorithm of chains that serves it, in one thread and in several.
void expectChainIsExact(const taccConvDesc_t& first, const taccConvDesc_t& second) {
  const ChainCase test(first, second);
  const Floats expected = test.second.expected();
  const ThreadedExecutor threads(first.maxWorkers);
  for (const KernelSet* kernels : availableKernels()) {
    for (const char* name : {"depthwise-product", "in-turn"}) {
      Chain named = test.chain;
      if (std::string_view(name) == "depthwise-product" && !servesDepthwiseProduct(named)) continue;
      named.first.algorithm = name;
      const ChosenChain chosen = makeChain(named, *kernels);
      EXPECT_EQ(chosen.algorithm, name);
      EXPECT_GT(chosen.plan->predictedSeconds(), 0);
      test.expectRight(chosen, *taccSerialExecutor(), expected);
      test.expectRight(chosen, threads.get(), expected);
    }
  }
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  template <class T>
  T one(std::initializer_list<T> some) {
    return some.begin()[from(0, static_cast<int>(some.size()) - 1)];
  }
  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_;
};

TEST(Chain, IsExactForDrawnChannelWiseLayers) {
  Draw draw(61);
  for (int i = 0; i < 60; ++i) {
    taccConvDesc_t first = channelWise(draw.from(1, 5), draw.from(2, 70), draw.from(1, 30), draw.from(1, 70), 1, 1, 0);
    chooseKernel(first, draw.random());
    first.kernelHeight = first.kernelWidth = draw.one({1, 3, 3, 3, 5, 7});
    first.height = std::max(first.height, first.dilationHeight * (first.kernelHeight - 1) + 1);
    first.width = std::max(first.width, first.dilationWidth * (first.kernelWidth - 1) + 1);
    first.bias = draw.from(0, 1);
    first.activation = draw.one({taccActivationNone, taccActivationRelu, taccActivationRelu6});
    first.maxWorkers = draw.from(1, 3);
    first.weightLayout = draw.one({taccWeightsKcrs, taccWeightsBlocked});
    taccConvDesc_t second = behind(first, draw.from(1, 80));
    chooseEpilogue(second, draw.random());
    second.weightLayout = draw.one({taccWeightsKcrs, taccWeightsBlocked});
    expectChainIsExact(first, second);
  }
}

TEST(Chain, IsExactForEveryLayout) {
  for (const taccLayout_t in : {taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc}) {
    for (const taccLayout_t out : {taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc}) {
      for (const int channels : {32, 37}) {
        taccConvDesc_t first = channelWise(2, channels, 13, 18, 3, 2, 1);
        first.inputLayout = in;
        first.bias = 1;
        taccConvDesc_t second = behind(first, channels);
        second.outputLayout = out;
        second.bias = second.residual = 1;
        expectChainIsExact(first, second);
      }
    }
  }
}

// 2 KiB between the pixels of NHWC, which are copied before.
TEST(Chain, IsExactForPixelsThatShareSetsOfTheCache) {
  taccConvDesc_t first = channelWise(2, 512, 9, 8, 3, 1, 1);
  first.inputLayout = taccLayoutNhwc;
  first.maxWorkers = 4;
  expectChainIsExact(first, behind(first, 16));
}

// Parts of images, at whose borders lines are read twice, and the last of which is shorter.
TEST(Chain, IsExactForImagesLargerThanTheL2Cache) {
  for (const int stride : {1, 2}) {
    for (const int workers : {1, 5}) {
      taccConvDesc_t first = channelWise(1, 48, 131 * stride, 90 * stride, 3, stride, 1);
      first.bias = 1;
      first.maxWorkers = workers;
      taccConvDesc_t second = behind(first, 24);
      second.residual = 1;
      second.activation = taccActivationRelu;
      expectChainIsExact(first, second);
    }
  }
}

TEST(Chain, IsExactForOtherConvolutionsThanChannelWiseAndProducts) {
  Draw draw(62);
  for (int i = 0; i < 12; ++i) {
    taccConvDesc_t first = convolution(taccConvForward, draw.from(1, 2), draw.from(1, 20), 8, 9, draw.from(1, 30), 3);
    first.bias = draw.from(0, 1);
    taccConvDesc_t second = behind(first, draw.from(1, 30), draw.one({1, 3}));
    second.bias = draw.from(0, 1);
    expectChainIsExact(first, second);
  }
}

TEST(Chain, TouchesNothingOutsideOfItsBuffers) {
  for (const taccLayout_t in : {taccLayoutNchw16c, taccLayoutNhwc}) {
    for (const bool isAtEnd : {false, true}) {
      for (const KernelSet* kernels : availableKernels()) {
        taccConvDesc_t first = channelWise(2, 32, 15, 17, 3, 2, 1);
        first.inputLayout = in;
        first.bias = 1;
        taccConvDesc_t second = behind(first, 30);
        second.residual = 1;
        const ChainCase test(first, second);
        Chain named = test.chain;
        named.first.algorithm = "depthwise-product";
        const ChosenChain chosen = makeChain(named, *kernels);
        constexpr std::size_t pageCount = 64;
        PageBuffer input(pageCount), residual(pageCount), result(pageCount), weights(pageCount), workspace(pageCount);
        const Floats packed = test.packed(*chosen.plan), scratch(chosen.plan->workspaceBytes() / sizeof(float));
        const auto all = [&](PageBuffer& pages, const Floats& floats) {
          return pages.place(floats.data(), floats.size(), isAtEnd);
        };
        float* const to = all(result, test.second.before);
        chosen.plan->run(
            {all(input, test.first.input), all(weights, packed), nullptr, nullptr, all(residual, test.second.residual),
             to, all(workspace, scratch), chosen.plan->workspaceBytes()},
            TaskExecutor(*taccSerialExecutor()));
        const Floats expected = test.second.expected();
        EXPECT_TRUE(std::equal(to, to + expected.size(), expected.data())) << test.first.text();
      }
    }
  }
}

TEST(Chain, RoundsWhatIsBetweenToBfloat16) {
  taccConvDesc_t first = channelWise(1, 16, 6, 7, 3, 1, 1);
  first.activationType = taccBfloat16;
  taccConvDesc_t second = behind(first, 16);
  second.activationType = taccBfloat16;
  const ChosenChain chosen = makeChain(understandChain(first, second), *availableKernels().front());
  EXPECT_EQ(chosen.algorithm, "in-turn");
}

// From memory, the product hides what the first convolution waits for; in the caches there is nothing to hide.
TEST(Chain, IsOnePassWhereTheInputComesFromMemory) {
  const auto chosen = [](int batch, int channels, int size) {
    const taccConvDesc_t first = channelWise(batch, channels, size, size, 3, 2, 1);
    return makeChain(understandChain(first, behind(first, 2 * channels)), *availableKernels().front()).algorithm;
  };
  EXPECT_EQ(chosen(16, 64, 112), "depthwise-product");
  EXPECT_EQ(chosen(1, 64, 28), "in-turn");
}

TEST(Chain, FromCSaysWhatItNeedsAndRuns) {
  taccConvDesc_t first = channelWise(2, 20, 9, 8, 3, 1, 1);
  first.bias = 1;
  taccConvDesc_t second = behind(first, 30);
  second.bias = second.residual = 1;
  for (const char* name : {"depthwise-product", "in-turn", static_cast<const char*>(nullptr)}) {
    first.algorithm = name;
    const ChainCase test(first, second);
    taccConvPlan_t plan = nullptr;
    ASSERT_EQ(taccConvChainPlanCreate(&plan, &first, &second), taccSuccess) << taccGetLastError(nullptr);
    taccConvInfo_t info{};
    ASSERT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
    if (name != nullptr) {
      EXPECT_STREQ(info.algorithm, name);
    }
    EXPECT_EQ(info.inputBytes, test.first.input.size() * sizeof(float));
    EXPECT_EQ(info.outputBytes, test.second.before.size() * sizeof(float));
    EXPECT_EQ(info.weightBytes, (test.first.weights.size() + test.second.weights.size()) * sizeof(float));
    EXPECT_EQ(info.operations, test.chain.first.shape.operations() + test.chain.second.shape.operations());
    EXPECT_EQ(info.outHeight, 9);
    Floats packed(info.packedWeightBytes / sizeof(float)), workspace(info.workspaceBytes / sizeof(float));
    ASSERT_EQ(taccConvChainPackWeights(plan, test.first.weights.data(), test.first.bias.data(),
                                       test.second.weights.data(), packed.data()),
              taccSuccess);
    Floats result = test.second.before;
    taccConvBuffers_t buffers{test.first.input.data(),     packed.data(), nullptr,          test.second.bias.data(),
                              test.second.residual.data(), result.data(), workspace.data(), info.workspaceBytes};
    ASSERT_EQ(taccConvRun(plan, &buffers, taccSerialExecutor()), taccSuccess) << taccGetLastError(nullptr);
    EXPECT_TRUE(result == test.second.expected());

    EXPECT_EQ(taccConvPackWeights(plan, test.first.weights.data(), packed.data()), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("taccConvChainPackWeights"));
    EXPECT_EQ(
        taccConvChainPackWeights(plan, test.first.weights.data(), nullptr, test.second.weights.data(), packed.data()),
        taccInvalidArgument);
    EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("firstBias"));
    buffers.workspaceBytes = info.workspaceBytes - 1;
    EXPECT_EQ(taccConvRun(plan, &buffers, taccSerialExecutor()), taccInvalidArgument);
    EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess);
  }
}

TEST(Chain, SaysWhatDoesNotFit) {
  const taccConvDesc_t first = channelWise(2, 20, 9, 8, 3, 1, 1);
  const taccConvDesc_t second = behind(first, 30);
  const auto refusal = [](const taccConvDesc_t& one, const taccConvDesc_t& other) {
    taccConvPlan_t plan = nullptr;
    EXPECT_EQ(taccConvChainPlanCreate(&plan, &one, &other), taccInvalidArgument);
    EXPECT_EQ(plan, nullptr);
    return std::string(taccGetLastError(nullptr));
  };
  taccConvDesc_t other = second;
  other.inChannels = 21;
  EXPECT_THAT(refusal(first, other), HasSubstr("inChannels is 21, and the first one's results have 20"));
  other = second;
  other.height = 10;
  EXPECT_THAT(refusal(first, other), HasSubstr("height is 10"));
  other = second;
  other.batch = 1;
  EXPECT_THAT(refusal(first, other), HasSubstr("batch is 1"));
  other = second;
  other.maxWorkers = 2;
  EXPECT_THAT(refusal(first, other), HasSubstr("maxWorkers"));
  other = second;
  other.activationType = taccBfloat16;
  EXPECT_THAT(refusal(first, other), HasSubstr("one type"));
  other = second;
  other.pass = taccConvBackwardData;
  EXPECT_THAT(refusal(first, other), HasSubstr("forward"));
  taccConvDesc_t one = first;
  one.residual = 1;
  EXPECT_THAT(refusal(one, second), HasSubstr("residual"));
  one = convolution(taccConvForward, 1, 16, 8, 8, 16, 3);
  one.algorithm = "depthwise-product";
  EXPECT_THAT(refusal(one, behind(one, 4)), HasSubstr("does not serve"));
  one.algorithm = "no-such";
  EXPECT_THAT(refusal(one, behind(one, 4)), HasSubstr("no-such"));

  taccConvPlan_t plan = nullptr;
  ASSERT_EQ(taccConvPlanCreate(&plan, &first), taccSuccess);
  Floats some(10'000);
  EXPECT_EQ(taccConvChainPackWeights(plan, some.data(), nullptr, some.data(), some.data()), taccInvalidUsage);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("taccConvPackWeights"));
  taccConvPlanDestroy(plan);
}

}  // namespace
}  // namespace tacc::conv::test
