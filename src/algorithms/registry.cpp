#include "algorithms/registry.hpp"

#include <algorithm>
#include <array>

#include "algorithms/catalogue.hpp"

namespace tacc {

std::span<const Algorithm> algorithms() {
#define TACC_LIST(name) name##Algorithm,
  static const std::array all = {TACC_ALGORITHMS(TACC_LIST)};
#undef TACC_LIST
  return all;
}

const Algorithm* findAlgorithm(std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

std::string namesOfThose(const std::function<bool(const Algorithm&)>& isOne) {
  std::string names;
  for (const Algorithm& algorithm : algorithms())
    if (isOne(algorithm)) names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  return names;
}

LocalPlan makeLocalPlan(const Algorithm& algorithm, const PlanRequest& request, int rank) {
  PlanWriter writer(request, algorithm.name, rank);
  if (request.ranks == 1) {
    if (outputBlocksOf(request, 1, 0) > 0) writer.step(0, 0, 1, {input(0)}, {output(0)});
  } else {
    algorithm.write(request, writer);
  }
  return writer.finish();
}

Plan makePlan(const Algorithm& algorithm, const PlanRequest& request) {
  Plan plan{request, std::string(algorithm.name), 1, 0, 0, {}};
  plan.ranks.resize(static_cast<std::size_t>(request.ranks));
  for (int rank = 0; rank < request.ranks; ++rank) {
    const LocalPlan local = makeLocalPlan(algorithm, request, rank);
    plan.blocks = local.blocks;
    plan.scratchBlocks = std::max(plan.scratchBlocks, local.scratchBlocks);
    plan.rounds = std::max(plan.rounds, local.steps.lastRound() + 1);
    std::vector<Step>& steps = plan.ranks[static_cast<std::size_t>(rank)].steps;
    steps.reserve(local.steps.size());
    local.steps.forEach([&](const Step& step) { steps.push_back(step); });
  }
  return plan;
}

}  // namespace tacc
