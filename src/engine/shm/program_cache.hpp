// Programs by what they depend on, so that a repeated call neither plans nor allocates.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "algorithms/plan_demands.hpp"
#include "algorithms/registry.hpp"
#include "engine/schedule.hpp"
#include "engine/shm/program.hpp"

namespace tacc {

struct CachedProgram {
  Program program;
  std::vector<PlanDemands> met;  // that the plan was found to meet

  /// How it runs over `count` elements, until the next call of this: kept from the last call, as repeated ones have the
  /// same count, or made within `limits()`.
  template <class Limits>
  const Schedule& scheduleFor(std::size_t count, std::size_t elementBytes, const Limits& limits) {
    if (count_ != count || elementBytes_ != elementBytes) {
      schedule_ = makeSchedule(program, count, elementBytes, limits());
      count_ = count;
      elementBytes_ = elementBytes;
    }
    return schedule_;
  }

 private:
  Schedule schedule_;
  std::size_t count_ = 0;
  std::size_t elementBytes_ = 0;
};

class ProgramCache {
 public:
  explicit ProgramCache(int rank) : rank_(rank) {}

  /// The program for `request` by `algorithm` under `facts`; planned, lowered and kept at its first use. `layout`: the
  /// number of the groups that the request has. `order`: null, or the rank at each place, where the request's ranks are
  /// places; one for all requests.
  CachedProgram& get(const Algorithm& algorithm, const PlanRequest& request, const LoweringFacts& facts, int layout = 0,
                     const std::vector<int>* order = nullptr);

  /// Fails (taccInvalidUsage) where the plan of what get() returned does not meet the demands; proven the first time.
  static void demand(CachedProgram& cached, const Algorithm& algorithm, const PlanRequest& request,
                     const PlanDemands& demands);

 private:
  int rank_;
  std::unordered_map<std::uint64_t, std::unique_ptr<CachedProgram>> programs_;
};

}  // namespace tacc
