#include "selection/bucket_size.hpp"

#include <algorithm>

namespace tacc {
namespace {

constexpr std::size_t smallest = 64 * 1024, largest = 64 * 1024 * 1024;
constexpr double copySeconds = 1e-10;  // per byte that is copied in memory

}  // namespace

BucketSizes bucketSizesFor(std::size_t stepBytes, const std::function<double(std::size_t)>& seconds) {
  BucketSizes best;
  double leastCost = 0, time = 0, leastRate = 0;
  for (std::size_t n = smallest; n <= largest; n *= 2) {
    const double took = seconds(n), bytes = static_cast<double>(n);
    const double cost = (static_cast<double>(stepBytes) / bytes + 1) * took;
    const double rate = took / bytes;
    leastRate = n == smallest ? rate : std::min(leastRate, rate);
    if (n > smallest && cost >= leastCost) continue;
    best.full = n;
    leastCost = cost;
    time = took;
  }
  // A tensor of m bytes that goes alone costs a latency more, one that is packed 2 m bytes of copying.
  const double latency = std::max(0.0, time - static_cast<double>(best.full) * leastRate);
  best.alone = std::min(best.full, static_cast<std::size_t>(latency / (2 * copySeconds)));
  return best;
}

}  // namespace tacc
