#include "algorithms/registry.hpp"

#include <array>

#include "algorithms/catalogue.hpp"

namespace tacc {

std::span<const Algorithm> algorithms() {
  static const std::array all = {
      oneshotAlgorithm,
      twoshotAlgorithm,
      ringAlgorithm,
      recursiveDoublingAlgorithm,
      halvingDoublingFarAlgorithm,
      halvingDoublingNearAlgorithm,
      circulantAlgorithm,
      binomialAlgorithm,
      knomial4Algorithm,
      knomial8Algorithm,
      bineAlgorithm,
      swingAlgorithm,
      doubleTreeAlgorithm,
      chainAlgorithm,
      circulantPipelineAlgorithm,
      patAlgorithm,
      ring2dAlgorithm,
      hierarchicalAlgorithm,
      hierarchicalRingAlgorithm,
      groupChainsAlgorithm,
      parameterServerAlgorithm,
  };
  return all;
}

const Algorithm* findAlgorithm(std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace tacc
