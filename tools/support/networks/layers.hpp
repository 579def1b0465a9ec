// The convolution layers of known networks, of files, and drawn ones.
#pragma once

#include <string>
#include <vector>

#include "tacc/compute.h"

namespace tacc::tools {

/// One distinct layer. `count`: how often the network has it.
struct Layer {
  std::string name;
  int inChannels, height, width;
  int outChannels, kernel, stride, pad, groups;
  int count;
  int dilation = 1;
  int wideKernel = 0;  // width of a kernel that is not square; 0: `kernel`
  int batch = 0;       // images; 0: as many as are asked for

  int kernelWidth() const { return wideKernel == 0 ? kernel : wideKernel; }
  int outHeight() const { return (height + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; }
  int outWidth() const { return (width + 2 * pad - dilation * (kernelWidth() - 1) - 1) / stride + 1; }
  /// Floating-point operations of one image, the same for every pass.
  double operations() const;
  /// As tacc takes it: an image of few channels, all in one group, as it is, anything else in blocks.
  taccConvDesc_t describe(taccConvPass_t pass, int images, int threads, bool winograd) const;
};

struct Network {
  std::string name;
  std::vector<Layer> layers;
};

/// "resnet50, vgg16, ...".
std::string networkNames();

/// A known network, or the layers in the file of that name: a line each of
///   name inChannels height width outChannels kernel stride pad [groups [dilation]]
/// where # begins a comment. Throws std::invalid_argument with the line that is wrong.
Network findNetwork(const std::string& name);

}  // namespace tacc::tools
