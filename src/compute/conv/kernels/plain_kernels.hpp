// The kernels of 1x1 convolutions in NCHW (plain_product.cpp, plain_gradient.cpp), one table for each instruction set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

struct KernelSet;

inline constexpr int plainBlock = 16;      // pixels
inline constexpr int mostPlainBlocks = 3;  // of a tile
inline constexpr int mostPlainRows = 14;   // channels of the result of a tile
inline constexpr int mostPlainOuts = 6, mostPlainIns = 6;

/// For every row k and pixel x, of as many as the kernel has:
///   output[k][x] = epilogue(bias[k] + addend[k][x] + sum over values v of weights[v][k] * input[v][x]).
/// Strides are in floats.
struct PlainProductCall {
  const float* input;
  std::ptrdiff_t inputLine;  // from value to value
  int values;
  const float* weights;  // of all rows of a value, one value after the other
  const float* bias;     // or null
  const float* addend;   // laid out as the output and may be it; or null
  float* output;
  std::ptrdiff_t outputLine;  // from row to row
  taccActivation_t activation;
  bool isNonTemporal;        // the output, in whole vectors that are aligned, is stored so: the caller ends that
  std::ptrdiff_t nearAhead;  // what lies this far behind a value's pixels is brought into the L1 cache
  std::ptrdiff_t farAhead;   // and this into the L2 cache; 0: nothing
};

/// For every output channel k and input channel c of a tile, whose lines of pixels are side by side in memory:
///   output[k][c] += sum over pixels x of gradient[k][x] * input[c][x].
struct PlainGradientCall {
  const float* gradient;
  std::ptrdiff_t gradientLine;  // from channel to channel, in floats
  const float* input;
  std::ptrdiff_t inputLine;
  int pixels;
  float* output;
  std::ptrdiff_t outputLine;  // from k to k
};

struct PlainKernels {
  int rows[mostPlainBlocks + 1];  // most of them, for a number of blocks; 0: there are no kernels
  void (*product[mostPlainBlocks + 1][mostPlainRows + 1])(const PlainProductCall&);  // [blocks][rows]
  int outs, ins;                                                                     // of a gradient's tile, at most
  void (*gradient[mostPlainOuts + 1][mostPlainIns + 1])(const PlainGradientCall&);   // [outs][ins]
};

/// Those of the same instruction set.
const PlainKernels& plainKernels(const KernelSet& kernels);

/// NAMEPlainKernels() of plain_NAME.cpp.
#define TACC_DECLARE(set, isThere) const PlainKernels& set##PlainKernels();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
