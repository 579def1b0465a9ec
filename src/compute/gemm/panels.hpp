// Products whose sums are short, or whose rows are few: of either there is little to multiply for what is written or
// read. B is packed in panels of neighbouring columns, which are gone through as they lie; results are written row by
// row.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/gemm/packed_columns.hpp"
#include "compute/gemm/row_tasks.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::gemm {

/// Immutable once made.
class Panels {
 public:
  /// Of the columns from `first` on.
  Panels(const Description& d, int first, const conv::KernelSet& kernels);

  int count() const { return static_cast<int>(groups_.size()); }
  std::size_t packedFloats() const;
  /// `b`, `bias`, whose end is padded to a block, and `c` are those of the whole product.
  void pack(const float* b, float* packed) const;
  /// Some rows of C and the columns of panels [first, end); `a` has rows of `rowStride` floats.
  void run(const float* a, std::ptrdiff_t rowStride, const float* packed, const float* bias, float* c, RowRange rows,
           int firstPanel, int endPanel) const;
  double cycles() const;

 private:
  Description d_;
  int first_, columns_;
  std::vector<ColumnGroup> groups_;  // a panel each
  const layers::LayerKernels& kernels_;
  double productCycles_;  // of a row's number and a block of columns
};

}  // namespace tacc::gemm
