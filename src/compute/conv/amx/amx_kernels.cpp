// The kernels for AMX, and for the vectors of AVX-512 around it. No standard function may be used here, for the reason
// given in table-inl.hpp.
#include "compute/conv/amx/amx_kernels.hpp"

#include <immintrin.h>

#define TACC_LANES 16
#define TACC_CONV_ISA avx512amx
#include "compute/conv/amx/kept_sums-inl.hpp"
#include "compute/conv/amx/rows-inl.hpp"

namespace tacc::conv {
namespace {

using namespace avx512amx;

/// Pairs of the even, and of the odd, of the numbers of two rows.
[[gnu::always_inline]] inline __m512i evens(__m512i first, __m512i second) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, first, _mm512_slli_epi32(second, 16));
}
[[gnu::always_inline]] inline __m512i odds(__m512i first, __m512i second) { return pairs(first, second); }

template <class Kind>
void regroup(const RegroupCall& call) {
  for (int part = 0; part < Kind::kParts; ++part) {
    const std::byte* from = call.rows + part * call.rowsPart;
    const std::ptrdiff_t to = part * call.outputPart;
    for (int i = 0; i < tileRows; ++i, from += 2 * rowBytes) {
      const __m512i first = _mm512_load_si512(from), second = _mm512_load_si512(from + rowBytes);
      _mm512_store_si512(call.even + to + i * rowBytes, evens(first, second));
      if (call.odd != nullptr) _mm512_store_si512(call.odd + to + i * rowBytes, odds(first, second));
    }
  }
}

/// 16 x 16 words of 32 bits, in four rounds that exchange parts of twice the size each.
[[gnu::always_inline]] inline void transposeWords(__m512i (&r)[16], void* output) {
  auto* const to = static_cast<std::byte*>(output);
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(to + i * rowBytes, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(to + (i + 4) * rowBytes, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_store_si512(to + (i + 8) * rowBytes, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD));
    _mm512_store_si512(to + (i + 12) * rowBytes, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD));
  }
}

template <bool kIsOdd>
[[gnu::always_inline]] inline void transposeTile(const std::byte* from, std::byte* to) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const __m512i first = _mm512_load_si512(from + 2 * i * rowBytes);
    const __m512i second = _mm512_load_si512(from + (2 * i + 1) * rowBytes);
    r[i] = kIsOdd ? odds(first, second) : evens(first, second);
  }
  transposeWords(r, to);
}

template <class Kind>
void transpose(const RegroupCall& call) {
  for (int part = 0; part < Kind::kParts; ++part) {
    const std::byte* const from = call.rows + part * call.rowsPart;
    transposeTile<false>(from, call.even + part * call.outputPart);
    if (call.odd != nullptr) transposeTile<true>(from, call.odd + part * call.outputPart);
  }
}

void turn(const float* sums, int rows, int columns, float* turned) {
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      const float* const from = sums + (m * columns + n) * tileFloats;
      __m512i r[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(from + i * 16);
      transposeWords(r, turned + (n * rows + m) * tileFloats);
    }
  }
}

/// Fewer than four products at a time would wait for each other: then there are several sums to each, which are added
/// at the end.
template <int kRows, int kColumns>
constexpr int setsOf = kRows* kColumns == 3 ? 1 : 4 / (kRows * kColumns);

template <int kSum, int kColumns, int kRow>
[[gnu::always_inline]] inline void multiplyRow(const std::byte* a, std::ptrdiff_t row) {
  constexpr int a0 = firstA + kRow % 2;
  loadTile<a0>(a, row);
  multiplyTiles<kSum, a0, firstB>();
  if constexpr (kColumns == 2) multiplyTiles<kSum + 1, a0, firstB + 1>();
}

/// One pair of parts for all tiles; `b` is loaded.
template <int kRows, int kColumns, int kPair>
[[gnu::always_inline]] inline void multiplyPart(const std::byte* a, std::ptrdiff_t row, std::ptrdiff_t tile) {
  constexpr int first = kPair % setsOf<kRows, kColumns> * kRows * kColumns;
  multiplyRow<first, kColumns, 0>(a, row);
  if constexpr (kRows > 1) multiplyRow<first + kColumns, kColumns, 1>(a + tile, row);
  if constexpr (kRows > 2) multiplyRow<first + 2, kColumns, 2>(a + 2 * tile, row);
  if constexpr (kRows > 3) multiplyRow<first + 3, kColumns, 3>(a + 3 * tile, row);
}

template <int kColumns>
[[gnu::always_inline]] inline void loadColumns(const std::byte* b, std::ptrdiff_t tile) {
  loadTile<firstB>(b, rowBytes);
  if constexpr (kColumns == 2) loadTile<firstB + 1>(b + tile, rowBytes);
}

/// All of a step that has one part. Which set its sums are added to is part of the instructions.
template <int kRows, int kColumns>
[[gnu::always_inline]] inline void multiplyStep(const std::byte* a, std::ptrdiff_t row, std::ptrdiff_t tile, int step) {
  constexpr int kSets = setsOf<kRows, kColumns>;
  switch (step % kSets) {
    case 0:
      return multiplyPart<kRows, kColumns, 0>(a, row, tile);
    case 1:
      return multiplyPart<kRows, kColumns, 1>(a, row, tile);
    case 2:
      return multiplyPart<kRows, kColumns, 2>(a, row, tile);
    default:
      return multiplyPart<kRows, kColumns, 3>(a, row, tile);
  }
}

constexpr int atLeast(int least, int value) { return value < least ? least : value; }

template <class Kind, int kRows, int kColumns>
void multiply(const ProductCall& call, const Chores& chores) {
  constexpr int kTiles = kRows * kColumns;
  constexpr int kSets = setsOf<kRows, kColumns>;
  if (chores.areInTiles) storeSums(chores.deliver->sums);
  clearAll();
  const int slots = (Kind::kParts == 1 ? 1 : 6) * call.steps + 1;
  // A few rows at a time, or calls would cost more than they do.
  const int deliveries = atLeast(4, (chores.deliver->blocks * chores.deliver->positions + slots - 1) / slots);
  const int splits = atLeast(4, (chores.splitRows + slots - 1) / slots);
  int splitRows = chores.splitRows;
  const auto work = [&] {
    if (chores.deliver->block < chores.deliver->blocks) deliverSome<typename Kind::Number>(*chores.deliver, deliveries);
    if (splitRows > 0) {
      split<Kind>(*chores.split, splits);
      splitRows -= splits;
    }
  };
  const std::byte* b = call.b;
  const std::byte* fetch = call.b + call.fetchAt;
  for (int step = 0; step < call.steps; ++step, b += call.bStep) {
    const std::byte* const a = call.a + call.aSteps[step];
    loadColumns<kColumns>(b, call.bTile);
    if constexpr (Kind::kParts == 1) {
      for (int line = 0; line < call.fetchLines; ++line, fetch += rowBytes) __builtin_prefetch(fetch, 0, 2);
      multiplyStep<kRows, kColumns>(a, call.aRow, call.aTile, step);
      work();
      continue;
    }
    multiplyPart<kRows, kColumns, 0>(a, call.aRow, call.aTile);
    work();
    multiplyPart<kRows, kColumns, 1>(a + call.aPart, call.aRow, call.aTile);
    work();
    multiplyPart<kRows, kColumns, 2>(a + 2 * call.aPart, call.aRow, call.aTile);
    work();
    for (int line = 0; line < call.fetchLines; ++line, fetch += rowBytes) __builtin_prefetch(fetch, 0, 2);
    loadColumns<kColumns>(b + call.bPart, call.bTile);
    multiplyPart<kRows, kColumns, 3>(a, call.aRow, call.aTile);
    work();
    multiplyPart<kRows, kColumns, 4>(a + call.aPart, call.aRow, call.aTile);
    work();
    loadColumns<kColumns>(b + 2 * call.bPart, call.bTile);
    multiplyPart<kRows, kColumns, 5>(a, call.aRow, call.aTile);
    work();
  }
  deliver<typename Kind::Number>(*chores.deliver);
  storeSums(call.sums);
  if constexpr (kSets > 1) {
    for (int i = 0; i < kTiles * tileFloats; i += 16) {
      __m512 sum = _mm512_load_ps(call.sums + i);
      for (int set = 1; set < kSets; ++set) {
        sum = _mm512_add_ps(sum, _mm512_load_ps(call.sums + set * kTiles * tileFloats + i));
      }
      _mm512_store_ps(call.sums + i, sum);
    }
  }
}

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, startRow = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// All eight tiles: 16 rows of 64 bytes.
void begin() {
  const TileConfig config;
  asm volatile("ldtilecfg %0" ::"m"(config));
}

/// Operands of 16 channels, which take as long as 32 do.
void beginHalves() {
  TileConfig config;
  for (const int i : {0, 1}) {
    config.rowBytes[firstA + i] = 32;
    config.rows[firstB + i] = 8;
  }
  asm volatile("ldtilecfg %0" ::"m"(config));
}

void end() {
  asm volatile("tilerelease");
  _mm_sfence();  // what was stored so is seen by other threads before anything that is written later
}

/// Of operands in tiles, four sums in turn: as fast as tiles multiply.
void multiplyOnly(int count) {
  begin();
  clearAll();
  clearTile<firstA>();
  clearTile<firstB>();
  for (int i = 0; i < count; i += 4) {
    multiplyTiles<0, firstA, firstB>();
    multiplyTiles<1, firstA, firstB>();
    multiplyTiles<2, firstA, firstB>();
    multiplyTiles<3, firstA, firstB>();
  }
  end();
}

/// Of a number of one part all that is computed with at once takes so little time that storing sums is a good part.
template <class Kind, int kColumns>
constexpr auto multiplyFour =
    Kind::kParts == 1 ? multiplyKeeping<Kind, kColumns> : multiply<Kind, 4 / kColumns, kColumns>;

template <class Kind>
constexpr Bf16x3Kernels tableOf() {
  return {Kind::kParts,
          sizeof(typename Kind::Number),
          split<Kind>,
          regroup<Kind>,
          transpose<Kind>,
          turn,
          begin,
          beginHalves,
          end,
          {{},
           {nullptr, multiply<Kind, 1, 1>, multiply<Kind, 1, 2>},
           {nullptr, multiply<Kind, 2, 1>, multiplyFour<Kind, 2>},
           {nullptr, multiply<Kind, 3, 1>, nullptr},
           {nullptr, multiplyFour<Kind, 1>, nullptr}},
          deliver<typename Kind::Number>,
          Kind::kParts == 1 ? storeSums : nullptr,
          nullptr,
          nullptr};
}

}  // namespace

const Bf16x3Kernels& amxKernelTable() {
  static constexpr Bf16x3Kernels bfloat16 = tableOf<CopyBfloat16>(), ofGradients = tableOf<JoinBfloat16>();
  static constexpr Bf16x3Kernels kernels = [] {
    Bf16x3Kernels table = tableOf<SplitFloats>();
    table.ofBfloat16 = &bfloat16;
    table.ofBfloat16Gradients = &ofGradients;
    table.products = multiplyOnly;
    return table;
  }();
  return kernels;
}

}  // namespace tacc::conv
