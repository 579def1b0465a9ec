// The convolution layers of known networks, of files, and drawn ones.
#pragma once

#include <string>
#include <vector>

#include "tacc/compute.h"

namespace tacc::tools {

/// One number for both directions of an image, or one for each.
struct BothWays {
  BothWays() = default;
  BothWays(int both) : height(both), width(both) {}
  BothWays(int theHeight, int theWidth) : height(theHeight), width(theWidth) {}
  bool operator==(const BothWays&) const = default;
  bool isAll(int value) const { return height == value && width == value; }

  int height = 0, width = 0;
};

/// "3", or "1x7" where height and width differ.
std::string textOf(const BothWays& ways);

/// One distinct layer. `count`: how often the network has it.
struct Layer {
  std::string name;
  int inChannels, height, width;
  int outChannels;
  BothWays kernel, stride, pad;
  int groups;
  int count;
  BothWays dilation = 1;
  int batch = 0;  // images; 0: as many as are asked for

  int outHeight() const {
    return (height + 2 * pad.height - dilation.height * (kernel.height - 1) - 1) / stride.height + 1;
  }
  int outWidth() const { return (width + 2 * pad.width - dilation.width * (kernel.width - 1) - 1) / stride.width + 1; }
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
/// where kernel, stride, pad and dilation are one number, or HEIGHTxWIDTH, and # begins a comment. Throws
/// std::invalid_argument with the line that is wrong.
Network findNetwork(const std::string& name);

}  // namespace tacc::tools
