// The tiles' instructions. Included by the kernels for AMX only.
#pragma once

#include "compute/conv/amx/bf16x3.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

// Tiles have numbers that are part of the instruction. The clobbers keep stores to what is read before the reading.

template <int kTile>
[[gnu::always_inline]] inline void loadTile(const std::byte* from, std::ptrdiff_t row) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void storeTile(float* to) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(rowBytes), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void clearTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kSum, int kA, int kB>
[[gnu::always_inline]] inline void multiplyTiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

constexpr int firstA = 4, firstB = 6;  // two of each

/// Four tiles, one after the other.
[[gnu::always_inline]] inline void storeAll(float* to) {
  storeTile<0>(to);
  storeTile<1>(to + tileFloats);
  storeTile<2>(to + 2 * tileFloats);
  storeTile<3>(to + 3 * tileFloats);
}
[[gnu::always_inline]] inline void clearAll() {
  clearTile<0>();
  clearTile<1>();
  clearTile<2>();
  clearTile<3>();
}
inline void storeSums(float* to) { storeAll(to); }

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
