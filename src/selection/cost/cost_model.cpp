#include "selection/cost/cost_model.hpp"

#include <cstdint>

#include "selection/cost/cost_load.hpp"
#include "selection/cost/play_part.hpp"
#include "selection/cost/rank_classes.hpp"

namespace tacc {
namespace {

/// Telling apart more ranks than that takes longer than a choice may.
constexpr int mostRanksTold = 16384;
/// Writing the steps of more ranks that differ does; what they exchange is played instead.
constexpr int mostRanksWritten = 1024;
/// Of ranks that look at all others to write their steps.
constexpr std::int64_t mostLooks = 1 << 21;
/// Of a plan whose price is to be quick: 25 ms.
constexpr double quickWork = 1e6;

}  // namespace

ChunkCost priceChunk(const Exchanges& exchanges, const PlanRequest& request, const CostMap& map, double bytes,
                     int mostRanks) {
  const bool isSplit = partitionOf(request.collective) == Partition::split;
  CostLoad load(map, isSplit ? bytes / exchanges.blocks : bytes, mostRanks);
  return load.priceOf(exchanges, isPrefix(request.collective));
}

Exchanges exchangesOf(const Algorithm& algorithm, const PlanRequest& request) {
  if (request.ranks == 1) return {1, {Copy{}}};
  return algorithm.exchanges(request);
}

std::optional<double> play(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                           const CostCall& call, double& budget) {
  if (request.ranks > mostRanksTold) return std::nullopt;
  const Exchanges exchanges = exchangesOf(algorithm, request);
  const bool isQuickToList = request.ranks > mostRanksPlayed && PhaseParts::stepsOf(exchanges, map.ranks());
  if (!isQuickToList && request.ranks > mostRanksWritten) return std::nullopt;
  const std::optional<RankClasses> classes = classesOf(exchanges, map, budget);
  if (!classes) return std::nullopt;
  if (isQuickToList) return simulateLong(exchanges, request, *classes, map, call, budget);
  if (request.ranks > mostRanksPlayed && std::int64_t{classes->count()} * request.ranks > mostLooks)
    return std::nullopt;
  return simulateLong(algorithm, request, *classes, map, call, budget);
}

std::optional<double> predict(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                              const CostCall& call) {
  if (!algorithm.serves(request)) return std::nullopt;
  double budget = quickWork;
  if (const auto played = play(algorithm, request, map, call, budget)) return played;
  const int chunks = chunksOf(call);
  const ChunkCost chunk = priceChunk(exchangesOf(algorithm, request), request, map, call.bytes / chunks);
  return secondsOf(chunk, chunks, std::max(1, call.window));
}

}  // namespace tacc
