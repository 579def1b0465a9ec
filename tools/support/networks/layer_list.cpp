#include "support/networks/layer_list.hpp"

#include <algorithm>

namespace tacc::tools {
namespace {

bool isSame(const Layer& a, const Layer& b) {
  return a.inChannels == b.inChannels && a.height == b.height && a.width == b.width && a.outChannels == b.outChannels &&
         a.kernel == b.kernel && a.stride == b.stride && a.pad == b.pad && a.groups == b.groups &&
         a.dilation == b.dilation;
}

}  // namespace

void add(std::vector<Layer>& layers, const Layer& layer) {
  const auto known = std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return isSame(l, layer); });
  if (known != layers.end()) {
    known->count += layer.count;
  } else {
    layers.push_back(layer);
  }
}

Layer padded(std::string name, int inChannels, int size, int outChannels, int kernel, int stride, int groups) {
  return {std::move(name), inChannels, size, size, outChannels, kernel, stride, (kernel - 1) / 2, groups, 1};
}

Layer channelWise(std::string name, int channels, int size, int kernel, int stride) {
  return padded(std::move(name), channels, size, channels, kernel, stride, channels);
}

}  // namespace tacc::tools
