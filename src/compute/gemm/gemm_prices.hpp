// The model behind the choice of a product's kernels: what its matrices take on their way, beside the products.
#pragma once

#include <cstddef>

#include "compute/gemm/gemm_description.hpp"

namespace tacc::gemm {

/// Cycles that a line of the cache of results takes, by where all of them have room.
struct LineCycles {
  double inL1, inL2, beyond;
};

/// With what writing `columns` columns of C takes, most of which one of both hides behind the other.
double withResults(double products, const Description& d, int columns, const LineCycles& ofLine);

/// With what reading a packed matrix so many times takes, where the L2 cache has no room for it.
double withMatrix(double products, double times, std::size_t packedFloats);

}  // namespace tacc::gemm
