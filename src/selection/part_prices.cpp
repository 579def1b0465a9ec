#include "selection/part_prices.hpp"

#include "algorithms/result_split.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/cost/cost_simulator.hpp"

namespace tacc {
namespace {

/// Of either part: 0.15 s.
constexpr double mostWork = 6e6;

void append(Plan& plan, const LocalPlan& part) {
  plan.blocks = part.blocks;
  RankPlan& mine = plan.ranks.emplace_back();
  part.steps.forEach([&mine](const Step& step) { mine.steps.push_back(step); });
}

}  // namespace

std::optional<PartPrices> priceParts(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                                     double sumBytes, double resultBytes, double messageBytes) {
  if (request.ranks > mostRanksPlayed) return std::nullopt;
  Plan sums, results;
  for (Plan* part : {&sums, &results}) part->request = request;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const ResultSplit split = splitAtResults(makeLocalPlan(algorithm, request, rank));
    append(sums, split.sums);
    append(results, split.results);
  }
  const double chunkBytes = messageBytes * sums.blocks;
  double budget = mostWork;
  const auto first = simulateLong(sums, map, {sumBytes, chunkBytes}, budget);
  budget = mostWork;
  const auto second = simulateLong(results, map, {resultBytes, chunkBytes * resultBytes / sumBytes}, budget);
  if (!first || !second) return std::nullopt;
  return PartPrices{*first, *second};
}

}  // namespace tacc
