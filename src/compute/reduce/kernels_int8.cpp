// Kernels of int8 and uint8, and the copy of bytes.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_int8.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

void fillInt8(KernelTable& table) {
  fillInteger<std::int8_t>(table, taccInt8);
  fillInteger<std::uint8_t>(table, taccUint8);
  table.copy = reduceLanes<PlainLanes<std::uint8_t>, Sum>;
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

HWY_EXPORT(fillInt8);
void fillInt8Kernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillInt8, target)(table); }

}  // namespace tacc
#endif
