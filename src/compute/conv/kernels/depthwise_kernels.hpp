// The channel-wise kernels that a table of kernels takes; depthwise_table-inl.hpp makes them, in files of their own for
// each instruction set, as they take long to compile.
#pragma once

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// With kernels up to 7 wide. kPixel 0: pixels are as far apart as the call says.
template <int kWidth, int kStride, int kPixel = blockLength>
void depthwise(const DepthwiseCall& call);
template <int kWidth, int kDilation>
void depthwiseDilated(const DepthwiseCall& call);
template <int kWidth, int kShift, int kPixel = blockLength>
void depthwiseSpread(const DepthwiseCall& call);
template <int kWidth, int kStride, int kPixel = blockLength>
void depthwiseGradient(const DepthwiseGradientCall& call);

/// With any.
void depthwiseAny(const DepthwiseCall& call);

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
