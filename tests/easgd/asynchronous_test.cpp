// The asynchronous modes: weights and center hold what they held together, ranks do not wait for each other, deaths end
// nobody else's work, and a worker that is started again goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "comm/rank_harness.hpp"
#include "support/child_process.hpp"
#include "support/virtual_cluster.hpp"
#include "training.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

taccEasgdConfig_t configOf(taccEasgdMode_t mode, int period = 1) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  config.mode = mode;
  config.learningRate = 0.05f;
  config.elasticity = 5;
  config.period = period;
  return config;
}

taccEasgdConfig_t withServers(taccEasgdConfig_t config) {
  config.servers = taccEasgdServerPerHost;
  return config;
}

double sumOf(const std::vector<float>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// Without gradients an exchange only moves numbers between weights and center: their sum over all stays.
void checkConservation(taccComm_t comm, int rank, int ranks, std::size_t count, const taccEasgdConfig_t& config) {
  std::vector<float> weights(count, 1.0f), center(count);
  taccEasgd_t easgd = nullptr;
  expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
  expectSuccess(taccEasgdStart(easgd), comm);
  for (std::size_t i = 0; i < count; ++i) weights[i] = static_cast<float>(rank + 2);
  for (int step = 0; step < 20 + rank; ++step) expectSuccess(taccEasgdExchange(easgd), comm);
  expectSuccess(taccBarrier(comm, nullptr), comm);
  expectSuccess(taccEasgdCenter(easgd, center.data()), comm);
  double sum = sumOf(weights);
  expectSuccess(taccAllReduce(&sum, &sum, 1, taccFloat64, taccSum, comm, nullptr), comm);
  sum += sumOf(center);
  const double given = static_cast<double>(count) * (1 + 2 * ranks + ranks * (ranks - 1) / 2.0);
  EXPECT_NEAR(sum / given, 1, 1e-5);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_GT(center[i], 1);
    EXPECT_LT(center[i], static_cast<float>(ranks) + 1);
  }
  taccEasgdInfo_t info{};
  info.size = sizeof info;
  expectSuccess(taccEasgdInfo(easgd, &info), comm);
  EXPECT_EQ(info.exchanges, static_cast<unsigned>(20 + rank));
  EXPECT_GE(info.staleness, 0);
  EXPECT_LE(info.staleness, 25.0 * ranks);
  expectSuccess(taccEasgdDestroy(easgd), comm);
}

TEST(AsynchronousEasgd, keepsWhatWeightsAndCenterHoldTogether) {
  for (const int ranks : {1, 2, 4})
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{100003}})
      runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
        checkConservation(comm, rank, ranks, count, configOf(taccEasgdAsync));
      });
}

TEST(AsynchronousEasgd, aloneHogwildIsAsync) {
  runRanks(RankKind::processes, 1,
           [&](taccComm_t comm, int rank) { checkConservation(comm, rank, 1, 100003, configOf(taccEasgdHogwild)); });
}

TEST(AsynchronousEasgd, overHosts) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const VirtualCluster cluster(1, 2);
  runOnHosts(cluster, {1, 1, 2, 2},
             [&](taccComm_t comm, int rank) { checkConservation(comm, rank, 4, 100003, configOf(taccEasgdAsync)); });
}

/// More hosts than ranks of one, fewer numbers than hosts, and slices of different lengths.
TEST(AsynchronousEasgd, everyHostServesASlice) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const VirtualCluster cluster(1, 3);
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{100003}})
    runOnHosts(cluster, {2, 1, 2, 3}, [&](taccComm_t comm, int rank) {
      checkConservation(comm, rank, 4, count, withServers(configOf(taccEasgdAsync)));
    });
}

/// What rank 0 has written comes to all in one piece, and a worker that is started again needs all ids.
TEST(AsynchronousEasgd, aWorkerComesToTheSlicesOfAllHosts) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const VirtualCluster cluster(1, 3);
  const Signal isDead, isDone[4];
  const int living[] = {0, 1, 3};
  constexpr std::size_t count = 50000;
  runOnHosts(cluster, {1, 2, 2, 3}, [&](taccComm_t comm, int rank) {
    std::vector<float> weights(count), gradient(count), center(count);
    for (std::size_t i = 0; i < count; ++i) weights[i] = rank == 0 ? static_cast<float>(i) : -1;
    const taccEasgdConfig_t config = withServers(configOf(taccEasgdAsync));
    taccEasgd_t easgd = nullptr;
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
    expectSuccess(taccEasgdStart(easgd), comm);
    if (rank == 2) {  // the second of its host keeps nothing
      for (int other = 0; other < 3; ++other) isDead.give();
      ::_exit(0);
    }
    isDead.await();
    for (int step = 0; step < 5; ++step) expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
    expectSuccess(taccEasgdCenter(easgd, center.data()), comm);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(center[i], static_cast<float>(i)) << i;
    taccUniqueId one, ids[3];
    EXPECT_EQ(taccEasgdGetCenterId(easgd, &one), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("3 hosts keep a slice of the center each"));
    int slices = 2;
    EXPECT_EQ(taccEasgdGetCenterIds(easgd, ids, &slices), taccInvalidArgument);
    EXPECT_EQ(slices, 3);
    expectSuccess(taccEasgdGetCenterIds(easgd, nullptr, &slices), comm);
    expectSuccess(taccEasgdGetCenterIds(easgd, ids, &slices), comm);
    std::vector<float> fresh(count);
    taccEasgd_t worker = nullptr;
    EXPECT_EQ(taccEasgdCreateAtCenters(&worker, fresh.data(), count, ids, slices, &config), taccSuccess)
        << taccGetLastError(nullptr);
    EXPECT_EQ(taccEasgdStart(worker), taccSuccess);
    EXPECT_EQ(fresh, center);
    EXPECT_EQ(taccEasgdStep(worker, gradient.data()), taccSuccess);
    EXPECT_EQ(taccEasgdDestroy(worker), taccSuccess);
    worker = nullptr;
    EXPECT_NE(taccEasgdCreateAtCenters(&worker, fresh.data(), count, ids, 2, &config), taccSuccess);
    EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("asks for a center of 25000 numbers"));
    // As the dead one meets nobody, the communicator cannot tell when all are done with the slices.
    for (int other = 0; other < 3; ++other) isDone[rank].give();
    for (const int other : living) isDone[other].await();
    taccEasgdDestroy(easgd);
  });
}

/// Gradients pull every rank to the same bottom: all come near it, whoever loses an update.
TEST(AsynchronousEasgd, trainingConverges) {
  for (const taccEasgdMode_t mode : {taccEasgdAsync, taccEasgdHogwild})
    for (const float momentum : {0.0f, 0.8f})
      runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
        std::vector<float> weights(5000, rank == 0 ? 10.0f : 0.0f), gradient(5000), center(5000);
        taccEasgdConfig_t config = configOf(mode, 2);
        config.momentum = momentum;
        taccEasgd_t easgd = nullptr;
        expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
        expectSuccess(taccEasgdStart(easgd), comm);
        EXPECT_EQ(weights[17], 10.0f);
        for (int step = 0; step < 1600; ++step) {
          for (std::size_t i = 0; i < weights.size(); ++i) gradient[i] = weights[i] - 3.0f;
          expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
        }
        expectSuccess(taccBarrier(comm, nullptr), comm);
        expectSuccess(taccEasgdCenter(easgd, center.data()), comm);
        for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(center[i], 3.0f, 0.05f);
        expectSuccess(taccEasgdDestroy(easgd), comm);
      });
}

/// Rank 2 dies in the middle; the others make all their steps, and a new process takes its place.
TEST(AsynchronousEasgd, aDeathEndsNobodyElsesWork) {
  const Signal isDead;
  runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
    std::vector<float> weights(300000, 1.0f), gradient(300000, 0.001f);
    const taccEasgdConfig_t config = configOf(taccEasgdAsync);
    taccEasgd_t easgd = nullptr;
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
    expectSuccess(taccEasgdStart(easgd), comm);
    for (int step = 0; step < 200; ++step) {
      if (rank == 2 && step == 20) {
        isDead.give();
        ::_exit(0);
      }
      ASSERT_EQ(taccEasgdStep(easgd, gradient.data()), taccSuccess) << taccGetLastError(comm);
    }
    if (rank == 0) {
      isDead.await();
      taccUniqueId id;
      expectSuccess(taccEasgdGetCenterId(easgd, &id), comm);
      ChildProcess again([&] {
        std::vector<float> fresh(300000);
        taccEasgd_t worker = nullptr;
        if (taccEasgdCreateAtCenter(&worker, fresh.data(), fresh.size(), &id, &config) != taccSuccess) return false;
        if (taccEasgdStart(worker) != taccSuccess || !(fresh[7] > 0.5f && fresh[7] < 1.0f)) return false;
        for (int step = 0; step < 50; ++step)
          if (taccEasgdStep(worker, gradient.data()) != taccSuccess) return false;
        return taccEasgdDestroy(worker) == taccSuccess;
      });
      EXPECT_EQ(again.wait(), 0);
    }
    taccEasgdDestroy(easgd);
  });
}

TEST(AsynchronousEasgd, comesToNoCenterThatIsNot) {
  taccUniqueId id{};
  std::vector<float> weights(10);
  taccEasgd_t easgd = nullptr;
  taccEasgdConfig_t config = configOf(taccEasgdAsync);
  EXPECT_NE(taccEasgdCreateAtCenter(&easgd, weights.data(), 10, &id, &config), taccSuccess);
  config.mode = taccEasgdSync2;
  config.elasticity = 0;
  EXPECT_EQ(taccEasgdCreateAtCenter(&easgd, weights.data(), 10, &id, &config), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("needs all ranks of a communicator"));
}

}  // namespace
}  // namespace tacc::test
