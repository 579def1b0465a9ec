// All kernels of one instruction set. The rest of the library uses reduce.hpp; tests use this to compare instruction
// sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compute/reduce/reduce.hpp"
#include "compute/simd/isa.hpp"

namespace tacc {

using MultiplyKernel = void (*)(void* destination, const void* source, const void* factor, std::size_t count);
using WidenKernel = void (*)(float* destination, const void* source, std::size_t count);
using NarrowKernel = void (*)(void* destination, const float* source, std::size_t count);

struct KernelTable {
  std::string_view isa;
  ReduceFunction reduce[taccNumTypes][taccNumOps];  // null where the type has no such operation
  MultiplyKernel multiply[taccNumTypes];            // null where a type is not multiplied
  WidenKernel widen[taccNumTypes];                  // float16 and bfloat16 only, else null
  NarrowKernel narrow[taccNumTypes];                // likewise
  ReduceFunction copy;  // one source, bytes, any number of destinations; ignores the divisor
};

/// `isa` must be one of availableIsas().
KernelTable makeKernelTable(const Isa& isa);

// Each writes the rows of its types for the Highway target `target`.
/// For 8, 16, 32 and 64 bits.
template <int bits>
void fillIntegerKernels(KernelTable& table, std::int64_t target);
template <>
void fillIntegerKernels<8>(KernelTable& table, std::int64_t target);
template <>
void fillIntegerKernels<16>(KernelTable& table, std::int64_t target);
template <>
void fillIntegerKernels<32>(KernelTable& table, std::int64_t target);
template <>
void fillIntegerKernels<64>(KernelTable& table, std::int64_t target);
void fillFloatKernels(KernelTable& table, std::int64_t target);
void fillHalfKernels(KernelTable& table, std::int64_t target);
/// Logical and bitwise operations, complex numbers, pairs; after the others, of which it uses some.
void fillLoopKernels(KernelTable& table, std::int64_t target);

}  // namespace tacc
