// Networks of many 3x3 and 1x1 layers, of grouped and of large ones: what is trained and served beside ResNet-50.
#pragma once

#include <vector>

#include "support/networks/layers.hpp"

namespace tacc::tools {

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

}  // namespace tacc::tools
