#include "compute/reduce/reduce.hpp"

#include <cstring>

#include "compute/reduce/kernel_table.hpp"
#include "compute/simd/isa.hpp"
#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

/// Chosen at the first call and fixed from then on; later calls cost a load and a compare.
const KernelTable& kernels() {
  static const KernelTable table = makeKernelTable(chooseIsa());
  return table;
}

}  // namespace

KernelTable makeKernelTable(const Isa& isa) {
  KernelTable table{};
  table.isa = isa.name;
  fillIntegerKernels<8>(table, isa.target);
  fillIntegerKernels<16>(table, isa.target);
  fillIntegerKernels<32>(table, isa.target);
  fillIntegerKernels<64>(table, isa.target);
  fillFloatKernels(table, isa.target);
  fillHalfKernels(table, isa.target);
  fillLoopKernels(table, isa.target);
  return table;
}

ReduceKernel reduceKernel(taccDataType_t type, taccRedOp_t op) {
  if (!isValid(type) || op < 0 || op >= taccNumOps) {
    fail(taccInternalError, "There is no reduction kernel for type {} and operation {}", static_cast<int>(type),
         static_cast<int>(op));
  }
  return {kernels().reduce[type][op], type};
}

void copyBytes(void* const* destinations, int destinationCount, const void* source, std::size_t bytes, bool streaming) {
  if (destinationCount == 1 && !streaming) {
    if (bytes != 0 && destinations[0] != source) std::memcpy(destinations[0], source, bytes);
    return;
  }
  kernels().copy({destinations, destinationCount, &source, 1, bytes, 1, streaming});
}

void multiplyByScalar(taccDataType_t type, void* destination, const void* source, const void* factor,
                      std::size_t count) {
  kernels().multiply[type](destination, source, factor, count);
}

void widenToFloat(taccDataType_t type, float* destination, const void* source, std::size_t count) {
  kernels().widen[type](destination, source, count);
}

void narrowFromFloat(taccDataType_t type, void* destination, const float* source, std::size_t count) {
  kernels().narrow[type](destination, source, count);
}

std::string_view reduceIsa() { return kernels().isa; }

}  // namespace tacc
