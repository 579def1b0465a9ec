// The kernels of convolutions whose results are sums of few values (short_sums.cpp), one table for each instruction
// set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

struct KernelSet;

inline constexpr int mostSumVectors = 4;  // of channels of a tile
inline constexpr int mostSumPixels = 14;  // of a tile

/// Strips of pixels that follow each other, and of each tiles one behind the other along the channels of the result:
/// for every pixel p and lane of a tile
///   output[p] = epilogue(bias + addend[p] + sum over lines and values of weights[line][value] *
///   input[line][p][value]).
/// Strides are in floats. Vectors need only the alignment of float.
struct ShortSumsCall {
  const float* input;         // the first value of pixel 0; those of a line follow each other
  std::ptrdiff_t inputPixel;  // from pixel to pixel
  std::ptrdiff_t inputLine;   // from line to line
  int lines, values;          // and values of a line
  const float* weights;       // of a tile row after row, each of as many vectors as the kernel has
  std::ptrdiff_t weightsTile;
  const float* bias;    // or null
  const float* addend;  // laid out as the output and may be it; or null
  float* output;
  std::ptrdiff_t outputPixel;
  int strips, tiles;           // and tiles of each; `input`, `addend` and `output` are those of the first strip
  int lastLanes;               // of the last vector of each tile, behind which another pixel begins; 0: all
  std::ptrdiff_t outputAhead;  // what lies so far behind a tile's output is fetched before it is computed; 0: nothing
  bool fetchesInput;           // each strip fetches what the next one reads
  taccActivation_t activation;
  bool isNonTemporal;  // the output, in whole vectors that are aligned, is stored so: the caller ends that
};

struct ShortSumsKernels {
  int lanes;                       // of a vector
  int pixels[mostSumVectors + 1];  // most of a tile of that many vectors; no fewer than of one with more vectors
  void (*sums[mostSumVectors + 1][mostSumPixels + 1])(const ShortSumsCall&);  // [vectors][pixels]
};

/// Those of the same instruction set.
const ShortSumsKernels& shortSumsKernels(const KernelSet& kernels);

/// NAMEShortSums() of short_sums_NAME.cpp.
#define TACC_DECLARE(set, isThere) const ShortSumsKernels& set##ShortSums();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
