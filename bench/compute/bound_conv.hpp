// What a layer takes at least, counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/conv_problem.hpp"

namespace tacc::bench {

/// Height or width of a convolution: its input's size, its results, and the taps of its kernel.
struct OneDimension {
  int size, results, taps, stride, pad, dilation;
};

struct InsideCount {
  std::int64_t pairs;  ///< of a result and a tap that finds a place of the input
  int touched;         ///< places of the input that a tap finds
};

InsideCount insideOf(const OneDimension& dimension);

/// Floating-point operations of one image without those that multiply the padding's zeros.
double leastOperations(const tools::Layer& layer);

/// Floats that a pass reads of its tensors, and writes: pixels that no tap finds are not read, where they lie in lines
/// of the cache of their own.
struct Tensors {
  std::size_t read, written;
};
Tensors tensorsOf(const ConvProblem& problem);

}  // namespace tacc::bench
