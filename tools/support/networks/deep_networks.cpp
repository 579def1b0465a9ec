#include <fmt/format.h>

#include "support/networks/layer_list.hpp"

namespace tacc::tools {

std::vector<Layer> resnext50() {
  std::vector<Layer> layers = {padded("conv1", 3, 224, 64, 7, 2)};
  int ins = 64, size = 56, inside = 128;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      const int stride = i == 0 && inside > 128 ? 2 : 1;
      const auto name = [&](const char* part) { return fmt::format("{}_{}", inside, part); };
      if (i == 0) add(layers, padded(name("skip"), ins, size, 2 * inside, 1, stride));
      add(layers, padded(name("down"), ins, size, inside, 1, 1));
      add(layers, padded(name("3x3"), inside, size, inside, 3, stride, 32));
      size /= stride;
      add(layers, padded(name("up"), inside, size, 2 * inside, 1, 1));
      ins = 2 * inside;
    }
    inside *= 2;
  }
  return layers;
}

std::vector<Layer> yolov3() {
  std::vector<Layer> layers = {padded("conv1", 3, 416, 32, 3, 1)};
  int channels = 32, size = 416;
  for (const int residuals : {1, 2, 8, 8, 4}) {
    add(layers, padded(fmt::format("{}_half", size), channels, size, 2 * channels, 3, 2));
    channels *= 2;
    size /= 2;
    for (int i = 0; i < residuals; ++i) {
      add(layers, padded(fmt::format("{}_1x1", size), channels, size, channels / 2, 1, 1));
      add(layers, padded(fmt::format("{}_3x3", size), channels / 2, size, channels, 3, 1));
    }
  }
  // Three heads: five layers that narrow and widen, two that predict. The first sees the trunk, each other one the
  // head before, enlarged, beside the trunk's image of that size.
  int ins = channels;
  for (const int inside : {512, 256, 128}) {
    for (int i = 0; i < 3; ++i) {
      add(layers, padded(fmt::format("head{}_1x1", size), i == 0 ? ins : 2 * inside, size, inside, 1, 1));
      add(layers, padded(fmt::format("head{}_3x3", size), inside, size, 2 * inside, 3, 1));
    }
    add(layers, padded(fmt::format("head{}_predict", size), 2 * inside, size, 255, 1, 1));
    if (inside == 128) break;
    add(layers, padded(fmt::format("head{}_route", size), inside, size, inside / 2, 1, 1));
    size *= 2;
    ins = inside / 2 + inside;
  }
  return layers;
}

std::vector<Layer> densenet121() {
  constexpr int growth = 32;
  std::vector<Layer> layers = {padded("conv1", 3, 224, 64, 7, 2)};
  int channels = 64, size = 56;
  for (const int count : {6, 12, 24, 16}) {
    for (int i = 0; i < count; ++i, channels += growth) {
      add(layers, padded(fmt::format("{}_1x1_{}", size, channels), channels, size, 4 * growth, 1, 1));
      add(layers, padded(fmt::format("{}_3x3", size), 4 * growth, size, growth, 3, 1));
    }
    if (size == 7) break;
    add(layers, padded(fmt::format("{}_half", size), channels, size, channels / 2, 1, 1));
    channels /= 2;
    size /= 2;
  }
  return layers;
}

std::vector<Layer> unet() {
  std::vector<Layer> layers;
  int ins = 1, size = 256;
  for (int outs = 64; outs <= 1024; outs *= 2, size /= 2) {
    add(layers, padded(fmt::format("down{}_1", size), ins, size, outs, 3, 1));
    add(layers, padded(fmt::format("down{}_2", size), outs, size, outs, 3, 1));
    ins = outs;
  }
  size = 32;
  for (int outs = 512; outs >= 64; outs /= 2, size *= 2) {
    add(layers, padded(fmt::format("up{}_1", size), 2 * outs, size, outs, 3, 1));
    add(layers, padded(fmt::format("up{}_2", size), outs, size, outs, 3, 1));
  }
  add(layers, padded("last", 64, 256, 2, 1, 1));
  return layers;
}

std::vector<Layer> squeezenet() {
  std::vector<Layer> layers = {{"conv1", 3, 224, 224, 64, 3, 2, 0, 1, 1}};
  struct Fire {
    int size, ins, squeeze, expand;
  };
  constexpr Fire fires[] = {{55, 64, 16, 64},   {55, 128, 16, 64},  {27, 128, 32, 128}, {27, 256, 32, 128},
                            {13, 256, 48, 192}, {13, 384, 48, 192}, {13, 384, 64, 256}, {13, 512, 64, 256}};
  int number = 1;
  for (const Fire& f : fires) {
    const std::string name = fmt::format("fire{}", ++number);
    add(layers, padded(name + "_squeeze", f.ins, f.size, f.squeeze, 1, 1));
    add(layers, padded(name + "_1x1", f.squeeze, f.size, f.expand, 1, 1));
    add(layers, padded(name + "_3x3", f.squeeze, f.size, f.expand, 3, 1));
  }
  add(layers, padded("conv10", 512, 13, 1000, 1, 1));
  return layers;
}

std::vector<Layer> convnextTiny() {
  std::vector<Layer> layers = {{"stem", 3, 224, 224, 96, 4, 4, 0, 1, 1}};
  int channels = 96, size = 56;
  for (const int blocks : {3, 3, 9, 3}) {
    for (int i = 0; i < blocks; ++i) {
      add(layers, channelWise(fmt::format("{}_7x7", size), channels, size, 7, 1));
      add(layers, padded(fmt::format("{}_up", size), channels, size, 4 * channels, 1, 1));
      add(layers, padded(fmt::format("{}_down", size), 4 * channels, size, channels, 1, 1));
    }
    if (size == 7) break;
    add(layers, {fmt::format("{}_half", size), channels, size, size, 2 * channels, 2, 2, 0, 1, 1});
    channels *= 2;
    size /= 2;
  }
  return layers;
}

std::vector<Layer> deepspeech() {
  return {{"first", 1, 161, 700, 32, {5, 20}, 2, 0, 1, 1}, {"second", 32, 79, 341, 32, {5, 10}, 2, 0, 1, 1}};
}

}  // namespace tacc::tools
