// Kernels of the signed and the unsigned integers of TACC_INTEGER_BITS bits. Compiled once for each number of bits,
// which meson.build lists, as these take most of the time of a build in which they are one source.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_int.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace {

void fillIntegers(KernelTable& table) {
#if TACC_INTEGER_BITS == 8
  fillInteger<std::int8_t>(table, taccInt8);
  fillInteger<std::uint8_t>(table, taccUint8);
  table.copy = reduceLanes<PlainLanes<std::uint8_t>, Sum>;
#elif TACC_INTEGER_BITS == 16
  fillInteger<std::int16_t>(table, taccInt16);
  fillInteger<std::uint16_t>(table, taccUint16);
#elif TACC_INTEGER_BITS == 32
  fillInteger<std::int32_t>(table, taccInt32);
  fillInteger<std::uint32_t>(table, taccUint32);
#elif TACC_INTEGER_BITS == 64
  fillInteger<std::int64_t>(table, taccInt64);
  fillInteger<std::uint64_t>(table, taccUint64);
#else
#error "compile it with -DTACC_INTEGER_BITS=8, 16, 32 or 64"
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

TACC_EXPORT(fillIntegers);
template <>
void fillIntegerKernels<TACC_INTEGER_BITS>(KernelTable& table, std::int64_t target) {
  TACC_DISPATCH(fillIntegers, target)(table);
}

}  // namespace tacc
#endif
