// A convolution's sums by their definition, in double.
#pragma once

#include <vector>

#include "compute/conv/shape.hpp"
#include "tacc/compute.h"

namespace tacc::conv::test {

/// What a convolution is made of, as images in NCHW and weights in KCRS. The result of `pass` is added to its tensor.
struct PlainTensors {
  std::vector<double> input, weights, output;
};
void addByDefinition(const Shape& shape, taccConvPass_t pass, PlainTensors& tensors);

}  // namespace tacc::conv::test
