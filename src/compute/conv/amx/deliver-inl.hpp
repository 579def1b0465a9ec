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

/// What becomes of sums before they are rounded.
enum class Epilogue { bias, relu, any };

/// Results in bfloat16, of one or two blocks of a position at once.
template <int kBlocks, Epilogue kEpilogue>
class HalvesDelivery {
 public:
  explicit HalvesDelivery(const DeliverWork& work)
      : outputs_(work.outputs),
        areRuns_(work.areRuns),
        output_(static_cast<std::uint16_t*>(work.output)),
        addend_(static_cast<const std::uint16_t*>(work.addend)),
        next_(work.outputBlock),
        pixel_(work.outputPixel),
        activation_(work.activation),
        bias_{biasOf(work, 0), biasOf(work, kBlocks - 1)},
        masks_{maskOf(work, 0), maskOf(work, kBlocks - 1)},
        isNonTemporal_(work.isNonTemporal),
        isWhole_(work.lastMask == 0xFFFF),
        isLine_(isWhole_ && next_ == 16) {}

  [[gnu::always_inline]] void deliver(const float* sums, int from, int end) const {
    if (isWhole_ && end - from == tileRows && areRuns_[from / tileRows] != 0) {
      if (isNonTemporal_ && areLines(outputs_[from])) {
        deliverRun<true>(sums, outputs_[from]);
      } else {
        deliverRun<false>(sums, outputs_[from]);
      }
      return;
    }
    for (int i = from; i < end; ++i, sums += 16) {
      const std::ptrdiff_t at = outputs_[i];
      if (at < 0) continue;
      if constexpr (kBlocks == 1) {
        const __m512 value = finished<0>(_mm512_load_ps(sums), at);
        _mm256_mask_storeu_epi16(output_ + at, masks_[0], reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
      } else {
        const __m512 value = finished<0>(_mm512_load_ps(sums), at);
        const __m512 next = finished<1>(_mm512_load_ps(sums + tileFloats), at + next_);
        store(at, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(next, value)));
      }
    }
  }

 private:
  /// Whether a run's stores are lines of the cache, which may be written without being read.
  bool areLines(std::ptrdiff_t at) const {
    constexpr std::uintptr_t inLine = rowBytes - 1;
    const bool areBeside = (kBlocks == 2 && isLine_) || pixel_ == 16;
    const std::ptrdiff_t distances = pixel_ == 16 ? (kBlocks == 2 ? next_ : 0) : pixel_;
    const auto bytes = reinterpret_cast<std::uintptr_t>(output_ + at);
    return areBeside && ((bytes | static_cast<std::uintptr_t>(distances * 2)) & inLine) == 0;
  }
  template <bool kIsNonTemporal>
  [[gnu::always_inline]] static void storeLine(std::uint16_t* to, __m512i numbers) {
    if constexpr (kIsNonTemporal) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), numbers);
    } else {
      _mm512_storeu_si512(to, numbers);
    }
  }
  /// Stores are of whole lines where they can be: of two blocks of a pixel, or of two pixels of a block.
  template <bool kIsNonTemporal>
  [[gnu::always_inline]] void deliverRun(const float* sums, std::ptrdiff_t at) const {
    if (kBlocks == 2 && isLine_) {
#pragma GCC unroll 16
      for (int i = 0; i < tileRows; ++i, at += pixel_) {
        const __m512 value = finished<0>(_mm512_load_ps(sums + i * 16), at);
        const __m512 next = finished<1>(_mm512_load_ps(sums + tileFloats + i * 16), at + next_);
        storeLine<kIsNonTemporal>(output_ + at, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(next, value)));
      }
      return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < tileRows; i += 2, at += 2 * pixel_) {
      deliverPixels<0, kIsNonTemporal>(sums + i * 16, at);
      if constexpr (kBlocks == 2) deliverPixels<1, kIsNonTemporal>(sums + tileFloats + i * 16, at + next_);
    }
  }
  template <int kBlock, bool kIsNonTemporal>
  [[gnu::always_inline]] void deliverPixels(const float* sums, std::ptrdiff_t at) const {
    const __m512 value = finished<kBlock>(_mm512_load_ps(sums), at);
    const __m512 next = finished<kBlock>(_mm512_load_ps(sums + 16), at + pixel_);
    const auto numbers = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(next, value));
    std::uint16_t* const to = output_ + at;
    if (pixel_ == 16) {
      storeLine<kIsNonTemporal>(to, numbers);
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(numbers));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + pixel_), _mm512_extracti64x4_epi64(numbers, 1));
    }
  }

  template <int kBlock>
  [[gnu::always_inline]] __m512 finished(__m512 sum, std::ptrdiff_t at) const {
    __m512 value = _mm512_add_ps(sum, bias_[kBlock]);
    if constexpr (kEpilogue == Epilogue::relu) return activated(taccActivationRelu, value);
    if constexpr (kEpilogue == Epilogue::any) {
      if (addend_ != nullptr) {
        const __m512i numbers = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(masks_[kBlock], addend_ + at));
        value = _mm512_add_ps(value, _mm512_castsi512_ps(_mm512_slli_epi32(numbers, 16)));
      }
      value = activated(activation_, value);
    }
    return value;
  }
  [[gnu::always_inline]] void store(std::ptrdiff_t at, __m512i numbers) const {
    std::uint16_t* const to = output_ + at;
    if (isLine_) {
      _mm512_storeu_si512(to, numbers);
    } else if (isWhole_) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(numbers));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + next_), _mm512_extracti64x4_epi64(numbers, 1));
    } else {
      _mm256_mask_storeu_epi16(to, masks_[0], _mm512_castsi512_si256(numbers));
      _mm256_mask_storeu_epi16(to + next_, masks_[1], _mm512_extracti64x4_epi64(numbers, 1));
    }
  }

  const std::ptrdiff_t* outputs_;
  const std::uint8_t* areRuns_;
  std::uint16_t* output_;
  const std::uint16_t* addend_;
  std::ptrdiff_t next_, pixel_;
  taccActivation_t activation_;
  __m512 bias_[2];
  __mmask16 masks_[2];
  bool isNonTemporal_, isWhole_, isLine_;  // a line of the cache
};

template <int kBlocks, Epilogue kEpilogue>
void deliverHalfRows(DeliverWork& work, int rows) {
  const HalvesDelivery<kBlocks, kEpilogue> delivery(work);
  while (rows > 0 && work.block < work.blocks) {
    const int tile = work.position / tileRows;
    int end = work.position + rows;
    if (end > work.positions) end = work.positions;
    if (end > (tile + 1) * tileRows) end = (tile + 1) * tileRows;
    delivery.deliver(work.sums + tile * kBlocks * tileFloats + work.position % tileRows * 16, work.position, end);
    rows -= end - work.position;
    work.position = end;
    if (end == work.positions) work.block = work.blocks;
  }
}

template <int kBlocks>
[[gnu::always_inline]] inline void deliverHalves(DeliverWork& work, int rows) {
  if (work.addend == nullptr && work.activation == taccActivationNone) {
    deliverHalfRows<kBlocks, Epilogue::bias>(work, rows);
  } else if (work.addend == nullptr && work.activation == taccActivationRelu) {
    deliverHalfRows<kBlocks, Epilogue::relu>(work, rows);
  } else {
    deliverHalfRows<kBlocks, Epilogue::any>(work, rows);
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
    deliverHalves<1>(work, rows);
  } else {
    deliverHalves<2>(work, rows);
  }
}

template <class Number>
void deliver(DeliverWork& work) {
  deliverSome<Number>(work, work.blocks * work.positions);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
