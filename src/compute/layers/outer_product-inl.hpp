// The product of a column and a row, of which nothing is summed: each value of the result is stored once, and that is
// what it takes.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

template <bool kAdds>
[[gnu::always_inline]] inline void outerProductOf(const float* column, std::ptrdiff_t rows, const float* block,
                                                  float* results) {
  constexpr int kVectors = blockLength / TACC_LANES;
  Vector row[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) row[v] = load(block + v * TACC_LANES);
#pragma GCC unroll 8
  for (std::ptrdiff_t r = 0; r < rows; ++r, results += blockLength) {
    const Vector factor = broadcast(column[r]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* const to = results + v * TACC_LANES;
      store(to, kAdds ? load(to) + factor * row[v] : factor * row[v]);
    }
  }
}

inline void outerProduct(const float* column, std::ptrdiff_t rows, const float* block, float* results, bool adds) {
  if (adds) {
    outerProductOf<true>(column, rows, block, results);
  } else {
    outerProductOf<false>(column, rows, block, results);
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
