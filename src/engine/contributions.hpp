// How many ranks' contributions each result of a plan holds.
#pragma once

#include <vector>

#include "algorithms/plan.hpp"
#include "engine/happens_before.hpp"

namespace tacc {

/// Of a reduction's plan: for every rank and step, per block of the step, the number of contributions in the result.
struct Contributions {
  std::vector<std::vector<std::vector<int>>> ofStep;  // [rank][step][block of the step]
  bool allAtOnce = true;                              // every reducing step takes single contributions and all of them
};
Contributions countContributions(const Plan& plan, const std::vector<PlanMessage>& messages);

}  // namespace tacc
