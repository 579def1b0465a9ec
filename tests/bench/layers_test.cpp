// The layers of networks, and of files.
#include "support/networks/layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <tuple>

#include "compute/bound_conv.hpp"
#include "compute/conv_bench.hpp"
#include "compute/drawn_layers.hpp"
#include "compute/layer_bench.hpp"

namespace tacc::bench {
namespace {

/// A file that is gone afterwards.
class LayerFile {
 public:
  explicit LayerFile(const std::string& text) : name_(testing::TempDir() + "layers_test.txt") {
    std::ofstream(name_) << text;
  }
  ~LayerFile() { std::remove(name_.c_str()); }
  LayerFile(const LayerFile&) = delete;
  LayerFile& operator=(const LayerFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

TEST(Layers, OfResnet50AddUpToWhatIsKnown) {
  int count = 0;
  double operations = 0;
  for (const tools::Layer& layer : tools::findNetwork("resnet50").layers) {
    count += layer.count;
    operations += layer.count * layer.operations();
  }
  EXPECT_EQ(count, 53);
  EXPECT_NEAR(operations, 7.71e9, 0.01e9);
}

TEST(Layers, OfVgg16AddUpToWhatIsKnown) {
  double operations = 0;
  for (const tools::Layer& layer : tools::findNetwork("vgg16").layers) operations += layer.count * layer.operations();
  EXPECT_NEAR(operations, 30.7e9, 0.1e9);
}

/// Multiply-adds of all layers, in millions.
double millionsOf(const std::string& network) {
  double operations = 0;
  for (const tools::Layer& layer : tools::findNetwork(network).layers) operations += layer.count * layer.operations();
  return operations / 2e6;
}

TEST(Layers, OfNewerNetworksAddUpToWhatIsKnown) {
  EXPECT_NEAR(millionsOf("mobilenetv1"), 568, 2);  // with the last product of 1,024 by 1,000: 569
  EXPECT_NEAR(millionsOf("mobilenetv2"), 300, 3);
  EXPECT_NEAR(millionsOf("resnext50"), 4230, 50);
  EXPECT_NEAR(millionsOf("yolov3"), 32800, 300);
  EXPECT_NEAR(millionsOf("densenet121"), 2830, 50);
  EXPECT_NEAR(millionsOf("squeezenet"), 349, 10);
  EXPECT_NEAR(millionsOf("convnext-tiny"), 4450, 50);
  EXPECT_NEAR(millionsOf("inceptionv3"), 5713, 10);
  EXPECT_NEAR(millionsOf("mobilenetv3"), 217, 2);  // with the last product of 1,280 by 1,000: 219
  EXPECT_NEAR(millionsOf("shufflenetv2"), 145, 2);
}

TEST(Layers, OfDeepspeechHaveWideKernels) {
  const std::vector<tools::Layer> layers = tools::findNetwork("deepspeech").layers;
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].outHeight(), layers[1].height);
  EXPECT_EQ(layers[0].outWidth(), layers[1].width);
  EXPECT_EQ(layers[1].describe(taccConvForward, 1, 1, false).kernelWidth, 10);
}

TEST(Layers, ThatAreDrawnAreTheSameForTheSameSeed) {
  const std::vector<tools::Layer> layers = drawLayers(500, 7), again = drawLayers(500, 7), others = drawLayers(500, 8);
  const auto shape = [](const tools::Layer& l) {
    return std::tuple(l.inChannels, l.height, l.width, l.outChannels, textOf(l.kernel), textOf(l.stride), textOf(l.pad),
                      l.groups, textOf(l.dilation), l.batch);
  };
  int changed = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(shape(layers[i]), shape(again[i]));
    changed += shape(layers[i]) != shape(others[i]) ? 1 : 0;
  }
  EXPECT_GT(changed, 490);
}

TEST(Layers, ThatAreDrawnAreLayersAndOfEveryKind) {
  int grouped = 0, dilated = 0, wide = 0, strided = 0, odd = 0;
  for (const tools::Layer& l : drawLayers(500, 1)) {
    SCOPED_TRACE(l.name);
    ASSERT_GE(l.outHeight(), 1);
    ASSERT_GE(l.outWidth(), 1);
    ASSERT_EQ(l.inChannels % l.groups + l.outChannels % l.groups, 0);
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData, taccConvBackwardWeights}) {
      const taccConvDesc_t desc = l.describe(pass, l.batch, 1, false);
      taccConvPlan_t plan = nullptr;
      ASSERT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
      taccConvPlanDestroy(plan);
    }
    grouped += l.groups > 1 ? 1 : 0;
    dilated += l.dilation.height > 1 ? 1 : 0;
    wide += l.kernel.width != l.kernel.height ? 1 : 0;
    strided += l.stride.height > 1 ? 1 : 0;
    odd += l.inChannels % 8 != 0 ? 1 : 0;
  }
  for (const int kind : {grouped, dilated, wide, strided, odd}) EXPECT_GT(kind, 10);
}

TEST(Layers, AreReadFromAFile) {
  const LayerFile file(
      "# a comment\n\nfirst 3 32 40 16 5 2 1  # another\nsecond 16 8 8 32 3 1 1 2\nlong 8 9 20 8 1x7 2x3 0x3 1 1x2\n");
  const tools::Network network = tools::findNetwork(file.name());
  ASSERT_EQ(network.layers.size(), 3U);
  EXPECT_EQ(network.layers[2].outHeight(), 5);
  EXPECT_EQ(network.layers[2].outWidth(), 5);
  EXPECT_EQ(network.layers[0].outHeight(), 15);
  EXPECT_EQ(network.layers[0].outWidth(), 19);
  EXPECT_EQ(network.layers[0].groups, 1);
  EXPECT_EQ(network.layers[1].groups, 2);
  EXPECT_EQ(network.layers[1].operations(), 2.0 * 32 * 8 * 9 * 64);
}

TEST(Layers, TellWhichLineOfAFileIsWrong) {
  for (const char* line : {"short 3 32", "long 1 2 3 4 5 6 7 8 9 10", "word 3 x 40 16 5 2 1", "still 3 8 8 16 3 0 1",
                           "open 3 8 8 16 3x 1 1", "cube 3 8 8 16 3x3x3 1 1"}) {
    const LayerFile file(std::string("good 3 32 40 16 5 2 1\n") + line + "\n");
    try {
      tools::findNetwork(file.name());
      ADD_FAILURE() << line << " was accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(":2: "));
    }
  }
  EXPECT_THROW(tools::findNetwork("no such network"), std::invalid_argument);
}

/// Within half a step of bfloat16, of the largest of some.
void expectNear(const ConvProblem& problem, ConvContestant& contestant) {
  contestant.run();
  EXPECT_EQ(problem.countWrong(contestant.result().data(), 0.004), 0U)
      << problem.layer.name << " " << contestant.implementation();
}

TEST(ConvBench, ResultsAreRightForEveryPassAndPeer) {
  const tools::Layer layers[] = {{"plain", 20, 9, 10, 24, 3, 1, 1, 1, 1},
                                 {"first", 3, 15, 16, 20, 5, 2, 2, 1, 1},
                                 {"groups", 32, 8, 8, 32, 3, 1, 1, 2, 1},
                                 {"product", 16, 7, 7, 40, 1, 2, 0, 1, 1},
                                 {"long", 32, 9, 14, 16, {1, 5}, {2, 3}, {0, 2}, 1, 1, {1, 2}},
                                 {"line", 16, 1, 40, 32, {1, 4}, {1, 2}, {0, 1}, 1, 1}};
  std::vector<ConvPeer> peers;
  for (const ConvPeer& peer : convPeers()) {
    if (peer.computes && (peer.isThere == nullptr || peer.isThere())) peers.push_back(peer);
  }
  for (const tools::Layer& layer : layers) {
    for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData, taccConvBackwardWeights}) {
      const ConvProblem problem(layer, pass, 2);
      const auto own = makeTaccContestant(problem, 1, false);
      own->run();
      const std::vector<float> right = own->result();
      EXPECT_EQ(problem.countWrong(right.data(), 0), 0U) << layer.name;
      std::vector<float> wrong = right;
      wrong[0] += 1;
      EXPECT_GT(problem.countWrong(wrong.data(), 0), 0U) << layer.name;
      for (const bool rounds : {false, true}) {
        ConvProblem rounded(layer, pass, 2);
        rounded.numbers = {.areBfloat16 = true, .roundsWeights = rounds};
        expectNear(rounded, *makeTaccContestant(rounded, 1, false));
        for (const ConvPeer& peer : peers) {
          for (const auto& contestant : peer.make(rounded, 1, false)) expectNear(rounded, *contestant);
        }
      }
      for (const ConvPeer& peer : peers) {
        for (const auto& contestant : peer.make(problem, 1, false)) {
          contestant->run();
          EXPECT_EQ(contestant->result(), right)
              << layer.name << " " << peer.name << " " << contestant->implementation();
        }
      }
    }
  }
}

TEST(ConvBound, CountsWhatLiesInTheImage) {
  EXPECT_EQ(insideOf({7, 7, 3, 1, 1, 1}).pairs, 19);  // two of 21 are in the padding
  EXPECT_EQ(insideOf({8, 4, 1, 2, 0, 1}).touched, 4);
  for (const tools::Layer& layer : drawLayers(200, 7)) {
    tools::Layer unpadded = layer;
    unpadded.pad = {0, 0};
    unpadded.height = std::max(layer.height, layer.dilation.height * (layer.kernel.height - 1) + 1);
    unpadded.width = std::max(layer.width, layer.dilation.width * (layer.kernel.width - 1) + 1);
    EXPECT_LE(leastOperations(layer), layer.operations()) << layer.name;
    EXPECT_DOUBLE_EQ(leastOperations(unpadded), unpadded.operations()) << layer.name;
  }
}

TEST(ConvBound, ReadsAndWritesEachTensorOnce) {
  const tools::Layer layer{"every second pixel", 10, 8, 6, 20, 1, 2, 0, 1, 1};
  constexpr std::size_t images = 3, weights = 20 * 10, whole = 10 * 8 * 6, seen = 10 * 4 * 3, output = 20 * 4 * 3;
  const auto isOf = [&](taccConvPass_t pass, std::size_t read, std::size_t written) {
    ConvProblem problem(layer, pass, images);
    EXPECT_EQ(tensorsOf(problem).read, read);
    EXPECT_EQ(tensorsOf(problem).written, written);
    problem.isPlain = true;  // NCHW, where pixels share lines of the cache
    EXPECT_EQ(tensorsOf(problem).read, read + (pass == taccConvBackwardData ? 0 : images * seen));
    const Contestants bound = makeBoundContestants(problem, 1, false);
    bound.at(0)->run();
    EXPECT_GT(bound.at(0)->ownTime().processor, 0);
    EXPECT_TRUE(makeBoundContestants(problem, 2, false).empty()) << "it is of one thread";
  };
  isOf(taccConvForward, images * seen + weights, images * output);
  isOf(taccConvBackwardData, images * output + weights, images * whole);
  isOf(taccConvBackwardWeights, images * (seen + output), weights);
}

TEST(ConvBench, PlainRunsBeginAndEndWithNchw) {
  ConvProblem problem({"plain", 20, 9, 10, 24, 3, 1, 1, 1, 1}, taccConvForward, 2);
  problem.isPlain = true;
  const auto own = makeTaccContestant(problem, 1, false);
  own->run();
  const std::vector<float> before = own->result();
  for (std::size_t i = 0; i < problem.input.size(); ++i) problem.input.data()[i] *= 2;
  own->run();
  const std::vector<float> after = own->result();
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_EQ(after[i], 2 * before[i]);
}

TEST(LayerBench, EveryLayerRunsAndCountsItsBytes) {
  for (const LayerProblem& problem : layerProblems(2, 20, 9)) {
    problem.run();
    EXPECT_GT(problem.bytesRead, 0) << problem.name;
    EXPECT_GE(problem.bytesWritten, 0) << problem.name;
  }
}

TEST(ConvBench, DrawsABarForEveryContestant) {
  ConvReport report;
  report.options.networks = {"net"};
  report.options.peers = {"first", "second"};
  report.peak = 1e9;
  report.results = {{"net",
                     {"a layer", 16, 8, 8, 16, 1, 1, 0, 1, 1},
                     taccConvForward,
                     1,
                     1e6,
                     2e-3,
                     0,
                     "kernel",
                     0,
                     {{"second", {4e-3, 0, "theirs"}}}}};
  const std::string svg = convPlot(report);
  EXPECT_THAT(svg, testing::HasSubstr("a layer"));
  EXPECT_THAT(svg, testing::HasSubstr("second"));
  EXPECT_THAT(svg, testing::HasSubstr("height=\"180.0\" fill=\"#0072b2\""));  // half of the peak
  EXPECT_THAT(svg, testing::HasSubstr("height=\"90.0\" fill=\"#009e73\""));
}

}  // namespace
}  // namespace tacc::bench
