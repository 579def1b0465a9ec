// Kernels of int64 and uint64.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_int64.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

void fillInt64(KernelTable& table) {
  fillInteger<std::int64_t>(table, taccInt64);
  fillInteger<std::uint64_t>(table, taccUint64);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

HWY_EXPORT(fillInt64);
void fillInt64Kernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillInt64, target)(table); }

}  // namespace tacc
#endif
