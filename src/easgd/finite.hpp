// The check of weights for numbers that are not finite.
#pragma once

#include <cmath>
#include <cstddef>

#include "compute/reduce/update.hpp"
#include "core/error.hpp"

namespace tacc {

/// Fails with the first of the elements [first, first + count) that is not finite. `offset`: of weights[0] in the
/// model.
inline void checkFinite(const float* weights, std::size_t first, std::size_t count, std::size_t offset = 0) {
  if (updateKernels().areFinite(weights + first, count)) [[likely]]
    return;
  std::size_t i = first;
  while (std::isfinite(weights[i])) ++i;
  fail(
      taccInvalidUsage,
      "weight {} is {}: training has diverged or its input is damaged; the exchange ends on all ranks, which can go on "
      "from what they saved last, with a smaller learning rate",
      offset + i, weights[i]);
}

}  // namespace tacc
