// What holds for every plan: the passes belong together, threads change no bit, nothing outside the buffers is touched.
#include <cstring>
#include <random>

#include "../guarded_buffer.hpp"
#include "conv_case.hpp"
#include "same_bits.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;

double product(const Floats& a, const Floats& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a.data()[i]) * b.data()[i];
  return sum;
}

Floats computed(taccConvDesc_t desc, taccConvPass_t pass) {
  desc.pass = pass;
  const Case test(desc);
  return test.run(*makePlan(test.description(), *availableKernels().front()).plan, *taccSerialExecutor());
}

/// A convolution of random size, with every feature now and then.
taccConvDesc_t randomConvolution(std::mt19937& random) {
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  taccConvDesc_t desc = convolution(taccConvForward, from(1, 3), from(1, 70), from(1, 20), from(1, 30), from(1, 70), 1);
  chooseKernel(desc, random);
  if (from(0, 4) == 0) {
    desc.groups = 2;
    desc.inChannels = 2 * from(1, 24);
    desc.outChannels = 2 * from(1, 24);
  }
  desc.weightLayout = from(0, 1) == 0 ? taccWeightsKcrs : taccWeightsBlocked;
  return desc;
}

TEST(Passes, AreAdjoint) {
  // <conv(x, w), g> = <x, backward data(g, w)> = <w, backward weights(x, g)>, exactly.
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const taccConvDesc_t desc = randomConvolution(random);
    const Case tensors(desc);
    const double forward = product(computed(desc, taccConvForward), tensors.outputGradient);
    EXPECT_EQ(product(computed(desc, taccConvBackwardData), tensors.input), forward) << tensors.text();
    EXPECT_EQ(product(computed(desc, taccConvBackwardWeights), tensors.weights), forward) << tensors.text();
  }
}

TEST(Passes, AreExactForRandomShapes) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    taccConvDesc_t desc = randomConvolution(random);
    desc.pass = allPasses[i % 3];
    expectExact(desc);
  }
}

TEST(Threads, ChangeNoBit) {
  for (const taccConvPass_t pass : allPasses) {
    std::vector<taccConvDesc_t> convolutions = {
        convolution(pass, 1, 64, 14, 14, 96, 3, 1, 1), convolution(pass, 5, 48, 7, 7, 64, 1),
        convolution(pass, 3, 48, 9, 8, 64, 1, 2), convolution(pass, 2, 33, 19, 23, 40, 3, 2, 1)};
    for (const auto& [channels, kernel, groups] : {std::array{128, 1, 1}, {96, 3, 96}, {512, 3, 512}}) {
      for (const int stride : {1, 2}) {
        convolutions.push_back(convolution(pass, 2, channels, 29, 30, channels, kernel, stride, kernel / 2));
        convolutions.back().groups = groups;
        convolutions.back().inputLayout = convolutions.back().outputLayout = taccLayoutNhwc;
      }
    }
    if (pass != taccConvBackwardData) {
      convolutions.push_back(convolution(pass, 2, 3, 60, 61, 64, 7, 2, 3));
      convolutions.back().inputLayout = taccLayoutNchw;
    }
    convolutions.push_back(convolution(pass, 3, 30, 17, 19, 42, 3, 1, 1));  // groups that cut blocks
    convolutions.back().groups = 6;
    convolutions.push_back(convolution(pass, 2, 32, 15, 17, 32, 3, 1, 1));
    convolutions.back().groups = 8;
    convolutions.push_back(convolution(pass, 3, 40, 17, 19, 40, 3, 2, 1));  // channel-wise
    convolutions.back().groups = 40;
    // Channel-wise in several parts, lines of one image, what comes from memory, and a tap at a time.
    convolutions.push_back(convolution(pass, 2, 40, 60, 61, 40, 5, 1, 2));
    convolutions.back().groups = 40;
    convolutions.push_back(convolution(pass, 1, 16, 41, 30, 16, 7, 2, 3));
    convolutions.back().groups = 16;
    convolutions.push_back(convolution(pass, 2, 96, 90, 80, 96, 3, 1, 1));
    convolutions.back().groups = 96;
    convolutions.push_back(convolution(pass, 3, 20, 40, 41, 20, 3, 3, 1));
    convolutions.back().groups = 20;
    convolutions.back().dilationWidth = 2;
    // A first layer, tiles of few channels, and a gradient that is brought to KCRS in parts.
    convolutions.push_back(convolution(pass, 2, 3, 120, 130, 16, 3, 2, 1));
    convolutions.back().inputLayout = pass == taccConvBackwardData ? taccLayoutNchw16c : taccLayoutNchw;
    convolutions.push_back(convolution(pass, 1, 144, 28, 28, 32, 1));
    convolutions.push_back(convolution(pass, 1, 160, 7, 7, 270, 3, 1, 1));
    convolutions.push_back(convolution(pass, 2, 40, 30, 31, 70, 1));
    convolutions.back().inputLayout = convolutions.back().outputLayout = taccLayoutNchw;
    convolutions.back().algorithm = "plain-product";
    for (const taccConvDesc_t& desc : convolutions) expectSameBitsForEveryNumberOfThreads(desc, 7);
  }
}

TEST(Memory, NothingOutsideTheBuffersIsTouched) {
  // Every buffer ends, or begins, where the next page may not be touched.
  constexpr std::size_t pages = 250;
  for (const taccConvPass_t pass : allPasses) {
    for (const auto& [ins, outs, kernel, stride, pad, groups] :
         {std::array{16, 32, 3, 1, 1, 1}, {20, 40, 3, 1, 1, 1},     {48, 16, 1, 1, 0, 1},
          {33, 17, 5, 2, 2, 1},           {3, 20, 3, 1, 1, 1},      {30, 20, 3, 1, 1, 5},
          {40, 40, 3, 1, 1, 40},          {21, 21, 5, 2, 2, 21},    {16, 16, 7, 1, 3, 16},
          {32, 32, 4, 3, 2, 32},          {36, 51, 3, 2, 1, 3},     {64, 32, 1, 2, 0, 1},
          {24, 18, 1, 1, 0, 1},           {40, 40, 1, 1, 0, 1},     {56, 24, 3, 1, 1, 1},
          {32, 32, 3, 1, 1, 4},           {32, 32, 3, 2, 1, 4},     {64, 64, 3, 2, 1, 64},
          {256, 256, 5, 1, 2, 256},       {512, 512, 3, 1, 1, 512}, {512, 512, 3, 2, 1, 512}}) {
      taccConvDesc_t desc = convolution(pass, 1, ins, 9, 13, outs, kernel, stride, pad);
      desc.groups = groups;
      desc.bias = pass == taccConvForward;
      if (ins == 3 && pass != taccConvBackwardData) desc.inputLayout = taccLayoutNchw;
      if (ins >= 64) desc.inputLayout = desc.outputLayout = taccLayoutNhwc;
      if (ins == 24) {
        desc.inputLayout = desc.outputLayout = taccLayoutNchw;
        desc.algorithm = "plain-product";
      }
      if (kernel == 1 && stride == 2) desc.algorithm = "strided-product";
      const Case test(desc);
      const Floats expected = test.expected();
      for (const KernelSet* kernels : availableKernels()) {
        const auto plan = makePlan(test.description(), *kernels).plan;
        Floats packed(plan->packedFloats());
        plan->pack(test.weights.data(), packed.data());
        for (const bool atEnd : {false, true}) {
          PageBuffer input(pages), weights(pages), gradient(pages), bias(pages), result(pages), workspace(pages);
          const auto place = [&](PageBuffer& buffer, const Floats& from) {
            const std::size_t bytes = from.size() * sizeof(float);
            unsigned char* const at = atEnd ? buffer.atEnd(bytes) : buffer.atBegin();
            if (bytes > 0) std::memcpy(at, from.data(), bytes);
            return reinterpret_cast<float*>(at);
          };
          float* const resultAt = place(result, test.before);
          const Floats work(plan->workspaceBytes() / sizeof(float));
          plan->run({place(input, test.input), place(weights, packed), place(gradient, test.outputGradient),
                     place(bias, test.bias), nullptr, resultAt, place(workspace, work), plan->workspaceBytes()},
                    TaskExecutor(*taccSerialExecutor()));
          EXPECT_EQ(std::memcmp(resultAt, expected.data(), expected.size() * sizeof(float)), 0)
              << test.text() << " " << plan->kernel();
        }
      }
    }
  }
}

void expectRoundTrips(int batch, int channels, int height, int width, const layers::LayerKernels& kernels) {
  constexpr taccLayout_t layouts[] = {taccLayoutNchw16c, taccLayoutNchw, taccLayoutNhwc};
  const auto numbers = [&](taccLayout_t layout) {
    Floats tensor(tensorFloats(layout, batch, channels, height, width));
    for (int n = 0; n < batch; ++n) {
      for (int c = 0; c < channels; ++c) {
        for (int p = 0; p < height * width; ++p) {
          tensor[elementAt(layout, channels, height, width, n, c, p / width, p % width)] =
              static_cast<float>((n * channels + c) * height * width + p);
        }
      }
    }
    return tensor;
  };
  for (const taccLayout_t from : layouts) {
    for (const taccLayout_t to : layouts) {
      Floats there(tensorFloats(to, batch, channels, height, width));
      std::fill_n(there.data(), there.size(), 1e30F);
      reorder(from, numbers(from).data(), to, there.data(), batch, channels, height, width, kernels);
      EXPECT_TRUE(there == numbers(to)) << from << " to " << to << ": " << batch << " " << channels << " " << height
                                        << " " << width << " " << kernels.isa;
    }
  }
}

TEST(Reorder, FromEveryLayoutToEveryOther) {
  for (const KernelSet* set : availableKernels()) {
    const layers::LayerKernels& kernels = layers::kernelTable(set->vectors);
    for (const auto& [batch, channels, height, width] :
         {std::array{1, 1, 1, 1}, {2, 3, 5, 7}, {1, 16, 9, 9}, {3, 37, 10, 13}, {2, 48, 8, 8}}) {
      expectRoundTrips(batch, channels, height, width, kernels);
    }
    expectRoundTrips(1, 32, 272, 272, kernels);  // non-temporally, with planes that are aligned
  }
}

}  // namespace
}  // namespace tacc::conv::test
