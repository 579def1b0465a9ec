// Columns of B in the order in which tiles of vectors read them: group of blocks by group, and of each a row of its
// columns after the other.
#pragma once

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::gemm {

/// Those from `first` on, which are the driver's outputs. Zeros stand for columns that fill up the last block.
void packTiles(const Description& d, int first, const conv::DirectDriver& driver, const layers::LayerKernels& kernels,
               const float* b, float* packed);

}  // namespace tacc::gemm
