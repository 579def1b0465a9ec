// The algorithms, each defined in the file of its name.
#pragma once

#include "algorithms/registry.hpp"

// clang-format off
/// each(NAME) for every algorithm, in the order in which they are documented: NAMEAlgorithm is its definition.
#define TACC_ALGORITHMS(each) \
  each(oneshot) \
  each(twoshot) \
  each(ring) \
  each(recursiveDoubling) \
  each(halvingDoublingFar) \
  each(halvingDoublingNear) \
  each(circulant) \
  each(binomial) \
  each(knomial4) \
  each(knomial8) \
  each(bine) \
  each(swing) \
  each(doubleTree) \
  each(chain) \
  each(circulantPipeline) \
  each(pat) \
  each(ring2d) \
  each(hierarchical) \
  each(hierarchicalRing) \
  each(multilane) \
  each(groupChains) \
  each(narrowLeaves) \
  each(groupRing) \
  each(parameterServer)
// clang-format on

namespace tacc {

#define TACC_DECLARE(name) extern const Algorithm name##Algorithm;
TACC_ALGORITHMS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc
