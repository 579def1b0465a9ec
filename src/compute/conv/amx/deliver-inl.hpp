// Sums of tiles brought to where the result goes: bias, addend, activation, rounding. Included by the kernels for AMX
// only.
#pragma once

#include <immintrin.h>

#include "compute/conv/amx/bf16x3.hpp"
#include "compute/conv/kernels/activation-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Lanes of a block that there are.
[[gnu::always_inline]] inline __mmask16 maskOf(const DeliverWork& work, int block) {
  return block + 1 == work.blocks ? work.lastMask : std::uint16_t{0xFFFF};
}

[[gnu::always_inline]] inline __m512 biasOf(const DeliverWork& work, int block) {
  return work.bias != nullptr ? _mm512_loadu_ps(work.bias + block * 16) : _mm512_setzero_ps();
}

/// Results in float32, one block after the other.
template <bool kIsNonTemporal, bool kHasAddend>
[[gnu::always_inline]] inline void deliverFloats(const DeliverWork& work, const float* sums, int from, int end) {
  const __m512 bias = biasOf(work, work.block);
  const std::ptrdiff_t* const outputs = work.outputs;
  const std::ptrdiff_t block = work.block * work.outputBlock;
  float* const output = static_cast<float*>(work.output) + block;
  const float* const addend = static_cast<const float*>(work.addend) + (kHasAddend ? block : 0);
  const __mmask16 mask = maskOf(work, work.block);
  for (int i = from; i < end; ++i, sums += 16) {
    const std::ptrdiff_t at = outputs[i];
    if (at < 0) continue;
    __m512 value = _mm512_add_ps(_mm512_load_ps(sums), bias);
    if constexpr (kHasAddend) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, addend + at));
    value = activated(work.activation, value);
    if constexpr (kIsNonTemporal) {
      _mm512_stream_ps(output + at, value);
    } else {
      _mm512_mask_storeu_ps(output + at, mask, value);
    }
  }
}

template <bool kIsNonTemporal, bool kHasAddend>
[[gnu::always_inline]] inline void deliverFloatRows(DeliverWork& work, int rows) {
  while (rows > 0 && work.block < work.blocks) {
    const int tile = work.position / tileRows;
    int end = work.position + rows;
    if (end > work.positions) end = work.positions;
    if (end > (tile + 1) * tileRows) end = (tile + 1) * tileRows;
    const float* const sums =
        work.sums + (tile * work.blocks + work.block) * tileFloats + work.position % tileRows * 16;
    deliverFloats<kIsNonTemporal, kHasAddend>(work, sums, work.position, end);
    rows -= end - work.position;
    work.position = end;
    if (end == work.positions) {
      work.position = 0;
      ++work.block;
    }
  }
}

[[gnu::always_inline]] inline __m512 widened(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

/// Results in bfloat16, of one or two blocks of a position at once: to the nearest, of two as near ones the even one.
template <int kBlocks, bool kHasAddend>
[[gnu::always_inline]] inline void deliverHalves(const DeliverWork& work, const float* sums, int from, int end) {
  const __m512 bias = biasOf(work, 0), nextBias = biasOf(work, kBlocks - 1);
  const std::ptrdiff_t* const outputs = work.outputs;
  auto* const output = static_cast<std::uint16_t*>(work.output);
  const auto* const addend = static_cast<const std::uint16_t*>(work.addend);
  const std::ptrdiff_t next = work.outputBlock;
  const __mmask16 mask = maskOf(work, 0), nextMask = maskOf(work, kBlocks - 1);
  const bool isWhole = mask == 0xFFFF && nextMask == 0xFFFF, isBesides = isWhole && next == 16;
  for (int i = from; i < end; ++i, sums += 16) {
    const std::ptrdiff_t at = outputs[i];
    if (at < 0) continue;
    __m512 value = _mm512_add_ps(_mm512_load_ps(sums), bias);
    if constexpr (kHasAddend) value = _mm512_add_ps(value, widened(_mm256_maskz_loadu_epi16(mask, addend + at)));
    value = activated(work.activation, value);
    if constexpr (kBlocks == 1) {
      const auto numbers = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
      _mm256_mask_storeu_epi16(output + at, mask, numbers);
      continue;
    }
    __m512 other = _mm512_add_ps(_mm512_load_ps(sums + tileFloats), nextBias);
    if constexpr (kHasAddend) {
      other = _mm512_add_ps(other, widened(_mm256_maskz_loadu_epi16(nextMask, addend + at + next)));
    }
    other = activated(work.activation, other);
    const auto numbers = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(other, value));
    if (isBesides) {
      _mm512_storeu_si512(output + at, numbers);
    } else if (isWhole) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(output + at), _mm512_castsi512_si256(numbers));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(output + at + next), _mm512_extracti64x4_epi64(numbers, 1));
    } else {
      _mm256_mask_storeu_epi16(output + at, mask, _mm512_castsi512_si256(numbers));
      _mm256_mask_storeu_epi16(output + at + next, nextMask, _mm512_extracti64x4_epi64(numbers, 1));
    }
  }
}

template <int kBlocks, bool kHasAddend>
[[gnu::always_inline]] inline void deliverHalfRows(DeliverWork& work, int rows) {
  while (rows > 0 && work.block < work.blocks) {
    const int tile = work.position / tileRows;
    int end = work.position + rows;
    if (end > work.positions) end = work.positions;
    if (end > (tile + 1) * tileRows) end = (tile + 1) * tileRows;
    const float* const sums = work.sums + tile * kBlocks * tileFloats + work.position % tileRows * 16;
    deliverHalves<kBlocks, kHasAddend>(work, sums, work.position, end);
    rows -= end - work.position;
    work.position = end;
    if (end == work.positions) work.block = work.blocks;
  }
}

/// The next `rows` positions of a block; of bfloat16 of all blocks.
template <class Number>
void deliverSome(DeliverWork& work, int rows) {
  if constexpr (sizeof(Number) == sizeof(float)) {
    if (work.addend != nullptr) {
      deliverFloatRows<false, true>(work, rows);
    } else if (work.isNonTemporal) {
      deliverFloatRows<true, false>(work, rows);
    } else {
      deliverFloatRows<false, false>(work, rows);
    }
  } else if (work.blocks == 1) {
    if (work.addend != nullptr) {
      deliverHalfRows<1, true>(work, rows);
    } else {
      deliverHalfRows<1, false>(work, rows);
    }
  } else {
    if (work.addend != nullptr) {
      deliverHalfRows<2, true>(work, rows);
    } else {
      deliverHalfRows<2, false>(work, rows);
    }
  }
}

template <class Number>
void deliver(DeliverWork& work) {
  deliverSome<Number>(work, work.blocks * work.positions);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
