// Taps of a line that are multiplied together: each tap of each result once, and nothing that is outside.
#include "compute/conv/algorithms/channel_direction.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "compute/conv/shape.hpp"

namespace tacc::conv::test {
namespace {

/// How often each tap is multiplied with each source, by results.
using Products = std::map<std::pair<int, std::pair<int, int>>, int>;

Products asDefined(const ChannelDirection& along) {
  Products products;
  std::vector<ChannelDirection::Source> sources;
  for (int result = 0; result < along.results; ++result) {
    along.findSources(result, sources);
    for (const auto& source : sources) ++products[{result, {source.tap, source.source}}];
  }
  return products;
}

Products ofPhases(const ChannelDirection& along, int pixelFloats) {
  Products products;
  for (const ChannelRun& run : channelPhases(along, pixelFloats)) {
    for (const ChannelTaps& taps : run.together) {
      EXPECT_LE(taps.count, mostTapsTogether);
      for (int p = 0; p < run.count; ++p) {
        for (int t = 0; t < taps.count; ++t) {
          if (p + t < taps.from || p + t >= taps.to) continue;
          const int result = run.first + p * along.resultStep();
          const auto tap = static_cast<int>((taps.weights + t * taps.weightsStep) / blockLength);
          const auto source = static_cast<int>(taps.read / pixelFloats) + (p + t) * along.sourceStep();
          ++products[{result, {tap, source}}];
        }
      }
    }
  }
  return products;
}

TEST(ChannelPhases, MultiplyWhatTheDefinitionDoes) {
  std::mt19937 random(11);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 400; ++i) {
    ChannelDirection along{from(1, 40), from(1, 40), from(1, 17), from(1, 4), from(1, 4), from(0, 9), i % 2 == 0};
    along.takesApart = i % 4 < 2;
    EXPECT_EQ(ofPhases(along, from(1, 50)), asDefined(along))
        << along.results << " of " << along.sources << ", " << along.taps << " taps, stride " << along.stride
        << ", dilation " << along.dilation << ", pad " << along.pad << (along.spreads ? ", spread" : "");
  }
}

/// Dilated taps see what their neighbours' do, of results as far apart.
TEST(ChannelPhases, TakeAllTapsOfADilatedLineTogether) {
  const ChannelDirection along{60, 60, 3, 1, 2, 2, false, true};
  for (const ChannelRun& run : channelPhases(along, 8)) {
    ASSERT_EQ(run.together.size(), 1U);
    EXPECT_EQ(run.together.front().count, 3);
    EXPECT_EQ(run.count, 30);
  }
}

}  // namespace
}  // namespace tacc::conv::test
