// Kernels of float16 and bfloat16.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_half.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

void fillHalf(KernelTable& table) {
  fillSixteenBits<Float16, Float16Lanes, Float16Codec>(table, taccFloat16);
  fillSixteenBits<Bfloat16, Bfloat16Lanes, Bfloat16Codec>(table, taccBfloat16);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

TACC_EXPORT(fillHalf);
void fillHalfKernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillHalf, target)(table); }

}  // namespace tacc
#endif
