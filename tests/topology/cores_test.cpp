#include "topology/model/cores.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tacc::test {
namespace {

cpu_set_t setOf(const std::vector<std::size_t>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t core : cores) CPU_SET(core, &set);
  return set;
}

TEST(Cores, pinnedRanksHaveOneEach) {
  const std::vector<cpu_set_t> sets{setOf({0}), setOf({1}), setOf({5})};
  EXPECT_EQ(countCores(sets), 3);
}

TEST(Cores, sharedCoresCountOnce) {
  const std::vector<cpu_set_t> sets{setOf({0, 1}), setOf({0, 1}), setOf({1, 2})};
  EXPECT_EQ(countCores(sets), 3);
}

TEST(Cores, thereIsAlwaysOne) { EXPECT_EQ(countCores({}), 1); }

TEST(Cores, followTheAffinityOfTheThread) {
  std::thread([] {
    const auto here = static_cast<std::size_t>(sched_getcpu());
    const cpu_set_t one = setOf({here});
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const cpu_set_t allowed = allowedCores();
    EXPECT_TRUE(CPU_EQUAL(&allowed, &one));
  }).join();
}

TEST(Cores, ownCacheIsPlausible) {
  EXPECT_GE(ownCacheBytes(), std::size_t{64} << 10);
  EXPECT_LE(ownCacheBytes(), std::size_t{256} << 20);
}

}  // namespace
}  // namespace tacc::test
