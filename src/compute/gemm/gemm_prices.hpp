// The model behind the choice of a product's kernels: what its matrices take on their way, beside the products.
#pragma once

#include <cstddef>

#include "compute/gemm/gemm_description.hpp"

namespace tacc::gemm {

/// Cycles that a line of the cache of results takes, by where all of them have room.
struct LineCycles {
  double inL1, inL2, beyond;
};

/// Cycles of `products` together with writing `columns` columns of C: the shorter is mostly hidden behind the longer.
double withResults(double products, const Description& d, int columns, const LineCycles& ofLine);

/// Cycles of `products` together with reading a packed matrix `times` times, where the L2 cache has no room for it.
double withMatrix(double products, double times, std::size_t packedFloats);

}  // namespace tacc::gemm
