// The part of a plan that one rank runs, without the steps of the others.
#pragma once

#include <string>

#include "algorithms/plan.hpp"
#include "algorithms/step_list.hpp"

namespace tacc {

struct LocalPlan {
  PlanRequest request;
  std::string algorithm;
  int rank = 0;
  int blocks = 1;         // as in Plan
  int scratchBlocks = 0;  // that this rank needs
  StepList steps;         // in order of rounds
};

/// What `rank` runs of `plan`.
LocalPlan localPlanOf(const Plan& plan, int rank);

}  // namespace tacc
