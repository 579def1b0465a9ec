// Products with a matrix of up to four columns. Blocks of 16 columns would be mostly zeros; here the inner length fills
// the vectors: every result is a sum over vectors of a row of A and a column of B.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/kernels/planes_kernels.hpp"
#include "compute/gemm/gemm_description.hpp"

namespace tacc::gemm {

/// Whether this is the faster way.
bool hasFewColumns(const Description& d);

/// Immutable once made.
class FewColumns {
 public:
  FewColumns(const Description& d, const conv::KernelSet& kernels);

  std::size_t packedFloats() const;
  /// Columns of B, one after the other, with zeros behind each.
  void pack(const float* b, float* packed) const;
  /// Rows [from, to) of C; `a` has rows of `rowStride` floats.
  void run(const float* a, std::ptrdiff_t rowStride, const float* packed, const float* bias, float* c, int from,
           int to) const;
  double cycles() const;

 private:
  void store(const float* sums, const float* bias, float* c, int row, int rows) const;

  Description d_;
  const conv::PlaneKernels& kernels_;
};

}  // namespace tacc::gemm
