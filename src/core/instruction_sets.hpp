// The instruction sets that kernels are compiled for. The words of TACC_ISA, the reductions, convolutions and layers
// all follow from this table.
#pragma once

// clang-format off
/// row(NAME, TARGETS, KERNELS) for every instruction set, of each kind of CPU the widest first:
///   NAME      its word in TACC_ISA
///   TARGETS   what Highway calls it, for the reductions; 0: it has no vectors, and reductions use those of the next row
///   KERNELS   of convolutions and layers: of TACC_KERNEL_SETS (compute/simd/kernel_sets.hpp), or amx
/// A user of the table expands what it needs of a row, so that core names nothing of the layers above.
#define TACC_INSTRUCTION_SETS(row) \
  row(amx, 0, amx) \
  row(avx512, HWY_AVX3, avx512) \
  row(avx2, HWY_AVX2, avx2) \
  row(sse4, HWY_SSE4, portable) \
  row(neon, HWY_NEON, portable) \
  row(scalar, HWY_SCALAR | HWY_EMU128, portable)
// clang-format on
