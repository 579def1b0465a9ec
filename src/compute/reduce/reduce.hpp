// Reduction of any number of sources in one pass, for every type and operation, on the best instruction set of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/types.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// One element-wise reduction: every dst[d][i] = (((src[0][i] op src[1][i]) op src[2][i]) ...) / divisor.
/// The order is that of `sources`, for every element and on every instruction set, so equal inputs give equal bits.
/// float16 and bfloat16 are widened to float32, reduced there, divided there and rounded once (to nearest even).
/// A destination may be exactly one of the sources; otherwise nothing overlaps. Pointers need no
/// alignment; without the type's it takes longer. One source makes it a copy (with division).
/// A reduction of the program, see taccRedOpCreateUser.
struct UserReduction {
  taccReductionFunction function = nullptr;
  void* context = nullptr;
  bool isCommutative = true;
};

struct ReduceJob {
  void* const* destinations;
  int destinationCount;  // >= 1
  const void* const* sources;
  int sourceCount;         // >= 1
  std::size_t count;       // elements
  int divisor = 1;         // > 1 for taccAvg: the result is divided by it (integers truncate towards zero)
  bool streaming = false;  // write non-temporally: for large destinations that nobody reads soon
};

/// A kernel as a table has it: all its pointers are aligned for its type.
using ReduceFunction = void (*)(const ReduceJob&);

/// What runs a job: a kernel of the library, or a reduction of the program.
class ReduceKernel {
 public:
  constexpr ReduceKernel() noexcept = default;
  constexpr ReduceKernel(ReduceFunction function, taccDataType_t type) noexcept : function_(function), type_(type) {}
  /// `user` must live as long as the kernel is used.
  constexpr ReduceKernel(const UserReduction& user, taccDataType_t type) noexcept : user_(&user), type_(type) {}

  /// Null: it is the program's.
  ReduceFunction kernel() const noexcept { return function_; }

  void operator()(const ReduceJob& job) const {
    if (user_ != nullptr || !isAligned(job)) [[unlikely]]
      return runSlowly(job);
    function_(job);
  }

 private:
  bool isAligned(const ReduceJob& job) const noexcept {
    std::uintptr_t bits = 0;
    for (int s = 0; s < job.sourceCount; ++s) bits |= reinterpret_cast<std::uintptr_t>(job.sources[s]);
    for (int d = 0; d < job.destinationCount; ++d) bits |= reinterpret_cast<std::uintptr_t>(job.destinations[d]);
    return (bits & (alignmentOf(type_) - 1)) == 0;
  }
  void runSlowly(const ReduceJob& job) const;

  ReduceFunction function_ = nullptr;
  const UserReduction* user_ = nullptr;
  taccDataType_t type_ = taccInt8;
};

/// The kernel for `type` and a built-in `op` that it has (taccAvg is taccSum with a divisor). Cheap: a table lookup.
/// The first call chooses the instruction set and throws when TACC_ISA does not fit this CPU. Min and max return the
/// first of the two when they compare equal, and NaN if any source is NaN. Which of several NaNs comes out is not
/// specified. Integers wrap modulo 2^bits.
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
