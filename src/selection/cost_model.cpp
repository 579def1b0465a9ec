#include "selection/cost_model.hpp"

#include "selection/cost_load.hpp"

namespace tacc {

ChunkCost priceChunk(const Exchanges& exchanges, const PlanRequest& request, const CostMap& map, double bytes,
                     int mostRanks) {
  const bool isSplit = partitionOf(request.collective) == Partition::split;
  CostLoad load(map, isSplit ? bytes / exchanges.blocks : bytes, mostRanks);
  return load.priceOf(exchanges);
}

Exchanges exchangesOf(const Algorithm& algorithm, const PlanRequest& request) {
  if (request.ranks == 1) return {1, {Copy{}}};
  return algorithm.exchanges(request);
}

std::optional<double> predict(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                              const CostCall& call) {
  if (!algorithm.serves(request)) return std::nullopt;
  const int chunks = chunksOf(call);
  const ChunkCost chunk = priceChunk(exchangesOf(algorithm, request), request, map, call.bytes / chunks);
  return secondsOf(chunk, chunks, std::max(1, call.window));
}

}  // namespace tacc
