#include "selection/bucket_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tacc {
namespace {

constexpr std::size_t least = 64 * 1024, most = 64 * 1024 * 1024;

/// Near the square root where time is a straight line, whatever the network.
TEST(BucketSize, IsTheSquareRootOfLatencyAndBytes) {
  for (const double latency : {5e-6, 1e-4, 3e-3, 0.1})
    for (const double perByte : {1e-10, 1e-9, 8e-8})
      for (const std::size_t step : {std::size_t{1} << 20, std::size_t{100} << 20, std::size_t{1} << 30}) {
        const BucketSizes sizes =
            bucketSizesFor(step, [&](std::size_t n) { return latency + perByte * static_cast<double>(n); });
        const double ideal = std::clamp(std::sqrt(static_cast<double>(step) * latency / perByte),
                                        static_cast<double>(least), static_cast<double>(most));
        EXPECT_LE(std::abs(std::log2(static_cast<double>(sizes.full) / ideal)), 0.51)
            << latency << " s, " << perByte << " s a byte, " << step << " bytes";
        EXPECT_LE(sizes.alone, sizes.full);
      }
}

TEST(BucketSize, SlowLinksPackEverythingAndFastOnesLittle) {
  const auto line = [](double latency, double perByte) {
    return [=](std::size_t n) { return latency + perByte * static_cast<double>(n); };
  };
  const BucketSizes slow = bucketSizesFor(100 << 20, line(2e-3, 8e-8));
  EXPECT_EQ(slow.alone, slow.full);
  const BucketSizes fast = bucketSizesFor(100 << 20, line(2e-6, 2e-10));
  EXPECT_LT(fast.alone, 16 * 1024u) << "copying more than that takes longer than the call that it saves";
}

}  // namespace
}  // namespace tacc
