// The convolutions' vectors, for the layers.
#include "compute/conv/kernels/vector-inl.hpp"
#include "compute/layers/kernels.hpp"

#ifndef TACC_LAYERS_VECTOR_INL
#define TACC_LAYERS_VECTOR_INL

namespace tacc::layers {
namespace TACC_CONV_ISA {

using conv::blockLength;
using conv::TACC_CONV_ISA::broadcast;
using conv::TACC_CONV_ISA::endNonTemporal;
using conv::TACC_CONV_ISA::load;
using conv::TACC_CONV_ISA::maximum;
using conv::TACC_CONV_ISA::PartOfVector;
using conv::TACC_CONV_ISA::store;
using conv::TACC_CONV_ISA::stream;
using conv::TACC_CONV_ISA::Vector;

[[gnu::always_inline]] inline bool isAligned(const float* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(Vector) == 0;
}

/// The compiler would read it from memory again for every instruction that takes it.
[[gnu::always_inline]] inline Vector inRegister(Vector v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}

/// Stores non-temporally or as usual. What is stored non-temporally is aligned, and endNonTemporal() comes last.
[[gnu::always_inline]] inline void put(float* to, Vector v, bool isNonTemporal) {
  if (isNonTemporal) {
    stream(to, v);
  } else {
    store(to, v);
  }
}

/// The sum of term(pixel), in four chains: an addition takes as long as four of them need to start.
template <class Term>
[[gnu::always_inline]] inline Vector sumOver(std::ptrdiff_t pixels, const Term& term) {
  constexpr int kChains = 4;
  Vector sum[kChains] = {};
  std::ptrdiff_t p = 0;
  for (; p + kChains <= pixels; p += kChains) {
#pragma GCC unroll 4
    for (int i = 0; i < kChains; ++i) sum[i] += term(p + i);
  }
  for (; p < pixels; ++p) sum[0] += term(p);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers

#endif
