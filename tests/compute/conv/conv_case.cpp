#include "conv_case.hpp"

#include <algorithm>
#include <cmath>

#include "compute/conv/activation.hpp"
#include "core/error.hpp"
#include "definition.hpp"
#include "support/settings.hpp"

namespace tacc::conv::test {
namespace {

/// Most of the cases of a sample; drawn, as loops would meet every third one in step.
bool isLeftOut() {
  static std::mt19937 random(1);
  return tacc::test::isQuick() && random() % 4 != 0;
}

/// Calls visit(number in NCHW, place in the layout) for all of some images.
template <class Visit>
void forEachPixel(taccLayout_t layout, int batch, int channels, int height, int width, const Visit& visit) {
  std::size_t number = 0;
  for (int n = 0; n < batch; ++n)
    for (int c = 0; c < channels; ++c)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) visit(number++, elementAt(layout, channels, height, width, n, c, y, x));
}

/// The same for weights, with their numbers in KCRS.
template <class Visit>
void forEachWeight(const Shape& s, taccWeightLayout_t layout, const Visit& visit) {
  std::size_t number = 0;
  for (int k = 0; k < s.outChannels; ++k) {
    const int out = k % s.outPerGroup();
    for (int c = 0; c < s.inPerGroup(); ++c) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        for (int t = 0; t < s.kernelWidth; ++t) {
          const WeightBlock b = weightBlock(s, layout, k / s.outPerGroup(), out / blockLength, c / blockLength, r, t);
          visit(number++, b.base + out % blockLength * b.outStep + c % blockLength * b.inStep);
        }
      }
    }
  }
}

/// The same tensor in every layout.
Floats activations(taccLayout_t layout, int batch, int channels, int height, int width, std::uint64_t seed) {
  Floats tensor(tensorFloats(layout, batch, channels, height, width));
  forEachPixel(layout, batch, channels, height, width,
               [&](std::size_t number, std::ptrdiff_t place) { tensor[place] = smallInteger(seed, number, 4); });
  return tensor;
}

Floats someWeights(const Shape& s, taccWeightLayout_t layout, std::uint64_t seed) {
  Floats plain(weightFloats(taccWeightsKcrs, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups));
  for (std::size_t i = 0; i < plain.size(); ++i) plain[static_cast<std::ptrdiff_t>(i)] = smallInteger(seed, i, 4);
  if (layout == taccWeightsKcrs) return plain;
  Floats blocked(weightFloats(layout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups));
  reorderWeights(taccWeightsKcrs, plain.data(), layout, blocked.data(), s);
  return blocked;
}

Floats resultBefore(const Description& d) {
  const Shape& s = d.shape;
  Floats result(0);
  switch (d.pass) {
    case taccConvForward:
      result = activations(d.outputLayout, s.batch, s.outChannels, s.outHeight, s.outWidth, 5);
      break;
    case taccConvBackwardData:
      result = activations(d.inputLayout, s.batch, s.inChannels, s.height, s.width, 6);
      break;
    case taccConvBackwardWeights:
      result = someWeights(s, d.weightLayout, 7);
      break;
  }
  if (!d.accumulate) std::fill_n(result.data(), result.size(), 1e30F);  // must be overwritten, the padding too
  return result;
}

}  // namespace

Case::Case(const taccConvDesc_t& d)
    : desc(d), input(0), weights(0), outputGradient(0), residual(0), bias(0), before(0), description_(understand(d)) {
  const Shape& s = description_.shape;
  input = activations(d.inputLayout, s.batch, s.inChannels, s.height, s.width, 1);
  outputGradient = activations(d.outputLayout, s.batch, s.outChannels, s.outHeight, s.outWidth, 2);
  weights = someWeights(s, d.weightLayout, 3);
  residual = activations(d.outputLayout, s.batch, s.outChannels, s.outHeight, s.outWidth, 4);
  bias = Floats(static_cast<std::size_t>(s.outChannels));
  for (int k = 0; k < s.outChannels; ++k) bias[k] = smallInteger(8, static_cast<std::uint64_t>(k), 9);
  before = resultBefore(description_);
}

Floats Case::expected() const {
  const Description& d = description_;
  const Shape& s = d.shape;
  const auto forEachInput = [&](const auto& visit) {
    forEachPixel(d.inputLayout, s.batch, s.inChannels, s.height, s.width, visit);
  };
  const auto forEachOutput = [&](const auto& visit) {
    forEachPixel(d.outputLayout, s.batch, s.outChannels, s.outHeight, s.outWidth, visit);
  };
  const auto forEachTap = [&](const auto& visit) { forEachWeight(s, d.weightLayout, visit); };
  const bool isForward = d.pass == taccConvForward, isOfData = d.pass == taccConvBackwardData;
  // The tensor of the result is zeros, and is read back.
  PlainTensors plain;
  Floats result(before.size());
  const auto fill = [](std::vector<double>& to, const Floats& from, const auto& forEach) {
    forEach([&](std::size_t number, std::ptrdiff_t place) { to.push_back(0), to[number] = from[place]; });
  };
  const auto readBack = [&](const std::vector<double>& sums, const auto& forEach) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      result[at] = d.accumulate ? before[at] : 0.0F;  // the paddings too
    }
    forEach([&](std::size_t number, std::ptrdiff_t place) {
      result[place] = static_cast<float>(sums[number] + double{result[place]});
    });
  };
  const Floats zeros(before.size());
  fill(plain.input, isOfData ? zeros : input, forEachInput);
  fill(plain.output, isForward ? zeros : outputGradient, forEachOutput);
  fill(plain.weights, isForward || isOfData ? weights : zeros, forEachTap);
  addByDefinition(s, d.pass, plain);
  if (isForward)
    readBack(plain.output, forEachOutput);
  else if (isOfData)
    readBack(plain.input, forEachInput);
  else
    readBack(plain.weights, forEachTap);
  if (d.pass != taccConvForward) return result;
  const std::size_t pixels = static_cast<std::size_t>(s.outHeight) * static_cast<std::size_t>(s.outWidth);
  forEachOutput([&](std::size_t number, std::ptrdiff_t place) {
    float& value = result[place];
    const std::size_t k = number / pixels % static_cast<std::size_t>(s.outChannels);
    if (d.bias) value += bias[static_cast<std::ptrdiff_t>(k)];
    if (d.residual) value += residual[place];
    value = applyActivation(d.activation, value);
  });
  return result;
}

Floats Case::run(const ConvPlan& plan, const taccExecutor_t& executor) const {
  Floats packed(plan.packedFloats());
  std::fill_n(packed.data(), packed.size(), 1e30F);
  plan.pack(weights.data(), packed.data());
  Floats workspace(plan.workspaceBytes() / sizeof(float));
  std::fill_n(workspace.data(), workspace.size(), 1e30F);
  Floats result = before;
  const Buffers buffers{input.data(),    packed.data(), outputGradient.data(), bias.data(),
                        residual.data(), result.data(), workspace.data(),      plan.workspaceBytes()};
  plan.run(buffers, TaskExecutor(executor));
  return result;
}

bool Case::isRight(const Floats& result, const Floats& expected) const {
  if (description_.activation != taccActivationSilu) return result == expected;
  return std::equal(result.data(), result.data() + result.size(), expected.data(),
                    [](float a, float b) { return std::abs(a - b) <= 1e-6F * std::abs(b) + 1e-36F; });
}

std::string Case::text() const {
  constexpr const char* passes[] = {"forward", "backward data", "backward weights"};
  std::string text = std::string(passes[description_.pass]) + " " + description_.shape.text();
  if (description_.activation != taccActivationNone) {
    text += ", activation " + std::to_string(description_.activation);
  }
  return text;
}

void expectExact(const taccConvDesc_t& desc) {
  if (isLeftOut()) return;
  const Case test(desc);
  const Floats expected = test.expected();
  int served = 0;
  for (const ConvAlgorithm& algorithm : allAlgorithms()) {
    if (algorithm.name.starts_with("winograd")) continue;  // it has tests of its own: it is not exact
    for (const KernelSet* kernels : availableKernels()) {
      if (algorithm.name == "reference" && kernels != &portableKernels()) continue;  // it uses none
      Description forced = withKernels(test.description(), *kernels);
      forced.algorithm = algorithm.name;
      if (!serves(algorithm, forced)) continue;
      ++served;
      const auto plan = algorithm.make(forced, *kernels);
      EXPECT_TRUE(test.isRight(test.run(*plan, *taccSerialExecutor()), expected))
          << test.text() << " with " << algorithm.name << " " << plan->kernel();
      EXPECT_GT(plan->predictedSeconds(), 0);
    }
  }
  EXPECT_GT(served, 0) << test.text();
}

void expectExactAsChosen(const taccConvDesc_t& desc, const taccExecutor_t& executor) {
  if (isLeftOut()) return;
  const Case test(desc);
  const Floats expected = test.expected();
  for (const KernelSet* kernels : availableKernels()) {
    const ChosenPlan chosen = makePlan(test.description(), *kernels);
    EXPECT_NE(chosen.algorithm, "reference") << test.text() << " " << kernels->isa;
    EXPECT_TRUE(test.isRight(test.run(*chosen.plan, executor), expected))
        << test.text() << " with " << chosen.algorithm << " " << chosen.plan->kernel() << ", layouts "
        << desc.inputLayout << " and " << desc.outputLayout;
  }
}

taccConvDesc_t convolution(taccConvPass_t pass, int batch, int inChannels, int height, int width, int outChannels,
                           int kernel, int stride, int pad) {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  desc.pass = pass;
  desc.batch = batch;
  desc.inChannels = inChannels;
  desc.height = height;
  desc.width = width;
  desc.outChannels = outChannels;
  desc.kernelHeight = desc.kernelWidth = kernel;
  desc.strideHeight = desc.strideWidth = stride;
  desc.padHeight = desc.padWidth = pad;
  return desc;
}

void chooseKernel(taccConvDesc_t& desc, std::mt19937& random) {
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  desc.kernelHeight = from(1, 5);
  desc.kernelWidth = from(1, 5);
  desc.strideHeight = from(1, 3);
  desc.strideWidth = from(1, 3);
  desc.padHeight = from(0, 5);
  desc.padWidth = from(0, 5);
  desc.dilationHeight = from(1, 3);
  desc.dilationWidth = from(1, 3);
  desc.height = std::max(desc.height, desc.dilationHeight * (desc.kernelHeight - 1) + 1);
  desc.width = std::max(desc.width, desc.dilationWidth * (desc.kernelWidth - 1) + 1);
}

void chooseEpilogue(taccConvDesc_t& desc, std::mt19937& random) {
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  if (desc.pass == taccConvForward) {
    desc.bias = from(0, 1);
    desc.residual = from(0, 1);
    desc.activation = allActivations[from(0, 4)];
  } else {
    desc.accumulate = from(0, 1);
  }
}

}  // namespace tacc::conv::test
