// Layers drawn at random: a distribution in the place of a list, for which nothing can be tuned.
#pragma once

#include <cstdint>
#include <vector>

#include "support/networks/layers.hpp"

namespace tacc::bench {

/// `count` layers, the same for the same seed: channels from 1 to 2,048, images of 1 to 512 lines and columns, kernels
/// of 1 to 11, strides of 1 to 4, pads up to half a kernel, dilations up to 3, groups down to one channel each, 1 to 16
/// images. Sizes are drawn by their logarithm, every second one as networks have them: multiples of 8. None has more
/// than some 4 Gflop or 256 MiB in a tensor, so that a layer takes a fraction of a second.
std::vector<tools::Layer> drawLayers(int count, std::uint64_t seed);

}  // namespace tacc::bench
