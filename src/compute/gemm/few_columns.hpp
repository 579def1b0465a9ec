// Products with the columns of a matrix that do not fill a block of 16: all of one of few columns, or what is left of
// others. A block would be partly zeros; here the inner length fills the vectors: every result is a sum over vectors of
// a row of A and a column of B.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::gemm {

/// Immutable once made.
class FewColumns {
 public:
  /// Of the columns from `first` on.
  FewColumns(const Description& d, int first, const conv::KernelSet& kernels);

  std::size_t packedFloats() const;
  /// Columns of B, one after the other, with zeros behind each. `b`, `bias` and `c` are those of the whole product.
  void pack(const float* b, float* packed) const;
  /// Rows [from, to) of C; `a` has rows of `rowStride` floats.
  void run(const float* a, std::ptrdiff_t rowStride, const float* packed, const float* bias, float* c, int from,
           int to) const;
  double cycles() const;

 private:
  /// What comes behind the sums, of some rows of C.
  void finish(float* results, int rows, const float* bias) const;

  Description d_;  // its n is the number of these columns
  int first_;
  int lanes_;  // of a vector
  const layers::LayerKernels& kernels_;
  double productCycles_;  // of one result and the numbers of a vector
};

}  // namespace tacc::gemm
