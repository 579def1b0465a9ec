#include "engine/shm/program_cache.hpp"

#include <algorithm>

#include "algorithms/registry.hpp"
#include "algorithms/relabel.hpp"
#include "algorithms/use_proof.hpp"

namespace tacc {

CachedProgram& ProgramCache::get(const Algorithm& algorithm, const PlanRequest& request, const LoweringFacts& facts,
                                 int layout, const std::vector<int>* order) {
  const auto number = static_cast<std::uint64_t>(&algorithm - algorithms().data());
  const std::uint64_t key =
      static_cast<std::uint64_t>(request.root) << 32 | static_cast<std::uint64_t>(order != nullptr) << 31 |
      static_cast<std::uint64_t>(layout) << 24 | number << 16 | static_cast<std::uint64_t>(request.collective) << 8 |
      (facts.pipes ? 64U : 0U) | static_cast<std::uint64_t>(facts.input) << 4 | (facts.readsTwice ? 8U : 0U) |
      static_cast<std::uint64_t>(facts.output) << 1 | (facts.inPlace ? 1U : 0U);
  auto& entry = programs_[key];
  if (!entry) {
    auto fresh = std::make_unique<CachedProgram>();
    proveForUse(algorithm, request);
    const Plan plan = makePlan(algorithm, request);
    fresh->program = lower(order == nullptr ? plan : relabelled(plan, *order), rank_, facts);
    entry = std::move(fresh);
  }
  return *entry;
}

void ProgramCache::demand(CachedProgram& cached, const Algorithm& algorithm, const PlanRequest& request,
                          const PlanDemands& demands) {
  if (demands == PlanDemands{} || std::ranges::find(cached.met, demands) != cached.met.end()) return;
  if (!meets(algorithm, request, demands)) failOnDemands(algorithm, request, demands);
  cached.met.push_back(demands);
}

}  // namespace tacc
