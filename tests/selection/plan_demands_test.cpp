// What a call asks of its plan, held against the plans themselves on drawn networks.
#include "algorithms/plan_demands.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "algorithms/block_names.hpp"
#include "algorithms/verifier.hpp"
#include "core/error.hpp"
#include "draw.hpp"
#include "drawn_network.hpp"
#include "selection/network_selector.hpp"

namespace tacc::test {
namespace {

/// Every message of the plan carries a block that comes from its sender and goes to its receiver.
bool isStraight(const Plan& plan) {
  const int p = plan.request.ranks;
  for (int rank = 0; rank < p; ++rank)
    for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) {
      const int name = nameOfBlock(plan.request, rank, step);
      if (plan.request.collective == Collective::allToAll ? name / p != rank && name % p != rank
                                                          : name != rank && plan.request.root != rank)
        return false;
    }
  return true;
}

/// By the whole plan of this layout, and not by what the algorithm says of itself. A tree that has one level for this
/// number of ranks is straight and does not say so; such a plan is not asked for.
bool isAsAsked(const Algorithm& algorithm, const PlanRequest& request, const PlanDemands& demands) {
  if (!algorithm.serves(request) || (demands.oneRounding && !algorithm.sumsInOnePass)) return false;
  const Plan plan = makePlan(algorithm, request);
  const Certificate certificate = verify(plan);
  if (demands.namedBlocks && !verifyNames(plan)) return false;
  if (demands.straightBlocks && (!goesStraight(algorithm.exchanges(request)) || !isStraight(plan))) return false;
  if (!demands.rankOrder || !isReduction(request.collective)) return true;
  const Certificate inOrder = verify(makePlan(*findAlgorithm("oneshot"), request));
  return isPrefix(request.collective) ? certificate.reductionSequence == inOrder.reductionSequence
                                      : certificate.reductionOrder == inOrder.reductionOrder;
}

PlanDemands drawDemands(Draw& draw, Collective collective) {
  if (isOneOf(collective, {Collective::gather, Collective::scatter, Collective::allToAll}))
    return {.straightBlocks = draw.chance(0.7)};
  const bool isStack = isOneOf(collective, {Collective::allGather, Collective::reduceScatter});
  return {.rankOrder = draw.chance(0.5),
          .namedBlocks = isStack && draw.chance(0.5),
          .oneRounding = isReduction(collective) && draw.chance(0.3)};
}

TEST(PlanDemands, areMetByTheFastestPlanThatMeetsThem) {
  std::map<Collective, int> asked;
  std::map<std::string, int> forcedAsItIs, refused;
  for (std::uint64_t number = 0; number < 60; ++number) {
    Draw draw(number);
    const OddNetwork network = drawOddNetwork(number, 10);
    NetworkSelector selector(
        costMachineOf(network.topology, network.topology.hostNames(), network.ranksOf, NetworkSpeed{}));
    for (int c = 0; c < collectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      const PlanDemands demands = drawDemands(draw, collective);
      if (demands == PlanDemands{}) continue;
      const int root = isRooted(collective) ? draw.below(selector.ranks()) : 0;
      const auto bytes = static_cast<std::size_t>(draw.logUniform(8, 16e6));
      const PlanRequest request = selector.request(collective, root);
      const std::string where = std::string(nameOf(collective)) + " on " + describeNetwork(network.topology) +
                                ", root " + std::to_string(root);
      const Algorithm& chosen = selector.choose(collective, root, bytes, {}, demands);
      EXPECT_TRUE(isAsAsked(chosen, request, demands)) << chosen.name << ": " << where;
      bool isBefore = true;
      for (const NetworkCandidate& one : selector.explain(collective, root, bytes)) {
        if (one.algorithm == &chosen) isBefore = false;
        if (!isBefore || !one.isPossible) continue;
        EXPECT_FALSE(isAsAsked(*one.algorithm, request, demands)) << one.algorithm->name << " is faster: " << where;
      }
      const Algorithm& forced =
          algorithms()[static_cast<std::size_t>(draw.below(static_cast<int>(algorithms().size())))];
      if (!forced.serves(request)) continue;
      const bool isMet = isAsAsked(forced, request, demands);
      try {
        EXPECT_EQ(&selector.choose(collective, root, bytes, forced.name, demands), &forced);
        EXPECT_TRUE(isMet) << forced.name << ": " << where;
        ++forcedAsItIs[std::string(forced.name)];
      } catch (const Error& error) {
        EXPECT_FALSE(isMet) << error.what() << ": " << where;
        const std::string message = error.what();
        EXPECT_EQ(message.find(std::string("algorithm ") + std::string(forced.name)), 0U) << message;
        EXPECT_NE(message.find(std::string(chosen.name), message.rfind(": ")), std::string::npos) << message;
        ++refused[std::string(forced.name)];
      }
      ++asked[collective];
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(asked.size(), 9U);
  EXPECT_GE(forcedAsItIs.size(), 3U);
  EXPECT_GE(refused.size(), 6U);
}

/// Many ranks: a layout that no proof covers is not taken to be in order.
TEST(PlanDemands, ofManyRanksInALayoutNeedNoFaith) {
  PlanRequest request{Collective::allReduce, 600, 0};
  request.groups = {std::vector<int>(20, 30)};
  int followers = 0, inOrder = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.serves(request)) continue;
    const bool isMet = meets(algorithm, request, {.rankOrder = true});
    followers += algorithm.looksAtLayout ? 1 : 0;
    inOrder += isMet ? 1 : 0;
    EXPECT_FALSE(algorithm.looksAtLayout && isMet) << algorithm.name;
    EXPECT_FALSE(algorithm.sumsInOnePass && !isMet) << algorithm.name;
  }
  EXPECT_GT(followers, 0);
  EXPECT_GT(inOrder, 0);
}

}  // namespace
}  // namespace tacc::test
