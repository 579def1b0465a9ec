// What an allreduce would take whose sums and results travel in different widths, part by part.
#pragma once

#include <cstddef>
#include <optional>

#include "algorithms/registry.hpp"
#include "selection/cost/cost_machine.hpp"

namespace tacc {

/// Seconds.
struct PartPrices {
  double sums = 0;     // until every block is complete somewhere: a reduce-scatter
  double results = 0;  // until all ranks have all of them: an allgather
};

/// The prices of both parts of an algorithm's allreduce (algorithms/result_split.hpp), one run after the other, found
/// by playing both. `messageBytes`: of the sums; results are cut at the same numbers. nullopt: it would take too long.
std::optional<PartPrices> priceParts(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                                     double sumBytes, double resultBytes, double messageBytes);

}  // namespace tacc
