// What a call would take, from patterns of its messages: microseconds to a millisecond for tens of thousands of ranks.
#pragma once

#include <optional>

#include "algorithms/registry.hpp"
#include "selection/cost_load.hpp"
#include "selection/cost_machine.hpp"
#include "selection/cost_simulator.hpp"

namespace tacc {

/// Seconds that simulate() would find for this algorithm's plan, nearly: within 15 % in 97 of 100 cases of the tests,
/// on machines of one, two and three levels, and never off by half. nullopt: it does not serve the request, or nobody
/// has told how the algorithm exchanges.
std::optional<double> predict(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                              const CostCall& call);

/// The same for one chunk of `bytes`, from which calls of any number of chunks of this size can be priced.
std::optional<ChunkCost> priceChunk(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                                    double bytes);

/// Blocks of the plan that the algorithm would write for a request which it serves.
int blocksOf(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace tacc
