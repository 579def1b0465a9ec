// What a call would take, from what its plan exchanges: microseconds to some tens of milliseconds for tens of thousands
// of ranks.
#pragma once

#include <optional>

#include "algorithms/registry.hpp"
#include "selection/cost/cost_load.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/cost_simulator.hpp"

namespace tacc {

/// Seconds that simulate() would find for this algorithm's plan, nearly: played where that is little work, else as
/// priceChunk() says. nullopt: it does not serve the request.
std::optional<double> predict(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                              const CostCall& call);

/// Message by message, one rank for all that are alike; up to mostRanksPlayed each for itself where they are not. Takes
/// the work from `budget` as simulateLong() does; nullopt: that is too little, or there are too many ranks.
std::optional<double> play(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                           const CostCall& call, double& budget);

/// Plans between more ranks than that are played only where many are alike, or little happens to each.
inline constexpr int mostRanksPlayed = 256;

/// From the patterns alone, for one chunk of `bytes`, from which calls of any number of chunks of this size can be
/// priced. Exchanges of more than `mostRanks` are followed on the ranks of some groups only (CostLoad).
ChunkCost priceChunk(const Exchanges& exchanges, const PlanRequest& request, const CostMap& map, double bytes,
                     int mostRanks = 2048);

/// The exchanges of a request that the algorithm serves, also of a single rank.
Exchanges exchangesOf(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace tacc
