// Sums of products that lie apart, for convolutions that multiply all taps first: each pixel of the result is written
// once, from where its taps find products.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

template <bool kAdds>
[[gnu::always_inline]] inline void sumTapsOf(const TapSumsCall& call, bool isNonTemporal) {
  constexpr int kVectors = blockLength / TACC_LANES;
  float* to = call.result;
  for (int y = 0; y < call.height; ++y) {
    const std::int32_t* const lines = call.linePlaces + call.lineStarts[y];
    const std::int32_t* const linesEnd = call.linePlaces + call.lineStarts[y + 1];
    for (int x = 0; x < call.width; ++x, to += blockLength) {
      const std::int32_t* const columns = call.columnPlaces + call.columnStarts[x];
      const std::int32_t* const columnsEnd = call.columnPlaces + call.columnStarts[x + 1];
      Vector sum[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[v] = kAdds ? load(to + v * TACC_LANES) : Vector{};
      for (const std::int32_t* line = lines; line < linesEnd; ++line) {
        const float* const from = call.products + *line;
        for (const std::int32_t* column = columns; column < columnsEnd; ++column) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sum[v] += load(from + *column + v * TACC_LANES);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) put(to + v * TACC_LANES, sum[v], isNonTemporal);
    }
  }
}

inline void sumTaps(const TapSumsCall& call) {
  const bool isNonTemporal = call.isNonTemporal && isAligned(call.result);
  if (call.adds) {
    sumTapsOf<true>(call, false);
  } else {
    sumTapsOf<false>(call, isNonTemporal);
    if (isNonTemporal) endNonTemporal();
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
