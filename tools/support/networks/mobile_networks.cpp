#include <fmt/format.h>

#include "support/networks/layer_list.hpp"

namespace tacc::tools {
namespace {

/// Inverted residuals that follow each other: the first has the stride.
struct Stage {
  int expansion, kernel, outs, count, stride;
};

/// After a first layer of 32 channels of 112 x 112. `squeezes`: channels are weighed by a quarter as many as a block
/// takes in.
std::vector<Layer> invertedResiduals(std::initializer_list<Stage> stages, bool squeezes) {
  std::vector<Layer> layers = {padded("conv1", 3, 224, 32, 3, 2)};
  int ins = 32, size = 112, number = 0;
  for (const Stage& stage : stages) {
    for (int i = 0; i < stage.count; ++i, ++number) {
      const int stride = i == 0 ? stage.stride : 1;
      const int inside = ins * stage.expansion;
      const auto name = [&](const char* part) { return fmt::format("{}_{}", number, part); };
      if (stage.expansion > 1) add(layers, padded(name("expand"), ins, size, inside, 1, 1));
      add(layers, channelWise(name("dw"), inside, size, stage.kernel, stride));
      size /= stride;
      if (squeezes) {
        add(layers, padded(name("squeeze"), inside, 1, ins / 4, 1, 1));
        add(layers, padded(name("excite"), ins / 4, 1, inside, 1, 1));
      }
      add(layers, padded(name("project"), inside, size, stage.outs, 1, 1));
      ins = stage.outs;
    }
  }
  add(layers, padded("last", ins, size, 1280, 1, 1));
  return layers;
}

}  // namespace

std::vector<Layer> mobilenetV1() {
  std::vector<Layer> layers = {padded("conv1", 3, 224, 32, 3, 2)};
  struct Pair {
    int ins, size, stride, outs;
  };
  constexpr Pair pairs[] = {{32, 112, 1, 64},  {64, 112, 2, 128}, {128, 56, 1, 128}, {128, 56, 2, 256},
                            {256, 28, 1, 256}, {256, 28, 2, 512}, {512, 14, 1, 512}, {512, 14, 1, 512},
                            {512, 14, 1, 512}, {512, 14, 1, 512}, {512, 14, 1, 512}, {512, 14, 2, 1024},
                            {1024, 7, 1, 1024}};
  int number = 0;
  for (const Pair& p : pairs) {
    add(layers, channelWise(fmt::format("{}_dw", ++number), p.ins, p.size, 3, p.stride));
    add(layers, padded(fmt::format("{}_1x1", number), p.ins, p.size / p.stride, p.outs, 1, 1));
  }
  return layers;
}

std::vector<Layer> mobilenetV2() {
  return invertedResiduals({{1, 3, 16, 1, 1},
                            {6, 3, 24, 2, 2},
                            {6, 3, 32, 3, 2},
                            {6, 3, 64, 4, 2},
                            {6, 3, 96, 3, 1},
                            {6, 3, 160, 3, 2},
                            {6, 3, 320, 1, 1}},
                           false);
}

std::vector<Layer> efficientnetB0() {
  return invertedResiduals({{1, 3, 16, 1, 1},
                            {6, 3, 24, 2, 2},
                            {6, 5, 40, 2, 2},
                            {6, 3, 80, 3, 2},
                            {6, 5, 112, 3, 1},
                            {6, 5, 192, 4, 2},
                            {6, 3, 320, 1, 1}},
                           true);
}

std::vector<Layer> mobilenetV3() {
  struct Block {
    int kernel, inside, outs, stride, squeezed;
  };
  constexpr Block blocks[] = {{3, 16, 16, 1, 0},     {3, 64, 24, 2, 0},     {3, 72, 24, 1, 0},
                              {5, 72, 40, 2, 24},    {5, 120, 40, 1, 32},   {5, 120, 40, 1, 32},
                              {3, 240, 80, 2, 0},    {3, 200, 80, 1, 0},    {3, 184, 80, 1, 0},
                              {3, 184, 80, 1, 0},    {3, 480, 112, 1, 120}, {3, 672, 112, 1, 168},
                              {5, 672, 160, 2, 168}, {5, 960, 160, 1, 240}, {5, 960, 160, 1, 240}};
  std::vector<Layer> layers = {padded("conv1", 3, 224, 16, 3, 2)};
  int ins = 16, size = 112, number = 0;
  for (const Block& b : blocks) {
    const auto name = [&](const char* part) { return fmt::format("{}_{}", number, part); };
    if (b.inside != ins) add(layers, padded(name("expand"), ins, size, b.inside, 1, 1));
    add(layers, channelWise(name("dw"), b.inside, size, b.kernel, b.stride));
    size /= b.stride;
    if (b.squeezed > 0) {
      add(layers, padded(name("squeeze"), b.inside, 1, b.squeezed, 1, 1));
      add(layers, padded(name("excite"), b.squeezed, 1, b.inside, 1, 1));
    }
    add(layers, padded(name("project"), b.inside, size, b.outs, 1, 1));
    ins = b.outs;
    ++number;
  }
  add(layers, padded("last", ins, size, 960, 1, 1));
  add(layers, padded("pooled", 960, 1, 1280, 1, 1));
  return layers;
}

std::vector<Layer> shufflenetV2() {
  std::vector<Layer> layers = {padded("conv1", 3, 224, 24, 3, 2)};
  int ins = 24, size = 56;
  for (const auto& [outs, units] : {std::pair(116, 4), {232, 8}, {464, 4}}) {
    const int half = outs / 2;
    const auto name = [&](const char* part) { return fmt::format("{}_{}", outs, part); };
    add(layers, channelWise(name("skip_dw"), ins, size, 3, 2));
    add(layers, padded(name("skip_1x1"), ins, size / 2, half, 1, 1));
    add(layers, padded(name("first_1x1"), ins, size, half, 1, 1));
    add(layers, channelWise(name("first_dw"), half, size, 3, 2));
    size /= 2;
    for (int unit = 0; unit < units; ++unit) {
      // Of the first unit one 1x1 and the channel-wise layer are those with the stride.
      add(layers, padded(name("1x1"), half, size, half, 1, 1));
      if (unit == 0) continue;
      add(layers, channelWise(name("dw"), half, size, 3, 1));
      add(layers, padded(name("1x1"), half, size, half, 1, 1));
    }
    ins = outs;
  }
  add(layers, padded("last", ins, size, 1024, 1, 1));
  return layers;
}

std::vector<Layer> depthwiseLayers() {
  std::vector<Layer> layers;
  const auto addNamed = [&](Layer layer) {
    layer.name =
        fmt::format("{}x{} k{} s{}", layer.inChannels, layer.height, textOf(layer.kernel), textOf(layer.stride));
    add(layers, layer);
  };
  for (const auto& network : {mobilenetV1(), mobilenetV2(), efficientnetB0()}) {
    for (const Layer& layer : network) {
      if (layer.groups > 1) addNamed(layer);
    }
  }
  int channels = 96;
  for (const int size : {56, 28, 14, 7}) {
    addNamed(channelWise({}, channels, size, 7, 1));
    if (size > 7) addNamed(channelWise({}, channels, size, 7, 2));
    channels *= 2;
  }
  return layers;
}

}  // namespace tacc::tools
