// Kernels of logical and bitwise operations, complex numbers and pairs.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/kernels_loops.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include "compute/reduce/kernel_table.hpp"
#include "compute/reduce/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

template <class T>
void fillLogical(KernelTable& table, taccDataType_t type) {
  table.reduce[type][taccLogicalAnd] = reduceByLoops<T, LogicalAnd>;
  table.reduce[type][taccLogicalOr] = reduceByLoops<T, LogicalOr>;
  table.reduce[type][taccLogicalXor] = reduceByLoops<T, LogicalXor>;
}

template <class T>
void fillBits(KernelTable& table, taccDataType_t type) {
  fillLogical<T>(table, type);
  table.reduce[type][taccBitAnd] = reduceByLoops<T, BitAnd>;
  table.reduce[type][taccBitOr] = reduceByLoops<T, BitOr>;
  table.reduce[type][taccBitXor] = reduceByLoops<T, BitXor>;
}

template <class T>
void fillPair(KernelTable& table, taccDataType_t type) {
  table.reduce[type][taccMinLoc] = reduceByLoops<Located<T>, LeastLocated>;
  table.reduce[type][taccMaxLoc] = reduceByLoops<Located<T>, GreatestLocated>;
}

void fillLoops(KernelTable& table) {
  // A sign changes no bit of these results.
  fillBits<std::uint8_t>(table, taccInt8);
  fillBits<std::uint8_t>(table, taccUint8);
  fillLogical<std::uint8_t>(table, taccBool);
  fillBits<std::uint16_t>(table, taccInt16);
  fillBits<std::uint16_t>(table, taccUint16);
  fillBits<std::uint32_t>(table, taccInt32);
  fillBits<std::uint32_t>(table, taccUint32);
  fillBits<std::uint64_t>(table, taccInt64);
  fillBits<std::uint64_t>(table, taccUint64);
  table.reduce[taccComplex64][taccProd] = reduceByLoops<Complex<float>, ComplexProduct>;
  table.reduce[taccComplex128][taccProd] = reduceByLoops<Complex<double>, ComplexProduct>;
  fillPair<float>(table, taccFloatInt);
  fillPair<double>(table, taccDoubleInt);
  fillPair<std::int64_t>(table, taccLongInt);
  fillPair<std::int32_t>(table, taccIntInt);
  fillPair<std::int16_t>(table, taccShortInt);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

TACC_EXPORT(fillLoops);
void fillLoopKernels(KernelTable& table, std::int64_t target) { TACC_DISPATCH(fillLoops, target)(table); }

}  // namespace tacc
#endif
