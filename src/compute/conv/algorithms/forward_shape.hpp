// The gradient of the input, with a stride of 1, is a forward convolution of the output's gradient, with the channels
// in each other's place and the taps turned round.
#pragma once

#include <utility>

#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// The shape of the forward convolution that computes what a description of a pass to a tensor of pixels does; strides
/// are left as they are.
inline Shape forwardShape(const Description& d) {
  Shape c = d.shape;
  if (d.pass != taccConvBackwardData) return c;
  std::swap(c.inChannels, c.outChannels);
  std::swap(c.height, c.outHeight);
  std::swap(c.width, c.outWidth);
  c.padHeight = (c.kernelHeight - 1) * c.dilationHeight - c.padHeight;
  c.padWidth = (c.kernelWidth - 1) * c.dilationWidth - c.padWidth;
  return c;
}

}  // namespace tacc::conv
