#include "algorithms/plan_demands.hpp"

#include "algorithms/block_names.hpp"
#include "algorithms/rank_order.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

bool namesBlocks(const Algorithm& algorithm, const PlanRequest& request) {
  const auto isNamed = [&](const PlanRequest& one) {
    return algorithm.serves(one) && verifyNames(makePlan(algorithm, one));
  };
  if (request.ranks <= mostRanksProven) return isNamed(request);
  return !followsLayout(algorithm, request) && isNamed({request.collective, mostRanksProven, 0}) &&
         isNamed({request.collective, mostRanksProven - 1, 0});
}

std::string describe(const PlanRequest& request, const PlanDemands& demands) {
  const bool isUnequal = demands.namedBlocks || demands.straightBlocks;
  return fmt::format("{}{}{} of {} ranks", nameOf(request.collective), isUnequal ? "v" : "",
                     demands.oneRounding ? " of 16-bit numbers" : "", request.ranks);
}

}  // namespace

bool meets(const Algorithm& algorithm, const PlanRequest& request, const PlanDemands& demands) {
  return algorithm.serves(request) && (!demands.oneRounding || algorithm.sumsInOnePass) &&
         (!demands.straightBlocks || goesStraight(algorithm.exchanges(request))) &&
         (!demands.namedBlocks || namesBlocks(algorithm, request)) &&
         (!demands.rankOrder || combinesInRankOrder(algorithm, request));
}

void failOnDemands(const Algorithm& algorithm, const PlanRequest& request, const PlanDemands& demands) {
  const std::string those = namesOfThose([&](const Algorithm& other) { return meets(other, request, demands); });
  PlanDemands orderless = demands;
  orderless.rankOrder = false;
  if (demands.rankOrder && meets(algorithm, request, orderless))
    fail(taccInvalidUsage,
         "algorithm {} combines in an order of its own, and the communicator is reproducible; for {} these combine in "
         "the order of the ranks: {}",
         algorithm.name, describe(request, demands), those);
  fail(taccInvalidUsage, "algorithm {} does not serve {}; these do: {}", algorithm.name, describe(request, demands),
       those);
}

}  // namespace tacc
