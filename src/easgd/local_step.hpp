// A rank's own step on its weights: x = (x - pull) - eta g, or with a velocity (compute/reduce/update.hpp), and the
// check of weights for numbers that are not finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "compute/reduce/reduce.hpp"
#include "compute/reduce/update.hpp"
#include "core/error.hpp"

namespace tacc {

struct LocalStep {
  float* weights = nullptr;
  float* velocity = nullptr;        // null: no momentum
  const float* gradient = nullptr;  // null: the weights are only pulled
  float rate = 0;
  float momentum = 0;

  /// Elements [first, first + count). `pull`: of these; null: none.
  void apply(std::size_t first, std::size_t count, const float* pull) const {
    applyWith(first, count, pull, gradient == nullptr ? nullptr : gradient + first, rate);
  }
  /// The same with `theirs`, of these elements, in the place of the gradient.
  void applyWith(std::size_t first, std::size_t count, const float* pull, const float* theirs, float itsRate) const {
    updateKernels().update({.weights = weights + first,
                            .velocity = velocity == nullptr ? nullptr : velocity + first,
                            .gradient = theirs,
                            .pull = pull,
                            .rate = itsRate,
                            .momentum = momentum,
                            .count = count});
  }
};

/// values += others
inline void addTo(float* values, const float* others, std::size_t count) {
  void* const destination = values;
  const void* const sources[] = {values, others};
  static const ReduceKernel sum = reduceKernel(taccFloat32, taccSum);
  sum({.destinations = &destination, .destinationCount = 1, .sources = sources, .sourceCount = 2, .count = count});
}

/// `work(first, count)` for pieces of [first, first + count) whose arrays stay in the L1 cache.
template <class Work>
void forEachTile(std::size_t first, std::size_t count, const Work& work) {
  for (std::size_t done = 0; done < count; done += updateTile) work(first + done, std::min(updateTile, count - done));
}

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
