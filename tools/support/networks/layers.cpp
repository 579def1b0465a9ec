#include "support/networks/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "support/networks/layer_list.hpp"

namespace tacc::tools {
namespace {

/// A square layer that keeps the size of its image, times the stride.
Layer square(std::string name, int inChannels, int size, int outChannels, int kernel, int stride, int pad,
             int count = 1, int groups = 1) {
  return {std::move(name), inChannels, size, size, outChannels, kernel, stride, pad, groups, count};
}

/// ResNet-50 v1: strides in the first 1x1 convolution of a stage.
std::vector<Layer> resnet50() {
  return {square("conv1", 3, 224, 64, 7, 2, 3),           square("res2_up", 64, 56, 256, 1, 1, 0, 4),
          square("res2_first", 64, 56, 64, 1, 1, 0),      square("res2_3x3", 64, 56, 64, 3, 1, 1, 3),
          square("res2_down", 256, 56, 64, 1, 1, 0, 2),   square("res3_skip", 256, 56, 512, 1, 2, 0),
          square("res3_first", 256, 56, 128, 1, 2, 0),    square("res3_3x3", 128, 28, 128, 3, 1, 1, 4),
          square("res3_up", 128, 28, 512, 1, 1, 0, 4),    square("res3_down", 512, 28, 128, 1, 1, 0, 3),
          square("res4_skip", 512, 28, 1024, 1, 2, 0),    square("res4_first", 512, 28, 256, 1, 2, 0),
          square("res4_3x3", 256, 14, 256, 3, 1, 1, 6),   square("res4_up", 256, 14, 1024, 1, 1, 0, 6),
          square("res4_down", 1024, 14, 256, 1, 1, 0, 5), square("res5_skip", 1024, 14, 2048, 1, 2, 0),
          square("res5_first", 1024, 14, 512, 1, 2, 0),   square("res5_3x3", 512, 7, 512, 3, 1, 1, 3),
          square("res5_up", 512, 7, 2048, 1, 1, 0, 3),    square("res5_down", 2048, 7, 512, 1, 1, 0, 2)};
}

std::vector<Layer> vgg16() {
  return {square("conv1_1", 3, 224, 64, 3, 1, 1),   square("conv1_2", 64, 224, 64, 3, 1, 1),
          square("conv2_1", 64, 112, 128, 3, 1, 1), square("conv2_2", 128, 112, 128, 3, 1, 1),
          square("conv3_1", 128, 56, 256, 3, 1, 1), square("conv3_2", 256, 56, 256, 3, 1, 1, 2),
          square("conv4_1", 256, 28, 512, 3, 1, 1), square("conv4_2", 512, 28, 512, 3, 1, 1, 2),
          square("conv5", 512, 14, 512, 3, 1, 1, 3)};
}

/// As in Caffe: two groups.
std::vector<Layer> alexnet() {
  return {square("conv1", 3, 227, 96, 11, 4, 0), square("conv2", 96, 27, 256, 5, 1, 2, 1, 2),
          square("conv3", 256, 13, 384, 3, 1, 1), square("conv4", 384, 13, 384, 3, 1, 1, 1, 2),
          square("conv5", 384, 13, 256, 3, 1, 1, 1, 2)};
}

std::vector<Layer> googlenet() {
  struct Inception {
    const char* name;
    int size, in, one, threeReduce, three, fiveReduce, five, pool;
  };
  constexpr Inception inceptions[] = {
      {"3a", 28, 192, 64, 96, 128, 16, 32, 32},     {"3b", 28, 256, 128, 128, 192, 32, 96, 64},
      {"4a", 14, 480, 192, 96, 208, 16, 48, 64},    {"4b", 14, 512, 160, 112, 224, 24, 64, 64},
      {"4c", 14, 512, 128, 128, 256, 24, 64, 64},   {"4d", 14, 512, 112, 144, 288, 32, 64, 64},
      {"4e", 14, 528, 256, 160, 320, 32, 128, 128}, {"5a", 7, 832, 256, 160, 320, 32, 128, 128},
      {"5b", 7, 832, 384, 192, 384, 48, 128, 128}};
  std::vector<Layer> layers = {square("conv1", 3, 224, 64, 7, 2, 3), square("conv2_reduce", 64, 56, 64, 1, 1, 0),
                               square("conv2", 64, 56, 192, 3, 1, 1)};
  for (const Inception& i : inceptions) {
    const std::string name = i.name;
    layers.push_back(square(name + "_1x1", i.in, i.size, i.one, 1, 1, 0));
    layers.push_back(square(name + "_3x3r", i.in, i.size, i.threeReduce, 1, 1, 0));
    layers.push_back(square(name + "_3x3", i.threeReduce, i.size, i.three, 3, 1, 1));
    layers.push_back(square(name + "_5x5r", i.in, i.size, i.fiveReduce, 1, 1, 0));
    layers.push_back(square(name + "_5x5", i.fiveReduce, i.size, i.five, 5, 1, 2));
    layers.push_back(square(name + "_pool", i.in, i.size, i.pool, 1, 1, 0));
  }
  return layers;
}

/// For ImageNet.
std::vector<Layer> nin() {
  return {square("conv1", 3, 224, 96, 11, 4, 0),  square("cccp1", 96, 54, 96, 1, 1, 0, 2),
          square("conv2", 96, 27, 256, 5, 1, 2),  square("cccp3", 256, 27, 256, 1, 1, 0, 2),
          square("conv3", 256, 13, 384, 3, 1, 1), square("cccp5", 384, 13, 384, 1, 1, 0, 2),
          square("conv4", 384, 6, 1024, 3, 1, 1), square("cccp7", 1024, 6, 1024, 1, 1, 0),
          square("cccp8", 1024, 6, 1000, 1, 1, 0)};
}

std::vector<Layer> lenet() { return {square("conv1", 1, 28, 20, 5, 1, 0), square("conv2", 20, 12, 50, 5, 1, 0)}; }

/// Groups that cut blocks of 16 channels: of ResNeXt 32x4d, of ShuffleNet with 3 groups, and odd ones.
std::vector<Layer> grouped() {
  return {square("resnext2", 128, 56, 128, 3, 1, 1, 1, 32),       square("resnext3", 256, 28, 256, 3, 1, 1, 1, 32),
          square("resnext3_first", 256, 56, 256, 3, 2, 1, 1, 32), square("shuffle_down", 240, 28, 60, 1, 1, 0, 1, 3),
          square("shuffle_up", 60, 28, 240, 1, 1, 0, 1, 3),       square("sixteen_1x1", 128, 28, 128, 1, 1, 0, 1, 16),
          square("six_of_5", 30, 28, 30, 3, 1, 1, 1, 6),          square("four_of_20", 80, 28, 80, 3, 1, 1, 1, 4)};
}

struct KnownNetwork {
  const char* name;
  std::vector<Layer> (*layers)();
};
constexpr KnownNetwork knownNetworks[] = {{"resnet50", resnet50},
                                          {"vgg16", vgg16},
                                          {"alexnet", alexnet},
                                          {"googlenet", googlenet},
                                          {"nin", nin},
                                          {"lenet", lenet},
                                          {"grouped", grouped},
                                          {"mobilenetv1", mobilenetV1},
                                          {"mobilenetv2", mobilenetV2},
                                          {"efficientnet-b0", efficientnetB0},
                                          {"depthwise", depthwiseLayers},
                                          {"resnext50", resnext50},
                                          {"yolov3", yolov3},
                                          {"densenet121", densenet121},
                                          {"unet", unet},
                                          {"squeezenet", squeezenet},
                                          {"convnext-tiny", convnextTiny},
                                          {"deepspeech", deepspeech},
                                          {"mobilenetv3", mobilenetV3},
                                          {"shufflenetv2", shufflenetV2},
                                          {"inceptionv3", inceptionV3},
                                          {"wav2vec2", wav2vec2}};

/// A whole word that is a number of at least `least`.
int parseNumber(std::string_view word, int least) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size() || number < least) {
    throw std::invalid_argument(fmt::format("\"{}\" is no number from {}", word, least));
  }
  return number;
}

BothWays parseBothWays(std::string_view word, int least) {
  const std::size_t cross = std::min(word.find('x'), word.size());
  const int height = parseNumber(word.substr(0, cross), least);
  return {height, cross == word.size() ? height : parseNumber(word.substr(cross + 1), least)};
}

Layer parseLayer(const std::string& line) {
  std::istringstream stream(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  if (words.size() < 8 || words.size() > 10) throw std::invalid_argument(fmt::format("{} words", words.size()));
  Layer layer{};
  layer.name = words[0];
  layer.inChannels = parseNumber(words[1], 1);
  layer.height = parseNumber(words[2], 1);
  layer.width = parseNumber(words[3], 1);
  layer.outChannels = parseNumber(words[4], 1);
  layer.kernel = parseBothWays(words[5], 1);
  layer.stride = parseBothWays(words[6], 1);
  layer.pad = parseBothWays(words[7], 0);
  layer.groups = words.size() > 8 ? parseNumber(words[8], 1) : 1;
  if (words.size() > 9) layer.dilation = parseBothWays(words[9], 1);
  layer.count = 1;
  return layer;
}

}  // namespace

double Layer::operations() const {
  return 2.0 * outChannels * inChannels / groups * kernel.height * kernel.width * outHeight() * outWidth();
}

std::string textOf(const BothWays& ways) {
  return ways.height == ways.width ? fmt::format("{}", ways.height) : fmt::format("{}x{}", ways.height, ways.width);
}

taccConvDesc_t Layer::describe(taccConvPass_t pass, int images, int threads, bool winograd) const {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  desc.pass = pass;
  desc.batch = images;
  desc.inChannels = inChannels;
  desc.height = height;
  desc.width = width;
  desc.outChannels = outChannels;
  desc.kernelHeight = kernel.height;
  desc.kernelWidth = kernel.width;
  desc.strideHeight = stride.height;
  desc.strideWidth = stride.width;
  desc.padHeight = pad.height;
  desc.padWidth = pad.width;
  desc.dilationHeight = dilation.height;
  desc.dilationWidth = dilation.width;
  desc.groups = groups;
  desc.maxWorkers = threads;
  desc.winograd = winograd && pass != taccConvBackwardWeights;
  const bool isFirst = inChannels <= 4 && groups == 1 && pass != taccConvBackwardData;
  desc.inputLayout = isFirst ? taccLayoutNchw : taccLayoutNchw16c;
  return desc;
}

std::string networkNames() {
  std::string names;
  for (const KnownNetwork& network : knownNetworks)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", network.name);
  return names;
}

Network findNetwork(const std::string& name) {
  for (const KnownNetwork& network : knownNetworks) {
    if (network.name == name) return {name, network.layers()};
  }
  std::ifstream file(name);
  if (!file) throw std::invalid_argument(fmt::format("\"{}\" is neither a file nor one of {}", name, networkNames()));
  Network network{name, {}};
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      network.layers.push_back(parseLayer(line));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(
          fmt::format("{}:{}: {}; a line is: name inChannels height width outChannels kernel stride pad [groups "
                      "[dilation]], where kernel, stride, pad and dilation may be HEIGHTxWIDTH",
                      name, number, error.what()));
    }
  }
  if (network.layers.empty()) throw std::invalid_argument(fmt::format("{} has no layers", name));
  return network;
}

}  // namespace tacc::tools
