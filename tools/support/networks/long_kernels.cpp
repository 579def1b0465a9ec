#include <fmt/format.h>

#include "support/networks/layer_list.hpp"

namespace tacc::tools {
namespace {

/// Padded, so that the image keeps its size.
Layer longKernel(std::string name, int inChannels, int size, int outChannels, BothWays kernel) {
  return {std::move(name), inChannels, size, size, outChannels, kernel, 1, {kernel.height / 2, kernel.width / 2}, 1, 1};
}

/// Not padded: the image gets smaller.
Layer shrinking(std::string name, int inChannels, int size, int outChannels, int kernel, int stride) {
  return {std::move(name), inChannels, size, size, outChannels, kernel, stride, 0, 1, 1};
}

/// Branches of images of 35 x 35.
void addSquareBranches(std::vector<Layer>& layers, int ins, int pooled) {
  const std::string name = fmt::format("35_{}", ins);
  add(layers, padded(name + "_1x1", ins, 35, 64, 1, 1));
  add(layers, padded(name + "_reduce", ins, 35, 48, 1, 1));
  add(layers, padded(name + "_5x5", 48, 35, 64, 5, 1));
  add(layers, padded(name + "_1x1", ins, 35, 64, 1, 1));
  add(layers, padded(name + "_3x3a", 64, 35, 96, 3, 1));
  add(layers, padded(name + "_3x3b", 96, 35, 96, 3, 1));
  add(layers, padded(name + "_pool", ins, 35, pooled, 1, 1));
}

/// Branches of images of 17 x 17, with `inside` channels between the long kernels.
void addLongBranches(std::vector<Layer>& layers, int inside) {
  const auto step = [&](int ins, int outs, BothWays kernel) {
    add(layers, longKernel(fmt::format("17_{}_{}_{}", ins, outs, textOf(kernel)), ins, 17, outs, kernel));
  };
  const BothWays wide{1, 7}, high{7, 1};
  step(768, 192, 1);
  step(768, inside, 1);
  step(inside, inside, wide);
  step(inside, 192, high);
  step(768, inside, 1);
  for (const BothWays& kernel : {high, wide, high}) step(inside, inside, kernel);
  step(inside, 192, wide);
  step(768, 192, 1);
}

/// Branches of images of 8 x 8.
void addForkedBranches(std::vector<Layer>& layers, int ins) {
  const auto step = [&](int in, int outs, BothWays kernel) {
    add(layers, longKernel(fmt::format("8_{}_{}_{}", in, outs, textOf(kernel)), in, 8, outs, kernel));
  };
  step(ins, 320, 1);
  step(ins, 384, 1);
  step(ins, 448, 1);
  step(448, 384, 3);
  for (int fork = 0; fork < 2; ++fork) {
    step(384, 384, {1, 3});
    step(384, 384, {3, 1});
  }
  step(ins, 192, 1);
}

}  // namespace

std::vector<Layer> inceptionV3() {
  std::vector<Layer> layers = {shrinking("conv1", 3, 299, 32, 3, 2), shrinking("conv2", 32, 149, 32, 3, 1),
                               padded("conv3", 32, 147, 64, 3, 1), padded("conv4", 64, 73, 80, 1, 1),
                               shrinking("conv5", 80, 73, 192, 3, 1)};
  addSquareBranches(layers, 192, 32);
  addSquareBranches(layers, 256, 64);
  addSquareBranches(layers, 288, 64);
  add(layers, shrinking("17_down", 288, 35, 384, 3, 2));
  add(layers, padded("35_288_1x1", 288, 35, 64, 1, 1));
  add(layers, padded("35_3x3a", 64, 35, 96, 3, 1));
  add(layers, shrinking("17_down96", 96, 35, 96, 3, 2));
  for (const int inside : {128, 160, 160, 192}) addLongBranches(layers, inside);
  for (const int branch : {0, 1}) {
    add(layers, padded("17_768_192_1", 768, 17, 192, 1, 1));
    if (branch == 0) add(layers, shrinking("8_down320", 192, 17, 320, 3, 2));
  }
  add(layers, longKernel("17_192_192_1x7", 192, 17, 192, {1, 7}));
  add(layers, longKernel("17_192_192_7x1", 192, 17, 192, {7, 1}));
  add(layers, shrinking("8_down192", 192, 17, 192, 3, 2));
  addForkedBranches(layers, 1280);
  addForkedBranches(layers, 2048);
  return layers;
}

std::vector<Layer> wav2vec2() {
  std::vector<Layer> layers;
  int ins = 1, length = 16000;
  const auto step = [&](int kernel, int stride) {
    const Layer layer{fmt::format("conv{}", layers.size()), ins, 1, length, 512, {1, kernel}, {1, stride}, 0, 1, 1};
    layers.push_back(layer);
    ins = layer.outChannels;
    length = layer.outWidth();
  };
  step(10, 5);
  for (int i = 0; i < 4; ++i) step(3, 2);
  for (int i = 0; i < 2; ++i) step(2, 2);
  layers.push_back({"position", 768, 1, length, 768, {1, 128}, 1, {0, 64}, 16, 1});
  return layers;
}

}  // namespace tacc::tools
