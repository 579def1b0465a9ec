#include "coordinator/network_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

namespace tacc::bench {
namespace {

constexpr size_t second = 25'000'000;  // bytes that take one at 200 Mbit/s
const std::vector<int> oneEach = {1, 2, 3, 4, 5, 6, 7, 8};

double boundOf(std::string_view collective, const char* shape, const std::vector<int>& hosts, size_t bytes,
               int root = 0) {
  return networkBound(*findCollective(collective), tools::ClusterShape::parse(shape), hosts, bytes, root);
}

TEST(NetworkBound, isTheRingsWhenEachHostHasARank) {
  // 2 * 7/8 * 8 MiB at 25 MB/s.
  EXPECT_NEAR(boundOf("allreduce", "2,4,200,200", oneEach, 8 << 20), 0.587, 0.001);
  EXPECT_DOUBLE_EQ(boundOf("allgather", "1,8,200,200", oneEach, second), 0.875);
}

TEST(NetworkBound, reducesInsideAHostFirst) {
  EXPECT_DOUBLE_EQ(boundOf("allreduce", "1,2,200,200", {1, 1, 2, 2}, second), 1);
  for (const Collective& each : allCollectives())
    EXPECT_EQ(networkBound(each, tools::ClusterShape::parse("1,2,200,200"), {1, 1}, second, 0), 0) << each.name;
}

TEST(NetworkBound, knowsSlowUplinks) {
  EXPECT_DOUBLE_EQ(boundOf("allreduce", "2,4,200,20", oneEach, second), 10);
  EXPECT_DOUBLE_EQ(boundOf("allreduce", "2,4,200,20", {1, 2}, second), 1);
  EXPECT_DOUBLE_EQ(boundOf("broadcast", "2,4,200,20", oneEach, second), 10);
  EXPECT_DOUBLE_EQ(boundOf("reducescatter", "2,4,200,20", oneEach, second), 5);
  EXPECT_DOUBLE_EQ(boundOf("alltoall", "2,4,200,20", oneEach, second), 20);
  EXPECT_DOUBLE_EQ(boundOf("gather", "2,4,200,20", oneEach, second), 5);
}

TEST(NetworkBound, ofARootIsWhereTheRootIs) {
  const std::vector<int> hosts = {1, 1, 1, 2};  // three ranks on the first host
  EXPECT_DOUBLE_EQ(boundOf("gather", "1,2,200,0", hosts, second, 0), 0.25);
  EXPECT_DOUBLE_EQ(boundOf("scatter", "1,2,200,0", hosts, second, 3), 0.75);
  EXPECT_DOUBLE_EQ(boundOf("allgather", "1,2,200,0", hosts, second), 0.75);
}

TEST(NetworkBound, isNoneWithoutRates) { EXPECT_EQ(boundOf("allreduce", "2,4,0,0", {1, 5}, 8), 0); }

// Which ranks a host has makes no difference to what all ranks exchange with all, and a slower link never a shorter
// time.
TEST(NetworkBound, dependsOnPlacesAlone) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> hosts(2 + random() % 15);
    for (int& host : hosts) host = 1 + static_cast<int>(random() % 8);
    const int rate = 100 + static_cast<int>(random() % 900);
    const tools::ClusterShape wide = tools::ClusterShape::parse("2,4,1000," + std::to_string(rate));
    const tools::ClusterShape narrow = tools::ClusterShape::parse("2,4,1000," + std::to_string(rate / 2));
    std::vector<int> others = hosts;
    std::shuffle(others.begin(), others.end(), random);
    for (const Collective& each : allCollectives()) {
      const double bound = networkBound(each, wide, hosts, 1 << 20, 0);
      if (!each.rooted) {
        EXPECT_DOUBLE_EQ(networkBound(each, wide, others, 1 << 20, 0), bound) << each.name;
      }
      EXPECT_GE(networkBound(each, narrow, hosts, 1 << 20, 0), bound) << each.name;
    }
  }
}

}  // namespace
}  // namespace tacc::bench
