// What is played of the exchanges that algorithms state is what is played of their plans.
#include "selection/cost/play_part.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "draw.hpp"
#include "drawn_network.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/network_selector.hpp"

namespace tacc::test {
namespace {

constexpr double enough = 1e12;

/// Of exchanges, every rank for itself or one for all that are alike, in at most 20 chunks. nullopt: they are not
/// played.
std::optional<double> playExchanges(const Exchanges& exchanges, const PlanRequest& request, const CostMap& map,
                                    const CostCall& call, bool isOneForAll) {
  double budget = enough;
  const RankClasses classes = isOneForAll ? classesOf(exchanges, map, budget).value() : separate(map);
  return simulateLong(exchanges, request, classes, map, call, budget);
}

/// Of drawn networks, collectives, roots, sizes and cuts.
TEST(PhaseParts, PlayAsThePlansOfDrawnCalls) {
  int played = 0, within = 0, near = 0;
  for (std::uint64_t number = 0; number < 60; ++number) {
    Draw draw(number + 7000);
    const OddNetwork odd = drawOddNetwork(number, 20);
    const bool isOdd = draw.chance(0.5);
    const Topology network = isOdd ? odd.topology : drawNetwork(number, 40);
    const std::vector<std::string> hosts = network.hostNames();
    const std::vector<int> ranksOf = isOdd ? odd.ranksOf : std::vector<int>(hosts.size(), 1);
    const NetworkSelector selector(costMachineOf(network, hosts, ranksOf, {}));
    const CostMap map(selector.machine());
    for (int c = 0; c < collectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      const PlanRequest request = selector.request(collective, isRooted(collective) ? draw.below(map.ranks()) : 0);
      const double bytes = draw.logUniform(8, 1e7);
      const CostCall call{bytes, draw.chance(0.5) ? 0 : bytes / draw.between(2, 6), 4};
      for (const Algorithm& algorithm : algorithms()) {
        if (request.ranks < 2 || !algorithm.serves(request)) continue;
        const Exchanges exchanges = exchangesOf(algorithm, request);
        const auto each = playExchanges(exchanges, request, map, call, false);
        EXPECT_EQ(each.has_value(), PhaseParts::stepsOf(exchanges, map.ranks()).has_value()) << algorithm.name;
        if (!each) continue;
        const double whole = simulate(makePlan(algorithm, request), map, call);
        const double one = playExchanges(exchanges, request, map, call, true).value();
        for (const double found : {*each, one}) {
          const double off = std::abs(found / whole - 1);
          ++played;
          within += off < 0.02 ? 1 : 0;
          near += off < 0.1 ? 1 : 0;
          EXPECT_LT(off, 0.3) << algorithm.name << " " << nameOf(collective) << ", " << bytes << " bytes, "
                              << describeNetwork(network);
        }
      }
    }
  }
  fmt::print("{} of {} calls played from exchanges within 2 %, {} within 10 %\n", within, played, near);
  EXPECT_GT(played, 2000);
  EXPECT_GT(within, 0.99 * played);
}

TEST(PhaseParts, LeaveOutWhatIsPricedWellWithout) {
  const auto stepsOf = [](const char* name, Collective collective, int p) {
    return PhaseParts::stepsOf(exchangesOf(*findAlgorithm(name), {collective, p, 0}), p);
  };
  EXPECT_TRUE(stepsOf("ring", Collective::allReduce, 64));
  EXPECT_FALSE(stepsOf("ring", Collective::allReduce, 4096)) << "thousands of messages of each rank";
  EXPECT_FALSE(stepsOf("oneshot", Collective::allGather, 8)) << "everybody to everybody";
  EXPECT_FALSE(stepsOf("binomial", Collective::gather, 64)) << "messages of unequal lengths along a tree";
}

}  // namespace
}  // namespace tacc::test
