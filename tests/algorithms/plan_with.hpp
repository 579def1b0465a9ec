// The whole plan of an algorithm on a layout.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/registry.hpp"

namespace tacc {

/// From root 0; `groups` and `dimensions` as in PlanRequest.
inline Plan planWith(std::string_view name, Collective collective, int p, std::vector<std::vector<int>> groups,
                     std::vector<int> dimensions = {}) {
  return makePlan(*findAlgorithm(name), {collective, p, 0, std::move(groups), std::move(dimensions)});
}

}  // namespace tacc
