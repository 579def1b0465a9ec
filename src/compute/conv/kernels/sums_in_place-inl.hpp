// Multiply-adds whose sums stay in the registers they are in. Included by kernels that make several steps in a row, as
// tile-inl.hpp.
#pragma once

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// addProduct() in the order in which it is written. Of several steps in a row the compiler would write sums over the
/// values they were made of, so that they wander through the registers, and with 16 of them some through memory.
[[gnu::always_inline]] inline void addProductInPlace(Vector& sum, Vector w, Vector x) {
#if defined(__x86_64__) && TACC_LANES == 8
  asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x));
#else
  sum = addProduct(sum, w, x);
#endif
}

/// The same with weights that are in memory.
[[gnu::always_inline]] inline void addProductInPlace(Vector& sum, const float* weights, Vector x) {
#if defined(__x86_64__) && TACC_LANES == 8
  asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "m"(*reinterpret_cast<const Unaligned*>(weights)));
#else
  sum = addProduct(sum, load(weights), x);
#endif
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
