// The mechanism under updates and exchanges, with a kernel that the library has not: LARS, whose rate is another one
// for each layer. One pass over memory: the norms are gathered while weights are made new, so they are of the step
// before.
#include "engine/streamed_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "api/handles.hpp"
#include "comm/rank_harness.hpp"
#include "engine/signature.hpp"
#include "support/virtual_cluster.hpp"
#include "training.hpp"

namespace tacc::test {
namespace {

constexpr float eta = 0.1f, trust = 0.02f;

/// Layers of odd sizes, one behind the other.
struct Layers {
  std::vector<std::size_t> ends;
  std::vector<double> weights, gradients;  // squared norms of the step before
  std::vector<double> nextWeights, nextGradients;

  explicit Layers(std::vector<std::size_t> sizes) : ends(std::move(sizes)) {
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    weights = gradients = nextWeights = nextGradients = std::vector<double>(ends.size());
  }
  std::size_t count() const { return ends.back(); }
  float rate(std::size_t layer) const {
    if (gradients[layer] == 0) return eta;
    return eta * trust * static_cast<float>(std::sqrt(weights[layer] / gradients[layer]));
  }
  /// Elements [first, first + count) by the mean gradient.
  void update(float* x, std::size_t first, std::size_t count, const float* sums, int ranks) {
    auto layer = static_cast<std::size_t>(std::ranges::upper_bound(ends, first) - ends.begin());
    for (std::size_t i = 0; i < count; ++i) {
      while (first + i >= ends[layer]) ++layer;
      const float mean = sums[i] / static_cast<float>(ranks);
      nextWeights[layer] += double(x[first + i]) * x[first + i];
      nextGradients[layer] += double(mean) * mean;
      x[first + i] -= rate(layer) * mean;
    }
  }
  void endStep() {
    weights = nextWeights;
    gradients = nextGradients;
    std::ranges::fill(nextWeights, 0);
    std::ranges::fill(nextGradients, 0);
  }
};

/// The same steps in one pass, and as an allreduce with a loop behind it.
void compare(taccComm_t comm, int rank, int ranks) {
  const std::vector<std::size_t> sizes = {3, 70'001, 1, 150'000, 513};
  Layers fused(sizes), separate(sizes);
  const std::size_t count = fused.count();
  std::vector<float> x(count), y(count), gradient(count), sums(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = y[i] = firstWeight(i);
  for (int step = 1; step <= 4; ++step) {
    fillGradient(gradient, rank, step, x.data());
    const StreamedSum streamed{updateCode,
                               [&](std::size_t first, std::size_t n, void* to) {
                                 std::memcpy(to, gradient.data() + first, n * sizeof(float));
                               },
                               [&](std::size_t first, std::size_t n, const void* all) {
                                 fused.update(x.data(), first, n, static_cast<const float*>(all), ranks);
                               }};
    comm->communicator->run({.collective = Collective::allReduce,
                             .count = count,
                             .type = taccFloat32,
                             .op = taccSum,
                             .streamed = &streamed});
    fused.endStep();
    expectSuccess(taccAllReduce(gradient.data(), sums.data(), count, taccFloat32, taccSum, comm, nullptr), comm);
    separate.update(y.data(), 0, count, sums.data(), ranks);
    separate.endStep();
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(x[i], y[i], 1e-5f) << "element " << i << ", step " << step;
  }
  // Layers had rates of their own, and the weights moved.
  EXPECT_NE(fused.rate(1), fused.rate(3));
  EXPECT_NE(x[1000], firstWeight(1000));
  // All ranks have the same bits.
  std::vector<float> most = x;
  expectSuccess(taccAllReduce(x.data(), most.data(), count, taccFloat32, taccMax, comm, nullptr), comm);
  EXPECT_EQ(std::memcmp(x.data(), most.data(), count * sizeof(float)), 0);
}

TEST(StreamedSum, takesAnotherKernelOnAHost) {
  for (const int ranks : {1, 2, 3})
    runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) { compare(comm, rank, ranks); });
}

TEST(StreamedSum, takesAnotherKernelOverHosts) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const VirtualCluster cluster(1, 2);
  runOnHosts(cluster, {1, 1, 2}, [&](taccComm_t comm, int rank) { compare(comm, rank, 3); });
}

}  // namespace
}  // namespace tacc::test
