#include "comm/program_cache.hpp"

#include "algorithms/registry.hpp"

namespace tacc {

CachedProgram& ProgramCache::get(const Algorithm& algorithm, const PlanRequest& request, const LoweringFacts& facts) {
  const auto number = static_cast<std::uint64_t>(&algorithm - algorithms().data());
  const std::uint64_t key = static_cast<std::uint64_t>(request.root) << 32 | number << 16 |
                            static_cast<std::uint64_t>(request.collective) << 8 |
                            static_cast<std::uint64_t>(facts.input) << 4 |
                            static_cast<std::uint64_t>(facts.output) << 1 | (facts.inPlace ? 1U : 0U);
  auto& entry = programs_[key];
  if (!entry) {
    auto fresh = std::make_unique<CachedProgram>();
    fresh->program = lower(makePlan(algorithm, request), rank_, facts);
    entry = std::move(fresh);
  }
  return *entry;
}

}  // namespace tacc
