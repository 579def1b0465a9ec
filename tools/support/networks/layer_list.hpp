// Lists of layers, as networks are written down.
#pragma once

#include <string>
#include <vector>

#include "support/networks/layers.hpp"

namespace tacc::tools {

/// Counts a layer that is there already, under whatever name; else it goes to the end.
void add(std::vector<Layer>& layers, const Layer& layer);
/// A square layer, padded so that only the stride makes the image smaller.
Layer padded(std::string name, int inChannels, int size, int outChannels, int kernel, int stride, int groups = 1);
/// One with a group for each channel.
Layer channelWise(std::string name, int channels, int size, int kernel, int stride);

}  // namespace tacc::tools
