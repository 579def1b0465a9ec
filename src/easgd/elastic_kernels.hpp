// The inner loops of a center's exchange, for the best instruction set of this CPU.
#pragma once

#include <cstddef>
#include <string_view>

#include "compute/simd/isa.hpp"

namespace tacc {

/// d = alpha * (weights - center), difference = d, center += d. The three do not overlap. The product is rounded before
/// it is added, so all instruction sets give the same bits. Every element of the center is written once and whole.
using MoveKernel = void (*)(float* center, const float* weights, float alpha, float* difference, std::size_t count);
using CopyKernel = void (*)(float* to, const float* from, std::size_t count);
using SubtractKernel = void (*)(float* from, const float* difference, std::size_t count);

struct ElasticKernels {
  std::string_view isa;
  MoveKernel move;
  /// The same beside other threads and processes that do so too, without a lock. C++ has no vectors of atomic floats;
  /// what counts here is that no CPU tears an aligned element of a vector, so that an element is what one of them
  /// wrote. ThreadSanitizer is told to leave these alone.
  MoveKernel moveUnlocked;
  CopyKernel copyUnlocked;
  SubtractKernel subtract;
};

/// Chosen at the first call (TACC_ISA).
const ElasticKernels& elasticKernels();
/// `isa` is one of availableIsas(); for tests.
ElasticKernels elasticKernelsFor(const Isa& isa);

}  // namespace tacc
