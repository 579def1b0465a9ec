// Rows of tiles made of pixels: float32 in three parts, or bfloat16. Included by the kernels for AMX only.
#pragma once

#include <immintrin.h>

#include "compute/conv/amx/bf16x3.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

struct Parts {
  __m512i high, middle, low;
};

/// The upper halves of `odd` and, below them, those of `even`.
[[gnu::always_inline]] inline __m512i pairs(__m512i even, __m512i odd) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(even, 16), odd);
}

[[gnu::always_inline]] inline __m512 upperBits(__m512i bits) {
  return _mm512_castsi512_ps(_mm512_and_epi32(bits, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

/// The high parts are cut off, so that large numbers do not become infinite; the middle ones are rounded, so that what
/// is left out, whose largest part is a middle one times a low one, has no bias. The low ones are exact.
[[gnu::always_inline]] inline Parts splitPairs(__m512 even, __m512 odd) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const __m512i evenBits = _mm512_castps_si512(even), oddBits = _mm512_castps_si512(odd);
  const __m512 evenRest = _mm512_sub_ps(even, upperBits(evenBits)), oddRest = _mm512_sub_ps(odd, upperBits(oddBits));
  const __m512i evenMiddle = _mm512_add_epi32(_mm512_castps_si512(evenRest), half);
  const __m512i oddMiddle = _mm512_add_epi32(_mm512_castps_si512(oddRest), half);
  const __m512 evenLow = _mm512_sub_ps(evenRest, upperBits(evenMiddle));
  const __m512 oddLow = _mm512_sub_ps(oddRest, upperBits(oddMiddle));
  return {pairs(evenBits, oddBits), pairs(evenMiddle, oddMiddle),
          pairs(_mm512_castps_si512(evenLow), _mm512_castps_si512(oddLow))};
}

struct Masks {
  std::uint16_t even, odd;
  bool areWhole() const { return even == 0xFFFF && odd == 0xFFFF; }
};

// What rows are made of: 16 numbers at `even` and 16 at `odd`, of which masks say which there are.

struct SplitFloats {
  using Number = float;
  static constexpr int kParts = splitParts;
  template <bool kIsMasked>
  [[gnu::always_inline]] static void makeRow(const Number* even, const Number* odd, Masks masks, std::byte* to,
                                             [[maybe_unused]] std::ptrdiff_t partStep) {
    const Parts parts = kIsMasked
                            ? splitPairs(_mm512_maskz_loadu_ps(masks.even, even), _mm512_maskz_loadu_ps(masks.odd, odd))
                            : splitPairs(_mm512_loadu_ps(even), _mm512_loadu_ps(odd));
    _mm512_store_si512(to, parts.high);
    _mm512_store_si512(to + partStep, parts.middle);
    _mm512_store_si512(to + 2 * partStep, parts.low);
  }
};

template <bool kIsMasked>
[[gnu::always_inline]] inline __m256i loadHalf(const std::uint16_t* from, std::uint16_t mask) {
  return kIsMasked ? _mm256_maskz_loadu_epi16(mask, from) : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// A number of either block is a pair: what sums over pixels are regrouped from.
struct JoinBfloat16 {
  using Number = std::uint16_t;
  static constexpr int kParts = 1;
  template <bool kIsMasked>
  [[gnu::always_inline]] static void makeRow(const Number* even, const Number* odd, Masks masks, std::byte* to,
                                             [[maybe_unused]] std::ptrdiff_t partStep) {
    const __m512i low = _mm512_cvtepu16_epi32(loadHalf<kIsMasked>(even, masks.even));
    const __m512i high = _mm512_cvtepu16_epi32(loadHalf<kIsMasked>(odd, masks.odd));
    _mm512_store_si512(to, _mm512_or_epi32(low, _mm512_slli_epi32(high, 16)));
  }
};

/// Channels that follow each other are pairs: the row is a copy.
struct CopyBfloat16 {
  using Number = std::uint16_t;
  static constexpr int kParts = 1;
  template <bool kIsMasked>
  [[gnu::always_inline]] static void makeRow(const Number* even, const Number* odd, Masks masks, std::byte* to,
                                             [[maybe_unused]] std::ptrdiff_t partStep) {
    const __m512i lower = _mm512_castsi256_si512(loadHalf<kIsMasked>(even, masks.even));
    _mm512_store_si512(to, _mm512_inserti64x4(lower, loadHalf<kIsMasked>(odd, masks.odd), 1));
  }
};

[[gnu::always_inline]] inline void clearRows(std::byte* from, std::ptrdiff_t rows) {
  for (std::ptrdiff_t i = 0; i < rows; ++i) _mm512_store_si512(from + i * rowBytes, _mm512_setzero_si512());
}

/// Pixels are brought into the cache that many rows before they are split: they may come from memory, a few at a time
/// and from many places, so hardware does not look ahead.
constexpr int rowsAhead = 16;

template <class Number>
[[gnu::always_inline]] inline void fetchRows(Bf16x3Work& work, std::ptrdiff_t limit) {
  while (work.fetched < limit && work.fetchRun != work.end) {
    const Bf16x3Run& run = *work.fetchRun;
    if (work.fetched < run.row) work.fetched = run.row;
    const std::ptrdiff_t done = work.fetched - run.row;
    const std::ptrdiff_t now = limit - work.fetched < run.rows - done ? limit - work.fetched : run.rows - done;
    const Number* even = static_cast<const Number*>(work.even) + run.source + done * work.evenStep;
    const Number* odd =
        static_cast<const Number*>(work.odd) + (work.oddStep != 0 ? run.source + done * work.oddStep : 0);
    for (std::ptrdiff_t row = 0; row < now; ++row, even += work.evenStep, odd += work.oddStep) {
      __builtin_prefetch(even);
      __builtin_prefetch(odd);
    }
    if (now > 0) work.fetched += now;
    if (done + now >= run.rows) ++work.fetchRun;
    if (now <= 0) return;
  }
}

/// The next rows of a run.
template <class Kind, bool kIsMasked>
[[gnu::always_inline]] inline void makeRun(const Bf16x3Work& work, std::ptrdiff_t done, std::ptrdiff_t rows,
                                           Masks masks) {
  using Number = typename Kind::Number;
  const std::ptrdiff_t evenStep = work.evenStep, oddStep = work.oddStep, partStep = work.partStep;
  const std::ptrdiff_t source = work.run->source;
  const Number* even = static_cast<const Number*>(work.even) + source + done * evenStep;
  const Number* odd = static_cast<const Number*>(work.odd) + (oddStep != 0 ? source + done * oddStep : 0);
  std::byte* to = work.output + work.at * rowBytes;
#pragma GCC unroll 4
  for (std::ptrdiff_t row = 0; row < rows; ++row, even += evenStep, odd += oddStep, to += rowBytes) {
    Kind::template makeRow<kIsMasked>(even, odd, masks, to, partStep);
  }
}

template <class Kind>
void split(Bf16x3Work& work, int rows) {
  using Number = typename Kind::Number;
  // Where many lines of the cache follow each other hardware looks ahead far enough for copies.
  constexpr int manyRows = 128;
  const bool areLines = Kind::kParts == 1 && work.evenStep <= rowBytes / static_cast<int>(sizeof(Number)) &&
                        (work.run == work.end || work.run->rows >= manyRows);
  if (!areLines) fetchRows<Number>(work, work.at + rows + rowsAhead);
  std::ptrdiff_t limit = work.at + rows < work.rows ? work.at + rows : work.rows;
  while (work.at < limit) {
    const std::ptrdiff_t next = work.run != work.end && work.run->row < limit ? work.run->row : limit;
    if (work.at < next) {
      if (work.leavesGaps && work.run != work.end) {
        const std::ptrdiff_t gap = work.run->row - work.at;
        work.at += gap;
        limit = limit + gap < work.rows ? limit + gap : work.rows;
        continue;
      }
      std::byte* const to = work.output + work.at * rowBytes;
      for (int part = 0; part < Kind::kParts; ++part) clearRows(to + part * work.partStep, next - work.at);
      work.at = next;
      continue;
    }
    const Bf16x3Run& run = *work.run;
    const std::ptrdiff_t done = work.at - run.row;
    const std::ptrdiff_t now = limit - work.at < run.rows - done ? limit - work.at : run.rows - done;
    const std::uint64_t lanes = run.lanes >> work.firstLane;
    const Masks masks{static_cast<std::uint16_t>(work.evenMask & lanes),
                      static_cast<std::uint16_t>(work.oddMask & lanes >> 16)};
    if (masks.areWhole()) {
      makeRun<Kind, false>(work, done, now, masks);
    } else {
      makeRun<Kind, true>(work, done, now, masks);
    }
    work.at += now;
    if (done + now == run.rows) ++work.run;
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
