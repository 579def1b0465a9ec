// All channel-wise kernels of one instruction set. The including file defines what one of table-inl.hpp does, but for
// the sizes of tiles.
#include "compute/conv/kernels/depthwise-inl.hpp"
#include "compute/conv/kernels/depthwise_any-inl.hpp"
#include "compute/conv/kernels/depthwise_gradient-inl.hpp"

#define TACC_DEPTHWISE(width)                                              \
  template void depthwise<width, 1>(const DepthwiseCall&);                 \
  template void depthwise<width, 2>(const DepthwiseCall&);                 \
  template void depthwise<width, 3>(const DepthwiseCall&);                 \
  template void depthwise<width, 4>(const DepthwiseCall&);                 \
  template void depthwiseGradient<width, 1>(const DepthwiseGradientCall&); \
  template void depthwiseGradient<width, 2>(const DepthwiseGradientCall&); \
  template void depthwiseGradient<width, 3>(const DepthwiseGradientCall&); \
  template void depthwiseGradient<width, 4>(const DepthwiseGradientCall&)

#define TACC_DEPTHWISE_DILATED(width)                             \
  template void depthwiseDilated<width, 2>(const DepthwiseCall&); \
  template void depthwiseDilated<width, 3>(const DepthwiseCall&)

#define TACC_DEPTHWISE_SPREAD(width)                             \
  template void depthwiseSpread<width, 0>(const DepthwiseCall&); \
  template void depthwiseSpread<width, 1>(const DepthwiseCall&)

#define TACC_DEPTHWISE_APART(width)                                           \
  template void depthwise<width, 1, 0>(const DepthwiseCall&);                 \
  template void depthwise<width, 2, 0>(const DepthwiseCall&);                 \
  template void depthwiseSpread<width, 0, 0>(const DepthwiseCall&);           \
  template void depthwiseSpread<width, 1, 0>(const DepthwiseCall&);           \
  template void depthwiseGradient<width, 1, 0>(const DepthwiseGradientCall&); \
  template void depthwiseGradient<width, 2, 0>(const DepthwiseGradientCall&)

namespace tacc::conv::TACC_CONV_ISA {

TACC_DEPTHWISE(2);
TACC_DEPTHWISE(3);
TACC_DEPTHWISE(4);
TACC_DEPTHWISE(5);
TACC_DEPTHWISE(7);
TACC_DEPTHWISE_DILATED(3);
TACC_DEPTHWISE_DILATED(5);
TACC_DEPTHWISE_DILATED(7);
TACC_DEPTHWISE_SPREAD(3);
TACC_DEPTHWISE_SPREAD(5);
TACC_DEPTHWISE_SPREAD(7);
TACC_DEPTHWISE_APART(3);
TACC_DEPTHWISE_APART(5);
TACC_DEPTHWISE_APART(7);

}  // namespace tacc::conv::TACC_CONV_ISA
