// Lists of layers, as networks are written down, and the networks that layers.cpp does not hold itself.
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

// deep_networks.cpp: many 3x3 and 1x1 layers, grouped and large ones.

/// 32 groups of 4 channels (32x4d), strides in the 3x3 layers.
std::vector<Layer> resnext50();
/// For images of 416 x 416, with Darknet-53.
std::vector<Layer> yolov3();
std::vector<Layer> densenet121();
/// Padded, for one channel of 256 x 256. Without its transposed convolutions.
std::vector<Layer> unet();
/// Version 1.1.
std::vector<Layer> squeezenet();
std::vector<Layer> convnextTiny();
/// The two layers over spectrograms, as DeepBench has them: kernels of 5 x 20 and 5 x 10.
std::vector<Layer> deepspeech();

// long_kernels.cpp: kernels that are long in one direction.

/// For images of 299 x 299: most 7x7 and 3x3 kernels as one of 1x7 behind one of 7x1.
std::vector<Layer> inceptionV3();
/// The base model on a second of sound, 16,000 samples in one line: seven layers of kernel 10, 3 and 2 with strides,
/// and the one of kernel 128 in 16 groups that stands for the position.
std::vector<Layer> wav2vec2();

// mobile_networks.cpp: convolutions are split into channel-wise ones and products.

/// MobileNet v1 and v2 of width 1 and EfficientNet-B0, for images of 224 x 224; of the last one also the layers of one
/// pixel that weigh the channels ("squeeze", "excite").
std::vector<Layer> mobilenetV1();
std::vector<Layer> mobilenetV2();
std::vector<Layer> efficientnetB0();
/// MobileNet v3 (large) and ShuffleNet v2 of width 1, most of whose numbers of channels are no multiples of 16.
std::vector<Layer> mobilenetV3();
std::vector<Layer> shufflenetV2();

/// The distinct channel-wise layers of these, ConvNeXt-T's, and some of 7x7 with a stride.
std::vector<Layer> depthwiseLayers();

}  // namespace tacc::tools
