// Enters the kernels of a type in the table.
#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "compute/reduce/elementwise-inl.hpp"
#include "compute/reduce/kernel_table.hpp"
#include "compute/reduce/reduce-inl.hpp"

#if defined(TACC_COMPUTE_FILL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_FILL_INL
#undef TACC_COMPUTE_FILL_INL
#else
#define TACC_COMPUTE_FILL_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

/// What the 16-bit types are called here; only their size matters.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

/// `Ordered` are the lanes for maximum and minimum, `Arithmetic` those for the rest.
template <class T, class Arithmetic, class Ordered>
void fillReduce(KernelTable& table, taccDataType_t type) {
  table.reduce[type][taccSum] = reduce<T, Arithmetic, Sum>;
  table.reduce[type][taccAvg] = reduce<T, Arithmetic, Sum>;
  table.reduce[type][taccProd] = reduce<T, Arithmetic, Product>;
  table.reduce[type][taccMax] = reduce<T, Ordered, Maximum>;
  table.reduce[type][taccMin] = reduce<T, Ordered, Minimum>;
  table.multiply[type] = multiply<Arithmetic>;
}

template <class T>
void fillInteger(KernelTable& table, taccDataType_t type) {
  fillReduce<T, PlainLanes<std::make_unsigned_t<T>>, PlainLanes<T>>(table, type);
}

/// Sums of complex numbers are sums of their parts.
template <class Part, class Op>
void reduceParts(const ReduceJob& job) {
  ReduceJob parts = job;
  parts.count = 2 * job.count;
  reduce<Part, PlainLanes<Part>, Op>(parts);
}

template <class T, class Lanes, class Codec>
void fillSixteenBits(KernelTable& table, taccDataType_t type) {
  fillReduce<T, Lanes, Lanes>(table, type);
  table.widen[type] = widenAll<Codec>;
  table.narrow[type] = narrowAll<Codec>;
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif
