// Between planes of channels (NCHW) and blocks of 16 channels. Included by one file per instruction set, as
// table-inl.hpp.
#include <utility>

#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

using Square = Vector[TACC_LANES];

/// Exchanges the squares of kHalf x kHalf numbers off the diagonal, of all squares of twice that size.
template <int kHalf>
[[gnu::always_inline]] inline void exchange(Square& rows) {
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) {
    if ((i & kHalf) != 0) continue;
    const Vector a = rows[i];
    const Vector b = rows[i + kHalf];
    [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
      rows[i] = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane : TACC_LANES + kLane - kHalf)...);
      rows[i + kHalf] = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane + kHalf : TACC_LANES + kLane)...);
    }
    (std::make_integer_sequence<int, TACC_LANES>());
  }
  if constexpr (kHalf > 1) exchange<kHalf / 2>(rows);
}

/// A square of numbers: line i is read at from + i * fromStep, column i is written at to + i * toStep.
[[gnu::always_inline]] inline void transpose(const float* from, std::ptrdiff_t fromStep, float* to,
                                             std::ptrdiff_t toStep, bool isNonTemporal) {
  Square rows;
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) rows[i] = load(from + i * fromStep);
  exchange<TACC_LANES / 2>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) put(to + i * toStep, rows[i], isNonTemporal);
}

inline void toBlocks(const float* planes, std::ptrdiff_t plane, float* block, std::ptrdiff_t pixels, bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(block);
  std::ptrdiff_t p = 0;
  for (; p + TACC_LANES <= pixels; p += TACC_LANES) {
    for (int first = 0; first < blockLength; first += TACC_LANES) {
      transpose(planes + first * plane + p, plane, block + p * blockLength + first, blockLength, isNonTemporal);
    }
  }
  if (isNonTemporal) endNonTemporal();
  for (; p < pixels; ++p) {
    for (int c = 0; c < blockLength; ++c) block[p * blockLength + c] = planes[c * plane + p];
  }
}

inline void fromBlocks(const float* block, float* planes, std::ptrdiff_t plane, std::ptrdiff_t pixels,
                       bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(planes) && plane % TACC_LANES == 0;
  std::ptrdiff_t p = 0;
  for (; p + TACC_LANES <= pixels; p += TACC_LANES) {
    for (int first = 0; first < blockLength; first += TACC_LANES) {
      transpose(block + p * blockLength + first, blockLength, planes + first * plane + p, plane, isNonTemporal);
    }
  }
  if (isNonTemporal) endNonTemporal();
  for (; p < pixels; ++p) {
    for (int c = 0; c < blockLength; ++c) planes[c * plane + p] = block[p * blockLength + c];
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
