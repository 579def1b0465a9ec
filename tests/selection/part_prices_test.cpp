// Prices of an allreduce whose two parts travel in different widths.
#include "selection/part_prices.hpp"

#include <gtest/gtest.h>

#include "drawn_network.hpp"
#include "selection/cost/cost_simulator.hpp"
#include "selection/network_selector.hpp"

namespace tacc::test {
namespace {

TEST(PartPrices, OfARingAreTheFormulas) {
  constexpr double alpha = 1e-5, beta = 1e-9, sums = 4e6, results = 2e6;
  for (const int p : {2, 3, 5, 8, 16}) {
    const CostMap map({p, {{{0}, alpha, beta, 0}}, 0, 0, 0});
    const auto parts = priceParts(*findAlgorithm("ring"), {Collective::allReduce, p, 0}, map, sums, results, sums);
    ASSERT_TRUE(parts);
    EXPECT_NEAR(parts->sums, (p - 1) * (alpha + sums / p * beta), 1e-9) << p;
    EXPECT_NEAR(parts->results, (p - 1) * (alpha + results / p * beta), 1e-9) << p;
  }
}

/// In one width and in one chunk the parts one after the other are about the whole, of which the second may begin
/// before the first has ended everywhere, and then shares its links: half of the whole at least.
TEST(PartPrices, OfEveryAlgorithmAddUpToTheWhole) {
  constexpr double bytes = 1e6, slack = 0.03;
  int priced = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    const Topology network = drawNetwork(number, 12);
    const std::vector<std::string> hosts = network.hostNames();
    const NetworkSelector selector(costMachineOf(network, hosts, std::vector<int>(hosts.size(), 1), {}));
    const CostMap map(selector.machine());
    const PlanRequest request = selector.request(Collective::allReduce, 0);
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.serves(request)) continue;
      const double whole = simulate(makePlan(algorithm, request), map, {bytes, 0, 4});
      const auto parts = priceParts(algorithm, request, map, bytes, bytes, bytes);
      ASSERT_TRUE(parts);
      EXPECT_GT(parts->sums, 0) << algorithm.name << " on network " << number;
      EXPECT_GT(parts->sums + parts->results, 0.5 * whole) << algorithm.name << " on network " << number;
      EXPECT_LT(std::max(parts->sums, parts->results), (1 + slack) * whole) << algorithm.name << " on " << number;
      ++priced;
    }
  }
  EXPECT_GT(priced, 200);
}

TEST(PartPrices, OfTooManyRanksAreNotFound) {
  const CostMap map({300, {{{0}, 1e-5, 1e-9, 0}}, 0, 0, 0});
  EXPECT_FALSE(priceParts(*findAlgorithm("ring"), {Collective::allReduce, 300, 0}, map, 1e6, 1e6, 1e6));
}

}  // namespace
}  // namespace tacc::test
