// Every algorithm, every collective that it serves, every number of ranks up to 64, every root: proven, in place too,
// and with the numbers of steps and blocks that docs/understand/algorithms.md promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <vector>

#include "algorithms/registry.hpp"
#include "algorithms/shapes.hpp"
#include "algorithms/tree.hpp"
#include "algorithms/verifier.hpp"
#include "interpreter.hpp"
#include "plan_with.hpp"
#include "support/settings.hpp"

namespace tacc {
namespace {

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, IsProvenForAllRanksAndRoots) {
  const Algorithm& algorithm = *GetParam();
  int proven = 0;
  for (int p = 1; p <= 64; ++p) {
    if (test::isQuick() && p > 20 && p % 11 != 0) continue;
    for (const PlanRequest& request : test::requestsServed(algorithm, p)) {
      const Plan plan = makePlan(algorithm, request);
      ASSERT_EQ(plan.request, request);
      ASSERT_EQ(plan.algorithm, algorithm.name);
      ASSERT_NO_THROW(verify(plan)) << test::describe(plan);
      ASSERT_NO_THROW(verify(plan, true)) << test::describe(plan) << " in place";
      ++proven;
    }
  }
  EXPECT_GE(proven, test::isQuick() ? 24 : 64);
}

TEST_P(EveryAlgorithm, IsProvenForManyRanks) {
  const Algorithm& algorithm = *GetParam();
  for (const int p : test::isQuick() ? std::vector{65} : std::vector{65, 127, 128, 129}) {
    for (const PlanRequest& request : test::requestsServed(algorithm, p)) {
      if (request.root != 0 && request.root != p - 1) continue;
      ASSERT_NO_THROW(verify(makePlan(algorithm, request))) << algorithm.name << " p=" << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithm, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                           return all;
                         }()),
                         [](const auto& param) { return std::string(param.param->name); });

/// A step of the stack for each of so many would not fit on it.
TEST(Tree, IsMeasuredAtAnyDepth) {
  constexpr int places = 300'000;
  std::vector<int> parents(places);
  std::iota(parents.begin(), parents.end(), -1);  // a chain
  const Tree tree(parents, 0);
  EXPECT_EQ(tree.node(0).size, places);
  EXPECT_EQ(tree.node(0).height, places - 1);
  const TreeNode& last = tree.node(places - 1);
  EXPECT_EQ(last.depth, places - 1);
  EXPECT_EQ(last.height, 0);
  EXPECT_EQ(tree.node(1).first, 1);
  EXPECT_EQ(tree.node(1).last, places - 1);
}

TEST(Registry, FindsEachByItsName) {
  ASSERT_FALSE(algorithms().empty());
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(findAlgorithm(algorithm.name), &algorithm) << algorithm.name << " is the name of two algorithms";
    EXPECT_FALSE(algorithm.summary.empty()) << algorithm.name;
    EXPECT_FALSE(algorithm.source.empty()) << algorithm.name;
    EXPECT_FALSE(algorithm.serves({Collective::barrier, 4, 0})) << algorithm.name;
  }
  EXPECT_EQ(findAlgorithm("rings"), nullptr);
  EXPECT_EQ(findAlgorithm(""), nullptr);
}

TEST(Registry, ServesEveryCollective) {
  for (int c = 0; c < collectiveCount; ++c) {
    for (const int p : {1, 2, 7}) EXPECT_TRUE(findAlgorithm("oneshot")->serves({static_cast<Collective>(c), p, p - 1}));
  }
  EXPECT_FALSE(findAlgorithm("recursive_doubling")->serves({Collective::allGather, 6, 0}));
  EXPECT_TRUE(findAlgorithm("recursive_doubling")->serves({Collective::allGather, 8, 0}));
}

TEST(Collectives, HaveNames) {
  for (int c = 0; c < collectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    EXPECT_EQ(collectiveNamed(nameOf(collective)), collective);
  }
  EXPECT_EQ(nameOf(Collective::barrier), "barrier");
  EXPECT_EQ(collectiveNamed("barrier"), std::nullopt);
  EXPECT_EQ(collectiveNamed("AllReduce"), std::nullopt);
}

Certificate certify(std::string_view name, Collective collective, int p) {
  return verify(makePlan(*findAlgorithm(name), {collective, p, 0}));
}

int ceilLog(int p) { return static_cast<int>(std::bit_width(static_cast<unsigned>(p - 1))); }
int floorLog(int p) { return static_cast<int>(std::bit_width(static_cast<unsigned>(p))) - 1; }

struct Cost {
  int steps;
  std::uint64_t sent;  // blocks
};

void expectCost(std::string_view name, Collective collective, int p, Cost cost) {
  const Certificate certificate = certify(name, collective, p);
  EXPECT_EQ(certificate.longestChain, cost.steps) << name << " " << nameOf(collective) << " p=" << p;
  EXPECT_EQ(certificate.maxBlocksSent, cost.sent) << name << " " << nameOf(collective) << " p=" << p;
}

TEST(Costs, AreThoseOfTheDocumentation) {
  for (int p = 2; p <= 33; ++p) {
    const auto n = static_cast<std::uint64_t>(p);
    const bool power = (p & (p - 1)) == 0;
    const auto folded = static_cast<std::uint64_t>(1) << floorLog(p);  // blocks of halving_doubling
    expectCost("oneshot", Collective::allReduce, p, {1, n - 1});
    expectCost("oneshot", Collective::reduce, p, {1, 1});
    expectCost("oneshot", Collective::allToAll, p, {1, n - 1});
    expectCost("twoshot", Collective::allReduce, p, {2, 2 * (n - 1)});
    expectCost("twoshot", Collective::reduce, p, {2, n});
    expectCost("twoshot", Collective::broadcast, p, {p == 2 ? 1 : 2, n - 1});
    expectCost("ring", Collective::allReduce, p, {2 * (p - 1), 2 * (n - 1)});
    expectCost("ring", Collective::allGather, p, {p - 1, n - 1});
    expectCost("ring", Collective::reduceScatter, p, {p - 1, n - 1});
    for (const std::string_view name : {"halving_doubling_far", "halving_doubling_near"}) {
      const int steps = 2 * floorLog(p) + (power ? 0 : 2);
      expectCost(name, Collective::allReduce, p, {steps, 2 * (folded - 1) + (power ? 0 : folded)});
    }
    const int actForTwo = p - static_cast<int>(folded);
    const int foldSteps = power ? 0 : 2 * actForTwo > static_cast<int>(folded) ? 2 : 1;
    expectCost("recursive_doubling", Collective::allReduce, p,
               {floorLog(p) + foldSteps, static_cast<std::uint64_t>(floorLog(p) + (power ? 0 : 1))});
    if (power) {
      expectCost("recursive_doubling", Collective::allGather, p, {floorLog(p), n - 1});
      expectCost("halving_doubling_far", Collective::reduceScatter, p, {floorLog(p), n - 1});
    }
    expectCost("circulant", Collective::allReduce, p, {2 * ceilLog(p), 2 * (n - 1)});
    expectCost("circulant", Collective::allGather, p, {ceilLog(p), n - 1});
    expectCost("circulant", Collective::reduceScatter, p, {ceilLog(p), n - 1});
    expectCost("binomial", Collective::broadcast, p, {floorLog(p), static_cast<std::uint64_t>(ceilLog(p))});
    expectCost("binomial", Collective::scatter, p, {floorLog(p), n - 1});
    expectCost("binomial", Collective::reduce, p, {floorLog(p), 1});
    EXPECT_EQ(certify("binomial", Collective::allReduce, p).longestChain, 2 * floorLog(p)) << p;
    expectCost("binomial", Collective::allGather, p, {2 * floorLog(p), n * static_cast<std::uint64_t>(ceilLog(p))});
    EXPECT_EQ(certify("binomial", Collective::reduceScatter, p).longestChain, 2 * floorLog(p)) << p;
    EXPECT_EQ(certify("binomial", Collective::reduceScatter, p).maxBlocksReceived,
              n * static_cast<std::uint64_t>(ceilLog(p)))
        << p;
    EXPECT_EQ(certify("binomial", Collective::gather, p).maxBlocksReceived, n - 1) << p;
    expectCost("chain", Collective::broadcast, p, {p - 1, 8});
    expectCost("chain", Collective::reduce, p, {p - 1, 8});
  }
}

int digits(int p, int radix) {
  int most = 0;
  for (int v = 0; v < p; ++v) {
    int count = 0;
    for (int rest = v; rest > 0; rest /= radix) count += rest % radix != 0 ? 1 : 0;
    most = std::max(most, count);
  }
  return most;
}

int children(int p, int radix) {
  int count = 0;
  for (int unit = 1; unit < p; unit *= radix) count += std::min(radix - 1, (p - 1) / unit);
  return count;
}

TEST(Costs, OfTreesAndButterflies) {
  for (int p = 2; p <= 65; ++p) {
    const auto n = static_cast<std::uint64_t>(p);
    const bool power = (p & (p - 1)) == 0;
    const auto folded = static_cast<std::uint64_t>(1) << floorLog(p);
    for (const int radix : {4, 8}) {
      const std::string name = "knomial_" + std::to_string(radix);
      expectCost(name, Collective::broadcast, p, {digits(p, radix), static_cast<std::uint64_t>(children(p, radix))});
      expectCost(name, Collective::reduce, p, {digits(p, radix), 1});
      expectCost(name, Collective::scatter, p, {digits(p, radix), n - 1});
      EXPECT_LE(digits(p, radix), (ceilLog(p) + (radix == 4 ? 1 : 2)) / (radix == 4 ? 2 : 3));
    }
    expectCost("bine", Collective::broadcast, p, {floorLog(p), static_cast<std::uint64_t>(ceilLog(p))});
    expectCost("bine", Collective::reduce, p, {floorLog(p), 1});
    EXPECT_EQ(certify("bine", Collective::gather, p).maxBlocksReceived, n - 1);
    for (const std::string_view name : {"bine", "swing", "halving_doubling_near"}) {
      const int steps = 2 * floorLog(p) + (power ? 0 : 2);
      expectCost(name, Collective::allReduce, p, {steps, 2 * (folded - 1) + (power ? 0 : folded)});
      if (!power) continue;
      expectCost(name, Collective::allGather, p, {floorLog(p), n - 1});
      expectCost(name, Collective::reduceScatter, p, {floorLog(p), n - 1});
    }
    expectCost("pat", Collective::allGather, p, {ceilLog(p), n - 1});
    expectCost("pat", Collective::reduceScatter, p, {ceilLog(p), n - 1});
    expectCost("parameter_server", Collective::allReduce, p, {2, n - 1});
    for (const Collective c : {Collective::broadcast, Collective::reduce}) {
      const Certificate certificate = certify("circulant_pipeline", c, p);
      EXPECT_LE(certificate.longestChain, 15 + ceilLog(p)) << p;
      EXPECT_LE(certificate.maxBlocksSent, 32u) << p;
      EXPECT_LE(certificate.maxBlocksReceived, 32u) << p;
      EXPECT_EQ(c == Collective::reduce ? certificate.maxBlocksSent : certificate.maxBlocksReceived, 16u) << p;
    }
  }
}

TEST(Costs, OfHierarchiesAreTheSumOverTheLevels) {
  for (const auto& [inner, outer, top] : {std::array{2, 2, 2}, {4, 3, 2}, {3, 5, 4}, {1, 7, 3}, {8, 1, 1}}) {
    const int p = inner * outer * top;
    const auto n = static_cast<std::uint64_t>(p);
    const auto groups = equalGroups(p, {inner, outer});
    const Certificate tree = verify(planWith("hierarchical", Collective::allReduce, p, groups));
    EXPECT_EQ(tree.longestChain, 2 * (ceilLog(inner) + ceilLog(outer) + ceilLog(top)));
    EXPECT_EQ(tree.maxBlocksSent, 2 * (n - 1));
    for (const bool asTorus : {false, true}) {
      const auto with = [&](Collective collective) {
        return verify(asTorus ? planWith("ring_2d", collective, p, {}, {top, outer, inner})
                              : planWith("hierarchical_ring", collective, p, groups));
      };
      const int steps = inner + outer + top - 3;
      EXPECT_EQ(with(Collective::allReduce).longestChain, 2 * steps);
      EXPECT_EQ(with(Collective::allReduce).maxBlocksSent, 2 * (n - 1));
      EXPECT_EQ(with(Collective::allGather).longestChain, steps);
      EXPECT_EQ(with(Collective::reduceScatter).maxBlocksSent, n - 1);
    }
  }
}

TEST(Costs, OfLanesAreALineAndTheLevelsInside) {
  for (const auto& [size, groups] : {std::pair{2, 2}, {2, 5}, {3, 4}, {8, 3}, {5, 7}}) {
    for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
      const PlanRequest request{collective, size * groups, 1, equalGroups(size * groups, {size}), {}};
      const Plan plan = makePlan(*findAlgorithm("multilane"), request);
      const Certificate proof = verify(plan);
      const auto n = static_cast<std::uint64_t>(plan.blocks);
      const bool isDown = collective == Collective::broadcast;
      EXPECT_EQ(proof.longestChain, groups + ceilLog(size));
      EXPECT_EQ(plan.rounds, groups + 5 + 2 * ceilLog(size));
      EXPECT_EQ(isDown ? proof.maxBlocksSent : proof.maxBlocksReceived, 2 * n - n / static_cast<std::uint64_t>(size));
      EXPECT_EQ(isDown ? proof.maxBlocksReceived : proof.maxBlocksSent, n);
    }
  }
}

TEST(Layouts, ThatDoNotFitAreNotServed) {
  EXPECT_TRUE(findAlgorithm("narrow_leaves")->serves({Collective::allReduce, 8, 0, {}, {}, {0, 7}}));
  for (const std::vector<int>& narrow : {std::vector<int>(), {8}, {3, 3}, {4, 3}, {0, 1, 2, 3, 4, 5}})
    EXPECT_FALSE(findAlgorithm("narrow_leaves")->serves({Collective::allReduce, 8, 0, {}, {}, narrow}));
  const Algorithm& hierarchical = *findAlgorithm("hierarchical");
  EXPECT_FALSE(hierarchical.serves({Collective::allReduce, 8, 0}));
  EXPECT_TRUE(hierarchical.serves({Collective::allReduce, 8, 0, {{4, 4}}, {}}));
  EXPECT_FALSE(hierarchical.serves({Collective::allReduce, 8, 0, {{4, 3}}, {}}));
  EXPECT_FALSE(hierarchical.serves({Collective::allReduce, 8, 0, {{4, 5}}, {}}));
  EXPECT_FALSE(hierarchical.serves({Collective::allReduce, 8, 0, {{8, 0}}, {}}));
  EXPECT_FALSE(hierarchical.serves({Collective::allReduce, 8, 0, {{4, 4}, {2, 6}}, {}})) << "cuts through a group";
  EXPECT_FALSE(findAlgorithm("hierarchical_ring")->serves({Collective::allGather, 8, 0, {{3, 5}}, {}}));
  EXPECT_FALSE(findAlgorithm("ring_2d")->serves({Collective::allReduce, 7, 0}));
  EXPECT_FALSE(findAlgorithm("ring_2d")->serves({Collective::allReduce, 8, 0, {}, {3, 2}}));
  EXPECT_FALSE(findAlgorithm("swing")->serves({Collective::allReduce, 12, 0, {}, {2, 4}}));
  EXPECT_TRUE(findAlgorithm("swing")->serves({Collective::allReduce, 12, 0}));
  EXPECT_EQ(makePlan(*findAlgorithm("swing"), {Collective::allReduce, 12, 0, {}, {3, 4}}).ranks,
            makePlan(*findAlgorithm("swing"), {Collective::allReduce, 12, 0}).ranks)
      << "a side that is no power of two: one ring";
}

/// What is priced is what runs: in a broadcast every rank takes block b from its parent in tree b.
TEST(Shapes, OfTheDoubleTreeAreThoseOfItsPlan) {
  for (int p = 3; p <= 33; ++p) {
    const Plan plan = makePlan(*findAlgorithm("double_tree"), {Collective::broadcast, p, 0});
    for (const int which : {0, 1}) {
      const Tree tree = doubleTree(which, p - 1);
      for (int rank = 1; rank < p; ++rank) {
        for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) {
          if (step.block != which) continue;
          EXPECT_EQ(step.sources[0].index, tree.node(rank - 1).parent + 1) << p << " " << which << " " << rank;
        }
      }
    }
  }
}

TEST(Costs, OfTheDoubleTreeStayLogarithmic) {
  for (int p = 3; p <= 64; ++p) {
    const Certificate all = certify("double_tree", Collective::allReduce, p);
    EXPECT_LE(all.longestChain, 2 * (floorLog(p) + 1)) << p;
    EXPECT_LE(all.maxBlocksSent, 4u) << p;
    EXPECT_LE(all.maxBlocksReceived, 4u) << p;
    const Certificate one = certify("double_tree", Collective::broadcast, p);
    EXPECT_LE(one.longestChain, floorLog(p) + 2) << p;
    EXPECT_EQ(one.maxBlocksSent, 2u) << p;
    EXPECT_EQ(one.maxBlocksReceived, 2u) << p;
  }
}

/// Rank order everywhere: the same bits from one-shot and two-shot, on any number of blocks.
TEST(ReductionOrder, IsEqualWhereTheOrderIsEqual) {
  for (int p = 2; p <= 17; ++p) {
    const std::uint64_t order = certify("oneshot", Collective::allReduce, p).reductionOrder;
    EXPECT_NE(order, 0u);
    EXPECT_EQ(certify("twoshot", Collective::allReduce, p).reductionOrder, order);
    EXPECT_EQ(certify("oneshot", Collective::reduce, p).reductionOrder, order);
    EXPECT_EQ(certify("oneshot", Collective::reduceScatter, p).reductionOrder, order);
    if (p > 3) {
      EXPECT_NE(certify("ring", Collective::allReduce, p).reductionOrder, order);
      EXPECT_NE(certify("binomial", Collective::allReduce, p).reductionOrder, order);
    }
    EXPECT_EQ(certify("oneshot", Collective::allGather, p).reductionOrder, 0u);
  }
}

/// Nearest first, halves and whole vectors meet the same partners.
TEST(ReductionOrder, OfNearHalvesIsThatOfRecursiveDoubling) {
  for (int p = 2; p <= 33; ++p) {
    EXPECT_EQ(certify("halving_doubling_near", Collective::allReduce, p).reductionOrder,
              certify("recursive_doubling", Collective::allReduce, p).reductionOrder)
        << p;
  }
}

/// All plans can pass their messages by reference, but for the few that docs/understand/algorithms.md names.
TEST(OverwrittenMessages, AreFew) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int p = 1; p <= 17; ++p) {
      for (const PlanRequest& request : test::requestsServed(algorithm, p)) {
        const Plan plan = makePlan(algorithm, request);
        const bool stages = algorithm.name == "recursive_doubling" &&
                            (request.collective == Collective::allReduce || isPrefix(request.collective));
        const bool inputs = request.collective == Collective::allToAll ||
                            (algorithm.name == "oneshot" &&
                             (request.collective == Collective::allReduce || isPrefix(request.collective)));
        if (!stages) {
          EXPECT_EQ(verify(plan).overwrittenMessages, 0u) << test::describe(plan);
        }
        if (!stages && !inputs) {
          EXPECT_EQ(verify(plan, true).overwrittenMessages, 0u) << test::describe(plan) << " in place";
        }
      }
    }
  }
}

/// In two-shot the block that comes back is what tells that the block that went out was read; in one-shot nothing does.
TEST(OverwrittenMessages, AreThoseWithNoAnswerBeforeTheWrite) {
  const auto overwritten = [](std::string_view name, Collective collective, bool inPlace) {
    return verify(makePlan(*findAlgorithm(name), {collective, 4, 0}), inPlace).overwrittenMessages;
  };
  EXPECT_EQ(overwritten("oneshot", Collective::allReduce, false), 0u);
  EXPECT_EQ(overwritten("oneshot", Collective::allReduce, true), 12u);
  EXPECT_EQ(overwritten("twoshot", Collective::allReduce, true), 0u);
  EXPECT_EQ(overwritten("ring", Collective::allReduce, true), 0u);
  EXPECT_EQ(overwritten("oneshot", Collective::allToAll, false), 0u);
  EXPECT_EQ(overwritten("oneshot", Collective::allToAll, true), 12u);
  EXPECT_EQ(overwritten("recursive_doubling", Collective::allReduce, false), 4u);
}

}  // namespace
}  // namespace tacc
