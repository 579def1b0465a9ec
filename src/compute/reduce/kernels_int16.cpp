// Kernels of int16 and uint16.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_int16.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

void fillInt16(KernelTable& table) {
  fillInteger<std::int16_t>(table, taccInt16);
  fillInteger<std::uint16_t>(table, taccUint16);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

HWY_EXPORT(fillInt16);
void fillInt16Kernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillInt16, target)(table); }

}  // namespace tacc
#endif
