// Weights between their layouts: every one comes to its place, for drawn channels, kernels and groups.
#include "compute/conv/weights.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "conv_case.hpp"

namespace tacc::conv::test {
namespace {

/// Where weight (k, c) of a tap is, by the formula of one block.
std::size_t placeOf(const Shape& s, taccWeightLayout_t layout, int k, int c, int r, int t) {
  const int out = k % s.outPerGroup();
  const WeightBlock b = weightBlock(s, layout, k / s.outPerGroup(), out / blockLength, c / blockLength, r, t);
  return static_cast<std::size_t>(b.base + out % blockLength * b.outStep + c % blockLength * b.inStep);
}

/// The weights in a layout, each with a value of its own that `number` gives; zeros elsewhere.
template <class Number>
std::vector<float> weightsIn(const Shape& s, taccWeightLayout_t layout, const Number& number) {
  std::vector<float> all(weightFloats(layout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups));
  float next = 0;
  for (int k = 0; k < s.outChannels; ++k) {
    for (int c = 0; c < s.inPerGroup(); ++c) {
      for (int r = 0; r < s.kernelHeight; ++r) {
        for (int t = 0; t < s.kernelWidth; ++t) all[placeOf(s, layout, k, c, r, t)] = number(++next);
      }
    }
  }
  return all;
}

TEST(Weights, ComeToTheirPlacesInBothLayouts) {
  std::mt19937 random(16);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 200; ++i) {
    Shape s{};
    s.groups = from(0, 2) == 0 ? from(2, 40) : 1;
    const bool isDepthwise = s.groups > 1 && from(0, 1) == 0;
    s.inChannels = s.groups * (isDepthwise ? 1 : from(1, 50));
    s.outChannels = s.groups * (isDepthwise ? 1 : from(1, 50));
    s.kernelHeight = from(1, i % 20 == 0 ? 11 : 4);
    s.kernelWidth = from(1, i % 20 == 0 ? 11 : 4);
    const auto itself = [](float number) { return number; };
    const std::vector<float> kcrs = weightsIn(s, taccWeightsKcrs, itself);
    const std::vector<float> blocked = weightsIn(s, taccWeightsBlocked, itself);
    std::vector<float> result(blocked.size(), -1);
    reorderWeights(taccWeightsKcrs, kcrs.data(), taccWeightsBlocked, result.data(), s);
    EXPECT_EQ(result, blocked) << s.outChannels << "x" << s.inChannels << ", groups " << s.groups;
    result.assign(kcrs.size(), -1);
    reorderWeights(taccWeightsBlocked, blocked.data(), taccWeightsKcrs, result.data(), s);
    EXPECT_EQ(result, kcrs) << s.outChannels << "x" << s.inChannels << ", groups " << s.groups;
    addWeights(blocked.data(), result.data(), s);
    EXPECT_EQ(result, weightsIn(s, taccWeightsKcrs, [](float number) { return 2 * number; }));
  }
}

}  // namespace
}  // namespace tacc::conv::test
