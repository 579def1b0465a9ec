// What is proven when it is first used: plans of drawn layouts, and one that is wrong.
#include "algorithms/use_proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "interpreter.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

/// `parts` cut into consecutive groups of drawn sizes: what each of them has.
std::vector<int> drawGroups(const std::vector<int>& parts, std::mt19937& random) {
  std::vector<int> groups;
  for (std::size_t i = 0; i < parts.size();) {
    int size = 0;
    for (std::size_t take = 1 + random() % 4; take > 0 && i < parts.size(); --take) size += parts[i++];
    groups.push_back(size);
  }
  return groups;
}

PlanRequest drawLayout(int p, std::mt19937& random) {
  PlanRequest request;
  request.ranks = p;
  std::vector<int> parts(static_cast<std::size_t>(p), 1);
  for (std::size_t levels = 1 + random() % 3; levels > 0 && parts.size() > 1; --levels) {
    parts = drawGroups(parts, random);
    request.groups.push_back(parts);
  }
  const unsigned share = random() % 4;  // none, a quarter, half, three of four
  for (int rank = 0; rank < p; ++rank)
    if (random() % 4 < share) request.narrow.push_back(rank);
  return request;
}

TEST(UseProof, PlansOfDrawnLayoutsAreRight) {
  std::mt19937 random(1);
  int proven = 0;
  for (int layout = 0; layout < 150; ++layout) {
    PlanRequest request = drawLayout(2 + static_cast<int>(random() % 23), random);
    ASSERT_TRUE(groupsFit(request) && narrowFit(request)) << shown(request.groups) << shown({request.narrow});
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.looksAtLayout) continue;
      for (int c = 0; c < collectiveCount; ++c) {
        request.collective = static_cast<Collective>(c);
        request.root = isRooted(request.collective) ? static_cast<int>(random() % unsigned(request.ranks)) : 0;
        if (!algorithm.serves(request)) continue;
        EXPECT_TRUE(needsProofAtUse(algorithm, request));
        EXPECT_NO_THROW(proveForUse(algorithm, request))
            << algorithm.name << " " << shown(request.groups) << " narrow " << shown({request.narrow});
        ++proven;
      }
    }
  }
  EXPECT_GT(proven, 1000);
}

/// In its plans rank 0 gives the others nothing.
Algorithm wrongAlgorithm() {
  Algorithm wrong = *findAlgorithm("binomial");
  wrong.name = "wrong";
  wrong.write = [](const PlanRequest& request, PlanWriter& plan) {
    const Algorithm& tree = *findAlgorithm("binomial");
    if (plan.rank() != 0) tree.write(request, plan);
  };
  return wrong;
}

/// `all`: as in proveForUse().
void expectRefused(const Algorithm& wrong, const PlanRequest& request, bool all) {
  ASSERT_TRUE(needsProofAtUse(wrong, request, all));
  try {
    proveForUse(wrong, request, all);
    FAIL() << "a plan in which nobody sends was taken for right";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInternalError);
    EXPECT_THAT(error.what(),
                HasSubstr("the plan of wrong for broadcast of 4 ranks, root 0, is wrong and does not run: "));
    EXPECT_THAT(error.what(), HasSubstr("rank"));
  }
}

TEST(UseProof, AWrongPlanOfGroupsIsRefused) {
  Algorithm wrong = wrongAlgorithm();
  wrong.looksAtLayout = true;
  PlanRequest request{Collective::broadcast, 4, 0};
  request.groups = {{2, 2}};
  expectRefused(wrong, request, false);
}

TEST(UseProof, EveryWrongPlanIsRefusedInADebugBuild) {
  const Algorithm wrong = wrongAlgorithm();
  const PlanRequest request{Collective::broadcast, 4, 0};
  expectRefused(wrong, request, true);
  EXPECT_FALSE(needsProofAtUse(wrong, request, false));
#ifdef TACC_DEBUG_BUILD
  expectRefused(wrong, request, provesAllAtUse);
#endif
}

TEST(UseProof, TooManyRanksAreNotProven) {
  const Algorithm& algorithm = *findAlgorithm("hierarchical");
  PlanRequest request{Collective::allReduce, mostRanksProvenAtUse, 0};
  request.groups = {std::vector<int>(mostRanksProvenAtUse / 2, 2)};
  EXPECT_TRUE(needsProofAtUse(algorithm, request));
  request.ranks += 2;
  request.groups[0].push_back(2);
  EXPECT_FALSE(needsProofAtUse(algorithm, request));
}

}  // namespace
}  // namespace tacc::test
