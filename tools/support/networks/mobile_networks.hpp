// Networks whose convolutions are split into channel-wise ones and products.
#pragma once

#include <vector>

#include "support/networks/layers.hpp"

namespace tacc::tools {

/// MobileNet v1 and v2 of width 1 and EfficientNet-B0, for images of 224 x 224; of the last one also the layers of one
/// pixel that weigh the channels ("squeeze", "excite").
std::vector<Layer> mobilenetV1();
std::vector<Layer> mobilenetV2();
std::vector<Layer> efficientnetB0();

/// The distinct channel-wise layers of these, ConvNeXt-T's, and some of 7x7 with a stride.
std::vector<Layer> depthwiseLayers();

}  // namespace tacc::tools
