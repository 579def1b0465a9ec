// A convolution of a batch as those of its parts, for plans that copy images on the way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "compute/conv/algorithms.hpp"
#include "core/error.hpp"

namespace tacc::conv {

/// Images of a part: the most of which the batch is a multiple, and that have `bytesOfImage` each in `bytes`; one, if
/// none have.
inline int imagesOfPart(int batch, std::size_t bytesOfImage, std::size_t bytes) {
  const auto most = static_cast<int>(std::clamp<std::size_t>(bytes / bytesOfImage, 1, static_cast<std::size_t>(batch)));
  for (int images = most; images > 1; --images)
    if (batch % images == 0) return images;
  return 1;
}

/// What runs the parts after the first: a plan of the same algorithm that adds, for a gradient of weights that does not
/// add by itself; null where that of the first part runs all. `make` made the first.
template <class Make>
std::unique_ptr<ConvPlan> makeNextPart(Description part, const ChosenPlan& first, const KernelSet& kernels, Make make) {
  if (part.pass != taccConvBackwardWeights || part.accumulate) return nullptr;
  part.accumulate = true;
  part.algorithm = first.algorithm;
  std::unique_ptr<ConvPlan> next = make(part, kernels).plan;
  if (next == nullptr) fail(taccInternalError, "{} does not serve a gradient that is added up", first.algorithm);
  return next;
}

}  // namespace tacc::conv
