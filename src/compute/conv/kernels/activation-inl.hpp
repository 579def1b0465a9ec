// The functions that kernels apply to their results at last. Included by one file per instruction set, as tile-inl.hpp.
#pragma once

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// exp(x), right to about 1e-7 of its value, for -88 <= x <= 88.
[[gnu::always_inline]] inline Vector exponential(Vector x) {
  using Bits [[gnu::vector_size(TACC_LANES * sizeof(unsigned))]] = unsigned;  // which may wrap
  // x = n * log(2) + r. Adding this rounds to a whole number, which is then in the lowest bits.
  const Vector rounder = broadcast(0x1.8p23F);
  const Vector rounded = x * broadcast(1.44269504F) + rounder;
  const Vector n = rounded - rounder;
  const Vector r = (x - n * broadcast(0.693359375F)) - n * broadcast(-2.12194440e-4F);
  Vector p = broadcast(1.9875691500e-4F);  // Cephes' polynomial for |r| <= log(2) / 2
  p = p * r + broadcast(1.3981999507e-3F);
  p = p * r + broadcast(8.3334519073e-3F);
  p = p * r + broadcast(4.1665795894e-2F);
  p = p * r + broadcast(1.6666665459e-1F);
  p = p * r + broadcast(5.0000001201e-1F);
  p = (p * r) * r + r + broadcast(1.0F);
  constexpr int bitsOfFraction = 23;
  return reinterpret_cast<Vector>(reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(rounded) << bitsOfFraction));
}

/// x / (1 + exp(-x)). What is not a number stays so.
[[gnu::always_inline]] inline Vector silu(Vector x) {
  const Vector least = broadcast(-88.0F), most = broadcast(87.0F);
  x = x < least ? least : x;
  return x / (broadcast(1.0F) + exponential(-(x > most ? most : x)));
}

/// x * min(max(x + 3, 0), 6) / 6; x itself from 3 on.
[[gnu::always_inline]] inline Vector hardSwish(Vector x) {
  const Vector gate = minimum(maximum(x + broadcast(3.0F), Vector{}), broadcast(6.0F));
  return x * (gate * broadcast(1.0F / 6));
}

/// Those functions that are more than two instructions, of `count` vectors in memory. Not in line: a kernel has up to
/// 28 vectors, and there are hundreds of kernels.
[[gnu::noinline]] inline void applyCurve(taccActivation_t function, Vector* values, int count) {
  if (function == taccActivationSilu) {
    for (int i = 0; i < count; ++i) values[i] = silu(values[i]);
  } else {
    for (int i = 0; i < count; ++i) values[i] = hardSwish(values[i]);
  }
}

/// Applies a function to kCount vectors that are in registers: at(i) is vector i.
template <int kCount, class At>
[[gnu::always_inline]] inline void activate(taccActivation_t function, const At& at) {
  if (function == taccActivationNone) return;
  if (function <= taccActivationRelu6) {
#pragma GCC unroll 32
    for (int i = 0; i < kCount; ++i) at(i) = maximum(at(i), Vector{});
    if (function == taccActivationRelu) return;
    const Vector six = broadcast(6.0F);
#pragma GCC unroll 32
    for (int i = 0; i < kCount; ++i) at(i) = minimum(at(i), six);
    return;
  }
  Vector values[kCount];
#pragma GCC unroll 32
  for (int i = 0; i < kCount; ++i) values[i] = at(i);
  applyCurve(function, values, kCount);
#pragma GCC unroll 32
  for (int i = 0; i < kCount; ++i) at(i) = values[i];
}

/// The same of one vector.
[[gnu::always_inline]] inline Vector activated(taccActivation_t function, Vector value) {
  activate<1>(
      function, [&](int) __attribute__((always_inline))->Vector & { return value; });
  return value;
}

/// Of `blocks` times 16 floats in memory, in place.
inline void activateBlocks(taccActivation_t function, float* values, std::ptrdiff_t blocks) {
  if (function == taccActivationNone) return;
  for (std::ptrdiff_t i = 0; i < blocks * blockLength; i += TACC_LANES) {
    store(values + i, activated(function, load(values + i)));
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
