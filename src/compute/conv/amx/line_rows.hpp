// Rows that are lines of a kernel: of few channels in NHWC, what a line of the kernel sees of an output pixel is beside
// each other in memory.
#pragma once

#include <vector>

#include "compute/conv/amx/bf16x3.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// A run of all rows of a line of outputs, whose sources begin with their pixels: those that begin before the line of
/// the image or end behind it become runs of their own, which say which numbers there are.
std::vector<Bf16x3Run> cutAtBorders(const Shape& shape, const Bf16x3Run& run);

struct LineBlock {
  int kernelLine, inBlock, outBlock;
};
/// The weights of 16 numbers of a line of the kernel and 16 output channels, in rows of output channels, which are
/// zeros before.
void gatherLine(const Shape& shape, taccWeightLayout_t layout, const float* weights, const LineBlock& block,
                float* rows);

}  // namespace tacc::conv
