// Kernels of float32 and float64.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_float.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/fill-inl.hpp"
#include "compute/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

void fillFloat(KernelTable& table) {
  fillReduce<float, PlainLanes<float>, PlainLanes<float>>(table, taccFloat32);
  fillReduce<double, PlainLanes<double>, PlainLanes<double>>(table, taccFloat64);
  for (const taccRedOp_t op : {taccSum, taccAvg}) {
    table.reduce[taccComplex64][op] = reduceParts<float, Sum>;
    table.reduce[taccComplex128][op] = reduceParts<double, Sum>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

TACC_EXPORT(fillFloat);
void fillFloatKernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillFloat, target)(table); }

}  // namespace tacc
#endif
