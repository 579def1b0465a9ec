// Kernels of int32 and uint32.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_int32.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

void fillInt32(KernelTable& table) {
  fillInteger<std::int32_t>(table, taccInt32);
  fillInteger<std::uint32_t>(table, taccUint32);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

HWY_EXPORT(fillInt32);
void fillInt32Kernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillInt32, target)(table); }

}  // namespace tacc
#endif
