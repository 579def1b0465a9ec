// The simulator against what can be worked out by hand, and what must hold for every plan.
#include "selection/cost/cost_simulator.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/registry.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

constexpr double alpha = 1e-5, beta = 1e-9;

CostMap flat(int ranks, double overhead = 0, double gamma = 0) {
  return CostMap({ranks, {{{0}, alpha, beta, 0}}, 0, gamma, overhead});
}

/// Groups of `size` whose uplinks carry `capacity` streams at full speed.
CostMap grouped(int ranks, int size, double streams) {
  return CostMap(
      {ranks, {{groupsOfSize(ranks, size), alpha, beta, streams / beta}, {{0}, 2 * alpha, beta, 0}}, 0, 0, 0});
}

Plan planOf(std::string_view name, Collective collective, int p) {
  return makePlan(*findAlgorithm(name), {collective, p, 0});
}

double seconds(std::string_view name, int p, double bytes, const CostMap& map, double chunk = 0) {
  return simulate(planOf(name, Collective::allReduce, p), map, {bytes, chunk, 4});
}

TEST(Simulator, AgreesWithFormulas) {
  const double n = 1e6;
  for (const int p : {2, 4, 8, 16}) {
    const int lg = static_cast<int>(std::log2(p));
    EXPECT_NEAR(seconds("ring", p, n, flat(p)), 2 * (p - 1) * (alpha + n / p * beta), 1e-9) << p;
    EXPECT_NEAR(seconds("recursive_doubling", p, n, flat(p)), lg * (alpha + n * beta), 1e-9) << p;
    EXPECT_NEAR(seconds("halving_doubling_near", p, n, flat(p)), 2 * lg * alpha + 2 * n * (p - 1) / p * beta, 1e-9);
    EXPECT_NEAR(seconds("parameter_server", p, n, flat(p)), 2 * (alpha + (p - 1) * n * beta), 1e-9);
    EXPECT_NEAR(seconds("oneshot", p, n, flat(p)), alpha + (p - 1) * n * beta, 1e-9);
  }
}

TEST(Simulator, ChargesTheCpu) {
  const double n = 1e6, overhead = 1e-6, gamma = 2e-10;
  // Two ranks, one exchange: send, then receive and add.
  EXPECT_NEAR(seconds("recursive_doubling", 2, n, flat(2, overhead, gamma)),
              overhead + n * beta + alpha + overhead + gamma * n, 1e-12);
}

TEST(Simulator, ChunksFollowOneAnother) {
  const Plan chain = planOf("chain", Collective::broadcast, 5);
  const double n = 8e6;
  const double whole = simulate(chain, flat(5), {n, 0, 4}), cut = simulate(chain, flat(5), {n, n / 16, 4});
  EXPECT_LT(cut, whole);
  EXPECT_GT(cut, n * beta) << "every byte leaves the root once";
  const Plan ring = planOf("ring", Collective::allReduce, 5);
  const double together = simulate(ring, flat(5), {1e5, 1e4, 4}), alone = simulate(ring, flat(5), {1e5, 1e4, 1});
  EXPECT_NEAR(alone, 10 * 8 * (alpha + 2e3 * beta), 1e-9) << "one chunk at a time waits for its end";
  EXPECT_LT(together, 0.4 * alone);
}

TEST(Simulator, UplinksAreShared) {
  const int p = 16;
  const double n = 1e7;
  // Every rank of the first half exchanges its half with one of the other: four streams share one.
  const Plan plan = planOf("halving_doubling_far", Collective::allReduce, p);
  const double wide = simulate(plan, grouped(p, 8, 8), {n, 0, 4}), narrow = simulate(plan, grouped(p, 8, 2), {n, 0, 4});
  EXPECT_NEAR(narrow - wide, 2 * (n / 2) * beta * 3, 0.01 * narrow);
}

/// The largest exchanges go near in one, far in the other: they change places when ranks are dealt round.
TEST(Simulator, OversubscribedUplinksMakeTheWrongOrderSlow) {
  const CostMap map = grouped(32, 8, 2);
  EXPECT_GT(seconds("halving_doubling_far", 32, 1e7, map), 2 * seconds("halving_doubling_near", 32, 1e7, map));
}

/// Rank r of the result is rank (r mod groups) * size + r / groups: neighbours are in different groups.
Plan dealtRound(const Plan& plan, int groups) {
  const int p = plan.request.ranks;
  const auto place = [&](int r) { return r % groups * (p / groups) + r / groups; };
  Plan dealt = plan;
  for (int r = 0; r < p; ++r) {
    RankPlan& steps = dealt.ranks[static_cast<std::size_t>(place(r))];
    steps = plan.ranks[static_cast<std::size_t>(r)];
    for (Step& step : steps.steps)
      for (auto* operands : {&step.sources, &step.destinations})
        for (Operand& operand : *operands)
          if (operand.kind == Operand::Kind::peer) operand.index = place(operand.index);
  }
  return dealt;
}

TEST(Simulator, RingsAreFastInOrderAndSlowDealtRound) {
  const int p = 32;
  const double n = 1e9;
  const CostMap map = grouped(p, 8, 2);  // 4:1
  const Plan ring = planOf("ring", Collective::allReduce, p);
  const double bound = 2 * n * (p - 1) / p * beta;
  const double inOrder = simulate(ring, map, {n, 0, 4});
  EXPECT_GE(inOrder, bound);
  EXPECT_LT(inOrder, 1.01 * bound);
  EXPECT_NEAR(simulate(dealtRound(ring, 4), map, {n, 0, 4}), 4 * bound, 0.05 * bound);
}

TEST(Simulator, MoreBytesNeverTakeLess) {
  for (const Algorithm& algorithm : algorithms()) {
    const PlanRequest request{Collective::allReduce, 12, 0, equalGroups(12, {4}), {}};
    if (!algorithm.serves(request)) continue;
    const Plan plan = makePlan(algorithm, request);
    double before = 0;
    for (const double bytes : {0.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7}) {
      const double now = simulate(plan, grouped(12, 4, 1), {bytes, 0, 4});
      EXPECT_GE(now, before) << algorithm.name << " " << bytes;
      before = now;
    }
  }
}

/// No port carries less than 2 n (p-1)/p in an allreduce, whatever the plan, chunks and window.
TEST(Simulator, TheBoundIsNeverBeaten) {
  const int p = 12;
  const double n = 1e6, bound = 2 * n * (p - 1) / p * beta;
  for (const Algorithm& algorithm : algorithms()) {
    const PlanRequest request{Collective::allReduce, p, 0, equalGroups(p, {4}), {}};
    if (!algorithm.serves(request)) continue;
    for (const double chunk : {0.0, n / 8}) {
      EXPECT_GE(simulate(makePlan(algorithm, request), grouped(p, 4, 1), {n, chunk, 4}), bound) << algorithm.name;
    }
  }
}

TEST(CostMap, RefusesWhatIsNoMachine) {
  EXPECT_THROW(CostMap({4, {}, 0, 0, 0}), Error);
  EXPECT_THROW(CostMap({4, {{{0, 2}, 1, 1, 0}}, 0, 0, 0}), Error) << "no level of all ranks";
  EXPECT_THROW(CostMap({4, {{{0, 1, 3}, 1, 1, 0}, {{0, 2}, 1, 1, 0}, {{0}, 1, 1, 0}}, 0, 0, 0}), Error) << "not nested";
  EXPECT_THROW(CostMap({4, {{{0, 4}, 1, 1, 0}, {{0}, 1, 1, 0}}, 0, 0, 0}), Error) << "an empty group";
  const CostMap map({6, {{{0, 1, 4}, 1, 1, 0}, {{0, 4}, 1, 1, 0}, {{0}, 1, 1, 0}}, 0, 0, 0});
  EXPECT_EQ(map.meet(1, 3), 0);
  EXPECT_EQ(map.meet(0, 1), 1);
  EXPECT_EQ(map.meet(3, 4), 2);
}

}  // namespace
}  // namespace tacc
