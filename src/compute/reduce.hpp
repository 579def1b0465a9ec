// Reduction of any number of sources in one pass, for every type and operation, on the best instruction set of the CPU.
#pragma once

#include <cstddef>
#include <string_view>

#include "tacc/tacc.h"

namespace tacc {

/// One element-wise reduction: every dst[d][i] = (((src[0][i] op src[1][i]) op src[2][i]) ...) / divisor.
/// The order is that of `sources`, for every element and on every instruction set, so equal inputs give equal bits.
/// float16 and bfloat16 are widened to float32, reduced there, divided there and rounded once (to nearest even).
/// A destination may be exactly one of the sources; otherwise nothing overlaps. Pointers need only the type's
/// alignment. One source makes it a copy (with division).
struct ReduceJob {
  void* const* destinations;
  int destinationCount;  // >= 1
  const void* const* sources;
  int sourceCount;         // >= 1
  std::size_t count;       // elements
  int divisor = 1;         // > 1 for taccAvg: the result is divided by it (integers truncate towards zero)
  bool streaming = false;  // write past the cache: for large destinations that nobody reads soon
};

using ReduceKernel = void (*)(const ReduceJob&);

/// The kernel for `type` and `op` (taccSum, taccProd, taccMax, taccMin; taccAvg is taccSum with a divisor). Cheap: a
/// table lookup. The first call chooses the instruction set and throws when TACC_ISA does not fit this CPU. Min and max
/// return the first of the two when they compare equal, and NaN if any source is NaN. Which of several NaNs comes out
/// is not specified. Integers wrap modulo 2^bits.
ReduceKernel reduceKernel(taccDataType_t type, taccRedOp_t op);

/// Copies `bytes` from one source to every destination; the source is read once.
void copyBytes(void* const* destinations, int destinationCount, const void* source, std::size_t bytes, bool streaming);

/// destination[i] = source[i] * factor (factor of the same type; 16-bit types multiply in float32). May be in place.
void multiplyByScalar(taccDataType_t type, void* destination, const void* source, const void* factor,
                      std::size_t count);

/// float16 or bfloat16 to float32 and back (to nearest even).
void widenToFloat(taccDataType_t type, float* destination, const void* source, std::size_t count);
void narrowFromFloat(taccDataType_t type, void* destination, const float* source, std::size_t count);

/// Name of the instruction set in use, as in TACC_ISA, e.g. "avx512".
std::string_view reduceIsa();

}  // namespace tacc
