// Whether plans of float32 take AMX's tiles, which other users of a core can slow down.
#include "compute/conv/amx/tile_pace.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <random>
#include <string>

#include "conv_case.hpp"
#include "core/environment.hpp"

namespace tacc::conv::test {
namespace {

using Clock = TilePace::Clock;

TEST(TilePace, IsFullWhereMostProbesAre) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    // More of them would not be asked for.
    std::vector<double> ratios(TilePace::probes);
    for (double& ratio : ratios) ratio = random() % 4 == 0 ? 4.0 : 1.0;
    const auto slow = std::ranges::count(ratios, 4.0);
    std::size_t at = 0;
    TilePace pace([&] { return ratios.at(at++); });
    EXPECT_EQ(pace.isFull(), slow <= TilePace::mostSlow) << slow;
    EXPECT_EQ(at, ratios.size());
  }
}

TEST(TilePace, IsMeasuredAgainAfterAWhile) {
  int probes = 0;
  double ratio = 1;
  Clock::time_point now;
  TilePace pace([&] { return ++probes, ratio; }, [&] { return now; });
  const auto afterwards = [&](Clock::duration later) { return now += later, pace.isFull(); };
  EXPECT_TRUE(pace.isFull());
  EXPECT_TRUE(afterwards(TilePace::validFor / 2));
  EXPECT_EQ(probes, TilePace::probes);
  ratio = 4;
  EXPECT_FALSE(afterwards(TilePace::validFor));
  ratio = 1;
  EXPECT_FALSE(afterwards(TilePace::slowFor - TilePace::validFor)) << "slow times come again";
  EXPECT_EQ(probes, 2 * TilePace::probes);
  EXPECT_TRUE(afterwards(2 * TilePace::validFor));
  EXPECT_EQ(probes, 3 * TilePace::probes);
}

std::string kernelOf(taccConvDesc_t desc) {
  taccConvPlan_t plan = nullptr;
  EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
  taccConvInfo_t info{};
  EXPECT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
  const std::string kernel = info.kernel;
  EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess);
  return kernel;
}

TEST(TilePace, DecidesForFloat32Alone) {
  if (bestKernels().split == nullptr || processEnvironment().isa != "best")
    GTEST_SKIP() << "no AMX, or TACC_ISA is set";
  taccConvDesc_t desc = convolution(taccConvForward, 1, 128, 28, 28, 128, 3, 1, 1);
  for (const bool isFull : {true, false}) {
    pretendTilePace(&isFull);
    EXPECT_EQ(kernelOf(desc).starts_with("amx"), isFull);
    taccConvDesc_t named = desc;
    named.algorithm = "split";
    EXPECT_THAT(kernelOf(named), testing::StartsWith("amx"));
    taccConvDesc_t halves = desc;
    halves.activationType = taccBfloat16;
    halves.roundWeights = 1;
    EXPECT_THAT(kernelOf(halves), testing::StartsWith("amx"));
    pretendTilePace(nullptr);
  }
}

TEST(TilePace, IsMeasured) {
  const KernelSet& best = bestKernels();
  if (best.split == nullptr) {
    EXPECT_EQ(&kernelsForFloats(best), &best);
    return;
  }
  const KernelSet& chosen = kernelsForFloats(best);
  EXPECT_TRUE(&chosen == &best || (chosen.split == nullptr && chosen.vectors == best.vectors)) << chosen.isa;
}

}  // namespace
}  // namespace tacc::conv::test
