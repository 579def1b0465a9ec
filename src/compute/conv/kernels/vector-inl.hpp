// A vector of TACC_LANES floats in the compiler's own terms, which it turns into the best instructions of the
// instruction set that the including file is compiled for. Nothing here may be used by two files: see TACC_CONV_ISA.
#pragma once

#include <algorithm>

#include "compute/conv/kernels/kernels.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacc::conv {
namespace TACC_CONV_ISA {

using Vector [[gnu::vector_size(TACC_LANES * sizeof(float))]] = float;
using Unaligned [[gnu::vector_size(TACC_LANES * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;

/// Vectors of a block of 16 channels, and blocks that some vectors are in. Half a block can only be where it is a
/// vector.
constexpr int vectorsOfBlock = blockLength / TACC_LANES;
constexpr int blocksOf(int vectors) { return (vectors + vectorsOfBlock - 1) / vectorsOfBlock; }

[[gnu::always_inline]] inline Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
[[gnu::always_inline]] inline void store(float* to, Vector v) { *reinterpret_cast<Unaligned*>(to) = v; }
/// Stores non-temporally, where the architecture has such stores. `to` is aligned to the vector; endNonTemporal() comes
/// last.
[[gnu::always_inline]] inline void stream(float* to, Vector v) {
#if defined(__x86_64__) && TACC_LANES == 16
  _mm512_stream_ps(to, v);
#elif defined(__x86_64__) && TACC_LANES == 8
  _mm256_stream_ps(to, v);
#elif defined(__x86_64__)
  _mm_stream_ps(to, v);
#else
  store(to, v);
#endif
}
/// What was stored non-temporally is seen by other threads before anything that is written later.
[[gnu::always_inline]] inline void endNonTemporal() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// The lanes [from, to) of a vector, or its first ones: none where `to` is below 1, at most all. What the others would
/// read or write in memory is neither read nor written; they are read as zeros. Only first ones are stored.
class PartOfVector {
 public:
  PartOfVector() = default;  // not set
#if defined(__x86_64__) && TACC_LANES == 16
  [[gnu::always_inline]] explicit PartOfVector(int lanes)
      : mask_(static_cast<__mmask16>(lanes >= TACC_LANES ? 0xFFFF : (1U << (lanes < 0 ? 0 : lanes)) - 1)) {}
  [[gnu::always_inline]] PartOfVector(int from, int to) : mask_(static_cast<__mmask16>(below(to) & ~below(from))) {}
  [[gnu::always_inline]] Vector load(const float* from) const { return _mm512_maskz_loadu_ps(mask_, from); }
  [[gnu::always_inline]] void store(float* to, Vector v) const { _mm512_mask_storeu_ps(to, mask_, v); }

 private:
  [[gnu::always_inline]] static unsigned below(int lane) { return (1U << std::clamp(lane, 0, TACC_LANES)) - 1; }
  __mmask16 mask_;
#elif defined(__x86_64__) && TACC_LANES == 8
  [[gnu::always_inline]] explicit PartOfVector(int lanes)
      : mask_(_mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), lane())), lanes_(lanes < 0 ? 0 : lanes) {}
  [[gnu::always_inline]] PartOfVector(int from, int to)
      : mask_(_mm256_and_si256(_mm256_cmpgt_epi32(lane(), _mm256_set1_epi32(from - 1)),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(to), lane()))),
        lanes_(to < 0 ? 0 : to) {}
  [[gnu::always_inline]] Vector load(const float* from) const { return _mm256_maskload_ps(from, mask_); }
  /// In up to three stores: a masked one takes a Zen 3 20 cycles, all of these 7.
  [[gnu::always_inline]] void store(float* to, Vector v) const {
    if (lanes_ >= TACC_LANES) {
      TACC_CONV_ISA::store(to, v);
      return;
    }
    __m128 rest = _mm256_castps256_ps128(v);
    if ((lanes_ & 4) != 0) {
      _mm_storeu_ps(to, rest);
      rest = _mm256_extractf128_ps(v, 1);
      to += 4;
    }
    if ((lanes_ & 2) != 0) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), rest);
      rest = _mm_movehl_ps(rest, rest);
      to += 2;
    }
    if ((lanes_ & 1) != 0) _mm_store_ss(to, rest);
  }

 private:
  [[gnu::always_inline]] static __m256i lane() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  __m256i mask_;
  int lanes_;
#else
  [[gnu::always_inline]] explicit PartOfVector(int lanes) : PartOfVector(0, lanes) {}
  [[gnu::always_inline]] PartOfVector(int from, int to) : from_(std::max(from, 0)), to_(std::min(to, TACC_LANES)) {}
  [[gnu::always_inline]] Vector load(const float* from) const {
    if (to_ - from_ == TACC_LANES) return TACC_CONV_ISA::load(from);
    Vector v{};
    for (int i = from_; i < to_; ++i) v[i] = from[i];
    return v;
  }
  [[gnu::always_inline]] void store(float* to, Vector v) const {
    for (int i = from_; i < to_; ++i) to[i] = v[i];
  }

 private:
  int from_, to_;
#endif
};

[[gnu::always_inline]] inline Vector broadcast(float x) { return x - Vector{}; }
[[gnu::always_inline]] inline Vector maximum(Vector a, Vector b) { return a > b ? a : b; }
[[gnu::always_inline]] inline Vector minimum(Vector a, Vector b) { return a < b ? a : b; }

#ifndef TACC_BLOCK_PIXEL
/// Floats of a pixel of a block.
inline constexpr int blockPixel = blockLength;
/// What a step of a sum is.
[[gnu::always_inline]] inline Vector addProduct(Vector sum, Vector w, Vector x) { return sum + w * x; }
/// The same with one value in all lanes, as part of the instruction where there is such a one.
[[gnu::always_inline]] inline Vector addProductWith(Vector sum, Vector w, const float& x) {
  return addProduct(sum, w, broadcast(x));
}
/// Pixels of a step of a gradient. Of two, a float is a pair: what the pixel and the next one have.
inline constexpr int pixelsOfStep = 1;
[[gnu::always_inline]] inline Vector firstOfPairs(Vector pairs) { return pairs; }
#endif

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
