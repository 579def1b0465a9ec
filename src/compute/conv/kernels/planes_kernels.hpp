// The kernels of convolutions of a few channels in NCHW (planes.cpp), one table for each instruction set.
#pragma once

#include <cstddef>

#include "compute/simd/kernel_sets.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

struct KernelSet;

inline constexpr int mostPlaneOutputs = 4;
/// Floats behind a line that may be read.
inline constexpr int planePadding = 64;
/// Floats of a sum of a gradient: of these a kernel uses as many as a vector has.
inline constexpr int planeSumFloats = 16;

/// Where a value of pixel 0 is, with those of the other pixels behind it; and which of the weights or sums is its own.
struct PlaneValue {
  const float* input;
  std::ptrdiff_t place;
};

/// A line of some outputs: for every output k and pixel x
///   output[k][x] = epilogue(bias[k] + addend[k][x] + sum over values of weights[value.place][k] * value.input[x]).
struct PlaneCall {
  const PlaneValue* values;
  int count;
  int pixels;
  const float* weights;  // of all outputs of a value, one after the other
  const float* bias;     // or null
  const float* addend;   // laid out as the output and may be it; or null
  float* output;
  std::ptrdiff_t outputPlane;  // from output to output
  taccActivation_t activation;
};

/// For every value: sums[value.place] += sum over x of gradient[x] * value.input[x], in the lanes of a vector.
struct PlaneGradientCall {
  const PlaneValue* values;
  int count;
  int pixels;
  const float* gradient;  // zeros behind the line
  float* sums;
};

struct PlaneKernels {
  int lanes;
  void (*line[mostPlaneOutputs + 1])(const PlaneCall&);  // [outputs]
  void (*gradient)(const PlaneGradientCall&);
};

/// Those of the same instruction set.
const PlaneKernels& planeKernels(const KernelSet& kernels);

/// NAMEPlaneKernels() of planes_NAME.cpp.
#define TACC_DECLARE(set, isThere) const PlaneKernels& set##PlaneKernels();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::conv
