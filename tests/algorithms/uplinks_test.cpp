// What plans that follow groups and narrow ranks send over the links that are scarce.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "algorithms/registry.hpp"
#include "algorithms/shapes.hpp"
#include "algorithms/verifier.hpp"
#include "interpreter.hpp"
#include "plan_with.hpp"

namespace tacc {
namespace {

/// Blocks that leave a group of consecutive ranks, the most of all groups of that size.
std::uint64_t blocksLeaving(const Plan& plan, int size) {
  std::vector<std::uint64_t> leaving(static_cast<std::size_t>((plan.request.ranks + size - 1) / size), 0);
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    for (const Step& step : plan.ranks[rank].steps) {
      for (const Operand& to : step.destinations) {
        const bool crosses = to.kind == Operand::Kind::peer && to.index / size != rank / size;
        if (crosses) leaving[rank / size] += static_cast<std::uint64_t>(step.blockCount);
      }
    }
  }
  return *std::ranges::max_element(leaving);
}

/// 2 (G-1)/G of the vector over every uplink, which is the bound for G groups that each send their part once.
TEST(Uplinks, CarryTheFewestBytesInHierarchies) {
  for (const std::string_view name : {"hierarchical", "hierarchical_ring"}) {
    for (const int groups : {2, 3, 4, 7}) {
      const int p = groups * 6;
      const Plan plan = planWith(name, Collective::allReduce, p, equalGroups(p, {3, 2}));
      const auto blocks = static_cast<std::uint64_t>(plan.blocks);
      EXPECT_EQ(blocksLeaving(plan, 6), 2 * blocks * static_cast<std::uint64_t>(groups - 1) / groups) << name;
    }
  }
  const Plan flat = makePlan(*findAlgorithm("halving_doubling_far"), {Collective::allReduce, 32, 0});
  const Plan near = makePlan(*findAlgorithm("halving_doubling_near"), {Collective::allReduce, 32, 0});
  const Plan bine = makePlan(*findAlgorithm("bine"), {Collective::allReduce, 32, 0});
  EXPECT_GT(blocksLeaving(flat, 8), blocksLeaving(bine, 8));
  EXPECT_GE(blocksLeaving(bine, 8), blocksLeaving(near, 8)) << "groups of a power of two suit the near order best";
}

/// On groups that are no powers of two, which is what the paper is about.
TEST(Uplinks, CarryLessInBineTreesThanInBinomialOnes) {
  std::uint64_t bine = 0, binomial = 0;
  for (int size = 3; size <= 21; ++size) {
    for (int root = 0; root < 64; root += 7) {
      bine += blocksLeaving(makePlan(*findAlgorithm("bine"), {Collective::gather, 64, root}), size);
      binomial += blocksLeaving(makePlan(*findAlgorithm("binomial"), {Collective::gather, 64, root}), size);
    }
  }
  EXPECT_LT(bine, binomial);
}

/// Data enters (leaves) every group once.
TEST(Uplinks, AreCrossedOnceInHierarchicalTrees) {
  for (const int root : {0, 5, 13, 23}) {
    PlanRequest request{Collective::broadcast, 24, root, {{4, 4, 2, 2, 4, 8}, {8, 4, 12}}, {}};
    ASSERT_TRUE(groupsFit(request));
    for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
      request.collective = collective;
      const Plan plan = makePlan(*findAlgorithm("hierarchical"), request);
      int crossings = 0, outer = 0;
      const auto groupOf = [&](int rank, std::size_t level) {
        int group = 0;
        for (int end = request.groups[level][0]; end <= rank; end += request.groups[level][group]) ++group;
        return group;
      };
      for (int rank = 0; rank < 24; ++rank)
        for (const Step& step : plan.ranks[rank].steps)
          for (const Operand& to : step.destinations)
            if (to.kind == Operand::Kind::peer) {
              crossings += groupOf(rank, 0) != groupOf(to.index, 0) ? 1 : 0;
              outer += groupOf(rank, 1) != groupOf(to.index, 1) ? 1 : 0;
            }
      EXPECT_EQ(crossings, 5) << root;
      EXPECT_EQ(outer, 2) << root;
    }
  }
}

/// Blocks that each rank sends to other groups of these sizes.
std::vector<int> blocksAcross(const Plan& plan, const std::vector<int>& sizes) {
  std::vector<int> groupOf, sent(plan.ranks.size(), 0);
  for (std::size_t g = 0; g < sizes.size(); ++g) groupOf.insert(groupOf.end(), sizes[g], static_cast<int>(g));
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
    for (const Step& step : plan.ranks[rank].steps)
      for (const Operand& to : step.destinations)
        if (to.kind == Operand::Kind::peer && groupOf[to.index] != groupOf[rank]) sent[rank] += step.blockCount;
  return sent;
}

/// In lanes a group sends each block once, down or up the line; and no rank of it more than its share, rounded up to
/// lanes.
TEST(Uplinks, AreSharedByAllRanksInLanes) {
  for (const std::vector<int>& sizes :
       {std::vector{4, 4, 4}, {3, 2, 1}, {1, 5, 2, 2}, {6, 6}, {7, 3, 5, 1, 1}, {2, 2, 2, 2, 2}}) {
    const int p = std::accumulate(sizes.begin(), sizes.end(), 0), lanes = *std::ranges::max_element(sizes);
    for (int root = 0; root < p; ++root) {
      for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::allReduce}) {
        const PlanRequest request{collective, p, root, {sizes}, {}};
        if (!findAlgorithm("multilane")->serves(request)) continue;
        const Plan plan = makePlan(*findAlgorithm("multilane"), request);
        const std::vector<int> sent = blocksAcross(plan, sizes);
        // Broadcast, reduce: N from each group but one. Allreduce: 2 (G-1)/G N from each.
        const int groups = static_cast<int>(sizes.size());
        const int each = collective == Collective::allReduce ? 2 * plan.blocks / groups * (groups - 1) : plan.blocks;
        int quiet = 0;
        for (int first = 0; const int size : sizes) {
          const auto own = std::span(sent).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
          const int all = std::accumulate(own.begin(), own.end(), 0);
          quiet += all == 0 ? 1 : 0;
          if (all > 0) {
            EXPECT_EQ(all, each) << nameOf(collective) << " from rank " << first << ", root " << root;
          }
          for (const int blocks : own) EXPECT_LE(blocks, each / lanes * ((lanes + size - 1) / size));
          first += size;
        }
        EXPECT_EQ(quiet, collective == Collective::allReduce ? 0 : 1);
      }
    }
  }
}

/// A ring of groups sends on all blocks but those of the group that gets them, or sums of all but its own, shared by
/// its ranks, in a step a group.
TEST(Uplinks, CarryWhatIsNeededInARingOfGroups) {
  for (const std::vector<int>& sizes :
       {std::vector{3, 2, 2}, {4, 4, 4, 3}, {2, 2, 1}, {1, 5, 2, 2}, {7, 3, 5, 1, 1}, {16, 16, 15}}) {
    const int p = std::accumulate(sizes.begin(), sizes.end(), 0), groups = static_cast<int>(sizes.size());
    for (const Collective collective : {Collective::allGather, Collective::reduceScatter}) {
      const Plan plan = makePlan(*findAlgorithm("group_ring"), {collective, p, 0, {sizes}, {}});
      EXPECT_EQ(verify(plan).longestChain, groups);
      EXPECT_EQ(plan.rounds, groups + 1);
      const std::vector<int> sent = blocksAcross(plan, sizes);
      for (int group = 0, first = 0; group < groups; first += sizes[static_cast<std::size_t>(group++)]) {
        const auto size = static_cast<std::size_t>(sizes[static_cast<std::size_t>(group)]);
        const auto own = std::span(sent).subspan(static_cast<std::size_t>(first), size);
        const int kept = collective == Collective::allGather ? (group + 1) % groups : group;  // that group's stay
        EXPECT_EQ(std::accumulate(own.begin(), own.end(), 0), p - sizes[static_cast<std::size_t>(kept)])
            << nameOf(collective) << " of group " << group;
        // The i-th block of each group that passes is the (i mod size)-th rank's.
        int most = 0;
        for (int from = 0; from < groups; ++from)
          if (from != kept)
            most += (sizes[static_cast<std::size_t>(from)] + static_cast<int>(size) - 1) / static_cast<int>(size);
        EXPECT_LE(*std::ranges::max_element(own), most);
      }
    }
  }
  EXPECT_FALSE(findAlgorithm("group_ring")->serves({Collective::allGather, 8, 0, {{4, 4}}, {}})) << "as other rings";
}

TEST(Narrow, RanksSendAndReceiveTheVectorOnce) {
  int plans = 0;
  for (int p = 2; p <= 33; ++p) {
    for (PlanRequest request : test::layoutsOf(p)) {
      request.ranks = p;
      if (!findAlgorithm("narrow_leaves")->serves(request)) continue;
      const Plan plan = makePlan(*findAlgorithm("narrow_leaves"), request);
      ++plans;
      for (const int rank : request.narrow) {
        int sent = 0, received = 0;
        const auto isPeer = [](const Operand& operand) { return operand.kind == Operand::Kind::peer; };
        for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) {
          sent += step.blockCount * static_cast<int>(std::ranges::count_if(step.destinations, isPeer));
          received += step.blockCount * static_cast<int>(std::ranges::count_if(step.sources, isPeer));
        }
        EXPECT_EQ(sent, plan.blocks) << test::describe(plan) << ", rank " << rank;
        EXPECT_EQ(received, plan.blocks) << test::describe(plan) << ", rank " << rank;
      }
    }
  }
  EXPECT_GT(plans, 80);
}

}  // namespace
}  // namespace tacc
