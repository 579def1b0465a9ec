// Plans run on numbers: worked examples, all counts that cut unevenly, and equal bits on all ranks.
#include <gtest/gtest.h>

#include <cstring>

#include "algorithms/registry.hpp"
#include "interpreter.hpp"

namespace tacc {
namespace {

using test::PerRank;

PerRank<int> runOn(std::string_view name, PlanRequest request, std::size_t count, const PerRank<int>& inputs) {
  const Plan plan = makePlan(*findAlgorithm(name), request);
  return test::Interpreter<int>(plan, count, false, 1).run(inputs);
}

TEST(WorkedExample, AllReduceOfFiveElementsOnThreeRanks) {
  const PerRank<int> inputs = {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}, {100, 200, 300, 400, 500}};
  const std::vector<int> sum = {111, 222, 333, 444, 555};
  for (const Algorithm& algorithm : algorithms()) {
    const PlanRequest request{Collective::allReduce, 3, 0};
    if (!algorithm.serves(request)) continue;
    EXPECT_EQ(runOn(algorithm.name, request, 5, inputs), (PerRank<int>{sum, sum, sum})) << algorithm.name;
  }
}

TEST(WorkedExample, RootedCollectivesWithRootTwo) {
  const PerRank<int> inputs = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
  EXPECT_EQ(runOn("chain", {Collective::broadcast, 4, 2}, 3, {{}, {}, {7, 8, 9}, {}}),
            (PerRank<int>{{7, 8, 9}, {7, 8, 9}, {7, 8, 9}, {7, 8, 9}}));
  EXPECT_EQ(runOn("double_tree", {Collective::reduce, 4, 2}, 3, inputs), (PerRank<int>{{}, {}, {22, 26, 30}, {}}));
  EXPECT_EQ(runOn("binomial", {Collective::gather, 4, 2}, 1, {{1}, {4}, {7}, {10}}),
            (PerRank<int>{{}, {}, {1, 4, 7, 10}, {}}));
  EXPECT_EQ(runOn("binomial", {Collective::scatter, 4, 2}, 2, {{}, {}, {1, 2, 3, 4, 5, 6, 7, 8}, {}}),
            (PerRank<int>{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
}

TEST(WorkedExample, StacksOnThreeRanks) {
  EXPECT_EQ(runOn("circulant", {Collective::allGather, 3, 0}, 2, {{1, 2}, {3, 4}, {5, 6}}),
            (PerRank<int>{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(runOn("ring", {Collective::reduceScatter, 3, 0}, 1, {{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}),
            (PerRank<int>{{111}, {222}, {333}}));
  EXPECT_EQ(runOn("oneshot", {Collective::allToAll, 3, 0}, 1, {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}),
            (PerRank<int>{{1, 4, 7}, {2, 5, 8}, {3, 6, 9}}));
}

class OnNumbers : public testing::TestWithParam<const Algorithm*> {};

TEST_P(OnNumbers, EveryCountIsRight) {
  const Algorithm& algorithm = *GetParam();
  std::mt19937_64 random(7);
  for (const int p : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17}) {
    const auto n = static_cast<std::size_t>(p);
    for (const PlanRequest& request : test::requestsServed(algorithm, p)) {
      const Plan plan = makePlan(algorithm, request);
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1, std::size_t{37}}) {
        const auto inputs = test::makeInputs<std::uint64_t>(plan, count, [&] { return random(); });
        const auto expected = test::expectedOutputs(request, count, inputs);
        for (const bool inPlace : {false, true}) {
          const auto seed = static_cast<unsigned>(random());
          ASSERT_EQ(test::Interpreter<std::uint64_t>(plan, count, inPlace, seed).run(inputs), expected)
              << test::describe(plan) << " count=" << count << (inPlace ? " in place" : "");
        }
      }
    }
  }
}

/// Sums of floats depend on the order of addition, so this fails if two ranks add in different orders.
TEST_P(OnNumbers, AllRanksGetTheSameBits) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  for (int p = 2; p <= 13; ++p) {
    const PlanRequest request{Collective::allReduce, p, 0};
    if (!GetParam()->serves(request)) GTEST_SKIP() << "does not serve allreduce";
    const Plan plan = makePlan(*GetParam(), request);
    const auto inputs = test::makeInputs<float>(plan, 101, [&] { return values(random); });
    const PerRank<float> outputs = test::Interpreter<float>(plan, 101, false, 3).run(inputs);
    for (const std::vector<float>& output : outputs) {
      ASSERT_EQ(std::memcmp(output.data(), outputs[0].data(), output.size() * sizeof(float)), 0) << "p=" << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, OnNumbers, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                           return all;
                         }()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace tacc
