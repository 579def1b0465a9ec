#include "compute/drawn_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "compute/draws.hpp"

namespace tacc::bench {
namespace {

constexpr double leastOperations = 1e5, mostOperations = 4e9;
constexpr double mostFloats = 1 << 26;  // of a tensor

/// What a layer is made of.
class LayerDraws : public Draws {
 public:
  using Draws::Draws;

  int kernel() {
    constexpr int usual[] = {1, 1, 1, 3, 3, 3, 3, 5, 5, 7};
    return isOnce(4) ? 1 + upTo(10) : usual[upTo(9)];
  }
  int divisor(int of) {
    std::vector<int> divisors;
    for (int d = 1; d <= of; ++d) {
      if (of % d == 0) divisors.push_back(d);
    }
    return divisors[static_cast<std::size_t>(upTo(static_cast<int>(divisors.size()) - 1))];
  }

  tools::Layer layer() {
    tools::Layer l{};
    l.count = 1;
    l.inChannels = size(2048);
    l.outChannels = size(2048);
    l.groups = 1;
    if (const int kind = upTo(9); kind < 2) {  // a group a channel
      l.outChannels = l.groups = l.inChannels;
    } else if (kind == 2) {
      l.outChannels = std::max(l.outChannels / l.inChannels, 1) * l.inChannels;
      l.groups = divisor(l.inChannels);
    }
    l.height = size(512);
    l.width = isOnce(5) ? size(512) : l.height;
    l.kernel = kernel();
    if (isOnce(10)) l.kernel.width = kernel();
    l.stride = isOnce(4) ? 2 + upTo(2) : 1;
    l.pad = isOnce(4) ? upTo(l.kernel.height / 2) : l.kernel.height / 2;
    l.dilation = l.kernel.height > 1 && isOnce(10) ? 2 + upTo(1) : 1;
    l.batch = isOnce(2) ? 1 : 1 << upTo(4);
    return l;
  }
};

bool isPossible(const tools::Layer& l) {
  if (l.outChannels > 2048 || l.height + 2 * l.pad.height < l.dilation.height * (l.kernel.height - 1) + 1 ||
      l.width + 2 * l.pad.width < l.dilation.width * (l.kernel.width - 1) + 1)
    return false;
  const double operations = l.operations() * l.batch;
  const auto floats = [&](int channels, int height, int width) { return 1.0 * l.batch * channels * height * width; };
  return operations >= leastOperations && operations <= mostOperations &&
         floats(l.inChannels, l.height, l.width) <= mostFloats &&
         floats(l.outChannels, l.outHeight(), l.outWidth()) <= mostFloats;
}

}  // namespace

std::vector<tools::Layer> drawLayers(int count, std::uint64_t seed) {
  LayerDraws draws(seed);
  std::vector<tools::Layer> layers;
  while (static_cast<int>(layers.size()) < count) {
    tools::Layer layer = draws.layer();
    if (!isPossible(layer)) continue;
    layer.name = fmt::format("drawn{}", layers.size());
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace tacc::bench
