// Every second lane of two vectors, and sums over the lanes of many. Included by one file per instruction set, as
// tile-inl.hpp.
#pragma once

#include <utility>

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Of two vectors that follow each other, from lane kFirst on, which is 0 or 1: those of `a` in the lower half.
template <int kFirst, int... kLane>
[[gnu::always_inline]] inline Vector everySecond(Vector a, Vector b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (2 * kLane + kFirst)...);
}
template <int kFirst>
[[gnu::always_inline]] inline Vector everySecond(Vector a, Vector b) {
  return everySecond<kFirst>(a, b, std::make_integer_sequence<int, TACC_LANES>());
}

/// The sums over the lanes of kCount vectors, in the lanes of the first one, where kCount is that of the lanes.
template <int kCount>
[[gnu::always_inline]] inline void addLanes(Vector* sums) {
#pragma GCC unroll 8
  for (int i = 0; i < kCount / 2; ++i)
    sums[i] = everySecond<0>(sums[2 * i], sums[2 * i + 1]) + everySecond<1>(sums[2 * i], sums[2 * i + 1]);
  if constexpr (kCount > 2) addLanes<kCount / 2>(sums);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
