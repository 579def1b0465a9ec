// A vector of TACC_LANES floats in the compiler's own terms, which it turns into the best instructions of the
// instruction set that the including file is compiled for. Nothing here may be used by two files: see TACC_CONV_ISA.
#pragma once

#include "compute/conv/kernels.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

using Vector [[gnu::vector_size(TACC_LANES * sizeof(float))]] = float;
using Unaligned [[gnu::vector_size(TACC_LANES * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;

[[gnu::always_inline]] inline Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
[[gnu::always_inline]] inline void store(float* to, Vector v) { *reinterpret_cast<Unaligned*>(to) = v; }
[[gnu::always_inline]] inline Vector broadcast(float x) { return x - Vector{}; }
[[gnu::always_inline]] inline Vector maximum(Vector a, Vector b) { return a > b ? a : b; }

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
