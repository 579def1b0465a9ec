// The packed form of B for the kernels of vectors: groups of neighbouring columns, each with its rows one right behind
// the other.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/gemm/gemm_description.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::gemm {

struct ColumnGroup {
  int first;    // column of B
  int columns;  // behind which are zeros
  int width;    // floats of a row of it, packed
  std::ptrdiff_t packed;
};

/// Packs the columns of all groups; `b` is the whole matrix. Where it is large, non-temporally.
void packColumns(const Description& d, const std::vector<ColumnGroup>& groups, const layers::LayerKernels& kernels,
                 const float* b, float* packed);

}  // namespace tacc::gemm
