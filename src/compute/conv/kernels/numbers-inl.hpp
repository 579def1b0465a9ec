// The numbers that tensors of channel-wise layers are made of: float32 or, where TACC_BF16_NUMBERS is defined,
// bfloat16, which are widened as they are loaded and rounded as they are stored. Weights, biases and sums are float32
// either way. Included by one file per instruction set, as tile-inl.hpp.
#pragma once

#include <cstdint>

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

#ifndef TACC_BF16_NUMBERS

using Number = float;
using PartOfNumbers = PartOfVector;
[[gnu::always_inline]] inline Vector loadNumbers(const Number* from) { return load(from); }
[[gnu::always_inline]] inline void storeNumbers(Number* to, Vector v) { store(to, v); }
[[gnu::always_inline]] inline void streamNumbers(Number* to, Vector v) { stream(to, v); }

#else

using Number = std::uint16_t;

/// 16 numbers, each in the upper half of a float's bits. One instruction beside the load, where widening and shifting
/// are two: they share the units with multiply-adds.
[[gnu::always_inline]] inline Vector widen(__m256i numbers) {
  constexpr __mmask32 upperHalves = 0xAAAAAAAA;
  const __m512i places = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0,
                                          3, 0, 2, 0, 1, 0, 0, 0);
  return reinterpret_cast<Vector>(_mm512_maskz_permutexvar_epi16(upperHalves, places, _mm512_castsi256_si512(numbers)));
}
/// Rounded to the nearest, ties to even.
[[gnu::always_inline]] inline __m256i rounded(Vector v) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)); }

[[gnu::always_inline]] inline Vector loadNumbers(const Number* from) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
[[gnu::always_inline]] inline void storeNumbers(Number* to, Vector v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), rounded(v));
}
/// `to` is aligned to half a line of the cache, and the other half is stored next.
[[gnu::always_inline]] inline void streamNumbers(Number* to, Vector v) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), rounded(v));
}

/// The first lanes of a vector, as PartOfVector.
class PartOfNumbers {
 public:
  [[gnu::always_inline]] explicit PartOfNumbers(int lanes)
      : mask_(static_cast<__mmask16>(lanes >= TACC_LANES ? 0xFFFF : (1U << (lanes < 0 ? 0 : lanes)) - 1)) {}
  [[gnu::always_inline]] Vector load(const Number* from) const { return widen(_mm256_maskz_loadu_epi16(mask_, from)); }
  [[gnu::always_inline]] void store(Number* to, Vector v) const { _mm256_mask_storeu_epi16(to, mask_, rounded(v)); }

 private:
  __mmask16 mask_;
};

#endif

/// A tensor's numbers, which calls point to as floats.
[[gnu::always_inline]] inline const Number* numbers(const float* tensor) {
  return reinterpret_cast<const Number*>(tensor);
}
[[gnu::always_inline]] inline Number* numbers(float* tensor) { return reinterpret_cast<Number*>(tensor); }
/// Where a call that begins some numbers further on points to.
[[gnu::always_inline]] inline const float* behind(const float* tensor, std::ptrdiff_t count) {
  return reinterpret_cast<const float*>(numbers(tensor) + count);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
