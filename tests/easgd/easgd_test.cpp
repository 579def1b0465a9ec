// Every synchronous mode against the equations in double: ranks as threads and processes, on one host and several,
// weights in library and private memory, odd, tiny and zero counts, momentum, periods.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/rank_harness.hpp"
#include "easgd/modes.hpp"
#include "support/virtual_cluster.hpp"
#include "training.hpp"

namespace tacc::test {
namespace {

/// Weights in library memory or the program's own.
class TestWeights {
 public:
  TestWeights(std::size_t count, bool isLibrary) : own_(isLibrary ? 0 : count), count_(count), isLibrary_(isLibrary) {
    if (isLibrary) {
      EXPECT_EQ(taccMemAlloc(reinterpret_cast<void**>(&data_), count * sizeof(float)), taccSuccess);
    } else {
      data_ = own_.data();
    }
  }
  TestWeights(const TestWeights&) = delete;
  TestWeights& operator=(const TestWeights&) = delete;
  ~TestWeights() {
    if (isLibrary_) taccMemFree(data_);
  }
  float* data() const { return data_; }
  std::vector<float> values() const { return {data_, data_ + count_}; }

 private:
  std::vector<float> own_;
  float* data_ = nullptr;
  std::size_t count_;
  bool isLibrary_;
};

struct Trained {
  std::vector<float> weights, center;
  taccEasgdInfo_t info;
};

/// `steps` steps on this rank.
Trained train(taccComm_t comm, int rank, std::size_t count, const taccEasgdConfig_t& config, int steps,
              bool isLibrary) {
  const TestWeights weights(count, isLibrary), gradients(count, isLibrary);
  if (rank == 0)
    for (std::size_t i = 0; i < count; ++i) weights.data()[i] = firstWeight(i);
  taccEasgd_t easgd = nullptr;
  expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
  expectSuccess(taccEasgdStart(easgd), comm);
  std::vector<float> gradient(count);
  for (int step = 1; step <= steps; ++step) {
    fillGradient(gradient, rank, step, weights.data());
    std::copy(gradient.begin(), gradient.end(), gradients.data());
    expectSuccess(taccEasgdStep(easgd, gradients.data()), comm);
  }
  Trained trained{{}, std::vector<float>(count + 1), {}};
  expectSuccess(taccEasgdCenter(easgd, trained.center.data()), comm);
  trained.center.pop_back();
  trained.info.size = sizeof trained.info;
  expectSuccess(taccEasgdInfo(easgd, &trained.info), comm);
  expectSuccess(taccEasgdDestroy(easgd), comm);
  trained.weights = weights.values();
  return trained;
}

void expectNear(const std::vector<float>& found, const std::vector<double>& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(static_cast<double>(found[i]), expected[i], tolerance) << what << ", element " << i;
}

/// Trains and compares with the equations.
void check(taccComm_t comm, int rank, int ranks, std::size_t count, const taccEasgdConfig_t& config, bool isLibrary,
           const std::vector<int>& groups, double tolerance = 2e-5) {
  constexpr int steps = 7;
  ReferenceTraining reference(ranks, count, config);
  if (!groups.empty()) reference.groups = groups;
  for (int step = 0; step < steps; ++step) reference.step();
  const Trained trained = train(comm, rank, count, config, steps, isLibrary);
  const std::string what = std::string(easgdMode(config.mode).name) + ", " + std::to_string(count) + " weights, " +
                           (isLibrary ? "library" : "private") + " memory, momentum " +
                           std::to_string(config.momentum) + ", period " + std::to_string(config.period);
  expectNear(trained.weights, reference.x[static_cast<std::size_t>(rank)], tolerance, what + ": weights");
  expectNear(trained.center, reference.center(), tolerance, what + ": center");
  EXPECT_EQ(trained.info.steps, 7u);
  EXPECT_EQ(trained.info.exchanges, static_cast<unsigned>(steps / config.period));
  EXPECT_EQ(trained.info.bytes, trained.info.exchanges * 2 * count * (config.wire == taccEasgdWire32 ? 4 : 2));
  EXPECT_GE(trained.info.hiddenShare, 0);
  EXPECT_LE(trained.info.hiddenShare, 1);
}

taccEasgdConfig_t configOf(const EasgdMode& mode, float momentum, int period) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  config.mode = mode.mode;
  config.learningRate = 0.05f;
  config.momentum = momentum;
  config.period = period;
  return config;
}

/// Every mode that waits for all ranks, with counts around what is treated apart.
void checkAll(taccComm_t comm, int rank, int ranks, const std::vector<std::size_t>& counts, bool isLibrary,
              const std::vector<int>& groups) {
  for (const EasgdMode& mode : easgdModes()) {
    if (!mode.isSynchronous) continue;
    for (const std::size_t count : counts)
      for (const auto& [momentum, period] : {std::pair(0.0f, 1), std::pair(0.9f, 3), std::pair(0.9f, 1)})
        if (period == 1 || count < 10000)
          check(comm, rank, ranks, count, configOf(mode, momentum, period), isLibrary,
                mode.mode == taccEasgdHierarchical ? groups : std::vector<int>());
  }
}

std::vector<int> allTogether(int ranks) { return std::vector<int>(static_cast<std::size_t>(ranks), 0); }

TEST(Easgd, threadsFollowTheEquations) {
  for (const int ranks : {1, 2, 3, 5})
    runRanks(RankKind::threads, ranks, [&](taccComm_t comm, int rank) {
      checkAll(comm, rank, ranks, {0, 1, 1025, 30001}, false, allTogether(ranks));
    });
}

TEST(Easgd, processesFollowTheEquations) {
  for (const int ranks : {2, 4})
    for (const bool isLibrary : {false, true})
      runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
        checkAll(comm, rank, ranks, {3, 5000, 70001}, isLibrary, allTogether(ranks));
      });
}

TEST(Easgd, privateMemoryThatNobodyReads) {
  ::setenv("TACC_CMA", "off", 1);
  runRanks(RankKind::processes, 3,
           [&](taccComm_t comm, int rank) { checkAll(comm, rank, 3, {70001}, false, allTogether(3)); });
  ::unsetenv("TACC_CMA");
}

/// One rank's weights in library memory, the other's not: no rank may take the other for reachable.
TEST(Easgd, mixedMemory) {
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    for (const EasgdMode& mode : easgdModes())
      if (mode.isSynchronous)
        check(comm, rank, 2, 5000, configOf(mode, 0, 1), rank == 0,
              mode.mode == taccEasgdHierarchical ? allTogether(2) : std::vector<int>());
  });
}

TEST(Easgd, severalHostsFollowTheEquations) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<std::vector<int>> placements = {{1, 2, 3}, {1, 1, 2, 2}, {1, 2, 1}};
  for (const std::vector<int>& hosts : placements) {
    const VirtualCluster cluster(1, 3);
    std::vector<int> groups;
    for (const int host : hosts) groups.push_back(host - 1);
    runOnHosts(cluster, hosts, [&](taccComm_t comm, int rank) {
      checkAll(comm, rank, static_cast<int>(hosts.size()), {1, 5003, 30001}, rank % 2 == 0, groups);
    });
  }
}

TEST(Easgd, groupsByColor) {
  runRanks(RankKind::processes, 5, [&](taccComm_t comm, int rank) {
    taccEasgdConfig_t config = configOf(easgdMode(taccEasgdHierarchical), 0.9f, 2);
    config.group = taccEasgdGroupColor;
    config.color = rank < 2 ? 7 : 3;
    check(comm, rank, 5, 5000, config, true, {0, 0, 1, 1, 1});
  });
}

/// Each rank of a group keeps a slice of the group's center: none, one, and some that are left over.
TEST(Easgd, groupsOfEqualSize) {
  for (const RankKind kind : {RankKind::processes, RankKind::threads})
    runRanks(kind, 4, [&](taccComm_t comm, int rank) {
      for (const std::size_t count : {0, 1, 2, 3, 5, 20003})
        for (const bool isInterleaved : {false, true}) {
          taccEasgdConfig_t config = configOf(easgdMode(taccEasgdHierarchical), 0.5f, 2);
          config.group = taccEasgdGroupColor;
          config.color = isInterleaved ? rank % 2 : rank / 2;
          check(comm, rank, 4, count, config, true,
                isInterleaved ? std::vector<int>{0, 1, 0, 1} : std::vector<int>{0, 0, 1, 1});
        }
    });
}

/// A rank that is a group by itself goes the way of all.
TEST(Easgd, groupsOfOneAndOfMany) {
  for (const RankKind kind : {RankKind::processes, RankKind::threads})
    runRanks(kind, 4, [&](taccComm_t comm, int rank) {
      taccEasgdConfig_t config = configOf(easgdMode(taccEasgdHierarchical), 0.5f, 1);
      config.group = taccEasgdGroupColor;
      config.color = rank == 2 ? 1 : 0;
      check(comm, rank, 4, 5000, config, true, {0, 0, 1, 0});
    });
}

/// Exchanges that the program asks for, between steps of which some exchange too, in the modes that keep whole centers.
TEST(Easgd, exchangesBetweenSteps) {
  for (const bool isLibrary : {false, true})
    runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
      for (const taccEasgdMode_t mode :
           {taccEasgdOriginal, taccEasgdSync1, taccEasgdSync2, taccEasgdSync3, taccEasgdDecentralized}) {
        constexpr std::size_t count = 6000;
        const taccEasgdConfig_t config = configOf(easgdMode(mode), 0.5f, 2);
        ReferenceTraining reference(3, count, config);
        const TestWeights weights(count, isLibrary);
        std::vector<float> gradient(count), center(count);
        for (std::size_t i = 0; i < count; ++i) weights.data()[i] = firstWeight(i);
        taccEasgd_t easgd = nullptr;
        expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
        expectSuccess(taccEasgdStart(easgd), comm);
        for (int step = 1; step <= 9; ++step) {
          fillGradient(gradient, rank, step, weights.data());
          expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
          reference.step();
          if (step % 3 != 0) continue;
          expectSuccess(taccEasgdExchange(easgd), comm);
          if (mode == taccEasgdSync3 && (step + 1) % 2 == 0) reference.exchange();  // what was under way
          reference.exchange();
          expectSuccess(taccEasgdCenter(easgd, center.data()), comm);
          expectNear(center, reference.center(), 2e-5, std::string(easgdMode(mode).name));
        }
        expectNear(weights.values(), reference.x[static_cast<std::size_t>(rank)], 2e-5,
                   std::string(easgdMode(mode).name));
        expectSuccess(taccEasgdDestroy(easgd), comm);
      }
    });
}

/// What the program gave to a stream of its own comes first.
TEST(Easgd, callsOnStreamsBetweenSteps) {
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int) {
    taccStream_t stream = nullptr;
    expectSuccess(taccStreamCreate(&stream), comm);
    for (const EasgdMode& mode : easgdModes()) {
      if (!mode.isSynchronous) continue;
      std::vector<float> weights(20000, 1.0f), gradient(20000, 0.1f), sums(500000, 1.0f);
      const taccEasgdConfig_t config = configOf(mode, 0, 2);
      taccEasgd_t easgd = nullptr;
      expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
      expectSuccess(taccEasgdStart(easgd), comm);
      for (int step = 0; step < 20; ++step) {
        expectSuccess(taccAllReduce(sums.data(), sums.data(), sums.size(), taccFloat32, taccAvg, comm, stream), comm);
        expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
      }
      expectSuccess(taccStreamSynchronize(stream), comm);
      EXPECT_EQ(sums[77], 1.0f);
      expectSuccess(taccEasgdDestroy(easgd), comm);
    }
    expectSuccess(taccStreamDestroy(stream), comm);
  });
}

TEST(Easgd, sixteenBitsMoveTheCenterByWhatWeightsMoved) {
  for (const taccEasgdWire_t wire : {taccEasgdWireBfloat16, taccEasgdWireFloat16})
    for (const taccEasgdMode_t mode : {taccEasgdSync2, taccEasgdSync3, taccEasgdHierarchical})
      runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
        taccEasgdConfig_t config = configOf(easgdMode(mode), 0, 2);
        config.wire = wire;
        check(comm, rank, 2, 5000, config, true, mode == taccEasgdHierarchical ? allTogether(2) : std::vector<int>(),
              0.02);
      });
}

TEST(Easgd, theSameRunGivesTheSameBits) {
  runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
    for (const EasgdMode& mode : easgdModes()) {
      if (!mode.isSynchronous) continue;
      const taccEasgdConfig_t config = configOf(mode, 0.9f, 2);
      const Trained first = train(comm, rank, 30011, config, 9, true),
                    second = train(comm, rank, 30011, config, 9, true);
      EXPECT_EQ(first.weights, second.weights) << mode.name;
      EXPECT_EQ(first.center, second.center) << mode.name;
    }
  });
}

/// In a reproducible communicator the order of sums is that of the ranks, whichever way an exchange goes.
TEST(Easgd, reproducibleBitsOnAnyPlacement) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  taccConfig_t reproducible = TACC_CONFIG_INITIALIZER;
  reproducible.reproducible = 1;
  constexpr std::size_t count = 20011;
  const auto* const found = static_cast<float*>(
      ::mmap(nullptr, 4 * count * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(found, MAP_FAILED);
  int run = 0;
  const auto body = [&](taccComm_t comm, int rank) {
    const taccEasgdConfig_t config = configOf(easgdMode(taccEasgdSync2), 0.9f, 2);
    const Trained trained = train(comm, rank, count, config, 6, run != 1);
    if (rank == 0) std::copy_n(trained.center.data(), count, const_cast<float*>(found) + run * count);
  };
  runRanks(RankKind::processes, 3, body, reproducible);
  run = 1;
  runRanks(RankKind::processes, 3, body, reproducible);
  const VirtualCluster cluster(1, 3);
  run = 2;
  runOnHosts(cluster, {1, 2, 3}, body, reproducible);
  run = 3;
  runOnHosts(cluster, {1, 2, 1}, body, reproducible);
  for (int other = 1; other < 4; ++other)
    EXPECT_EQ(std::memcmp(found, found + other * count, count * sizeof(float)), 0) << "run " << other;
}

TEST(Easgd, tensorsLieBehindEachOther) {
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    const std::vector<size_t> counts = {5, 0, 1000, 33};
    const taccEasgdConfig_t config = configOf(easgdMode(taccEasgdSync2), 0.5f, 1);
    taccEasgd_t easgd = nullptr;
    expectSuccess(taccEasgdCreateTensors(&easgd, counts.data(), 4, comm, &config), comm);
    std::vector<float*> weights(4), gradients(4);
    for (int t = 0; t < 4; ++t) {
      expectSuccess(
          taccEasgdGetTensor(easgd, t, &weights[static_cast<std::size_t>(t)], &gradients[static_cast<std::size_t>(t)]),
          comm);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weights[static_cast<std::size_t>(t)]) % 64, 0u);
    }
    if (rank == 0) std::fill_n(weights[2], 1000, 2.0f);
    expectSuccess(taccEasgdStart(easgd), comm);
    EXPECT_EQ(weights[2][999], 2.0f);
    std::fill_n(gradients[2], 1000, rank == 0 ? 1.0f : 3.0f);
    expectSuccess(taccEasgdStep(easgd, nullptr), comm);
    EXPECT_FLOAT_EQ(weights[2][500], 2.0f - 0.05f * (rank == 0 ? 1.0f : 3.0f));
    EXPECT_EQ(weights[3][0], 0.0f);
    EXPECT_NE(taccEasgdGetTensor(easgd, 4, nullptr, nullptr), taccSuccess);
    expectSuccess(taccEasgdDestroy(easgd), comm);
  });
}

TEST(Easgd, theLearningRateMayChange) {
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    for (const taccEasgdMode_t mode : {taccEasgdSync2, taccEasgdSync3}) {
      std::vector<float> weights(100, 1.0f), gradient(100, static_cast<float>(rank));
      taccEasgdConfig_t config = configOf(easgdMode(mode), 0, 2);
      taccEasgd_t easgd = nullptr;
      expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
      expectSuccess(taccEasgdStart(easgd), comm);
      expectSuccess(taccEasgdSetLearningRate(easgd, 0.5f), comm);
      expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
      EXPECT_FLOAT_EQ(weights[7], 1.0f - 0.5f * static_cast<float>(rank));
      expectSuccess(taccEasgdExchange(easgd), comm);
      std::vector<float> center(100);
      expectSuccess(taccEasgdCenter(easgd, center.data()), comm);
      EXPECT_NEAR(center[7], 1.0f - 0.45f * 0.5f, mode == taccEasgdSync3 ? 0.2f : 1e-6f);
      expectSuccess(taccEasgdDestroy(easgd), comm);
    }
  });
}

/// The program's own calls on the communicator between steps come after what is under way, on all ranks alike.
TEST(Easgd, callsOfTheProgramBesideAnExchange) {
  runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
    for (const taccEasgdMode_t mode : {taccEasgdSync3, taccEasgdDecentralizedStale}) {
      std::vector<float> weights(300007, 1.0f), gradient(300007, 0.1f);
      const taccEasgdConfig_t config = configOf(easgdMode(mode), 0, 1);
      taccEasgd_t easgd = nullptr;
      expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
      expectSuccess(taccEasgdStart(easgd), comm);
      for (int step = 0; step < 5; ++step) {
        expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
        int sum = rank;
        expectSuccess(taccAllReduce(&sum, &sum, 1, taccInt32, taccSum, comm, nullptr), comm);
        EXPECT_EQ(sum, 3);
      }
      expectSuccess(taccEasgdDestroy(easgd), comm);
    }
  });
}

TEST(AllReduceUpdate, isAnAllReduceAndAStep) {
  for (const bool isLibrary : {false, true})
    runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{777}, std::size_t{200003}})
        for (const bool hasVelocity : {false, true}) {
          const TestWeights weights(count, isLibrary), gradients(count, isLibrary);
          std::vector<float> velocity(count + 1);
          std::vector<double> x(count), v(count);
          for (std::size_t i = 0; i < count; ++i) {
            weights.data()[i] = firstWeight(i);
            x[i] = firstWeight(i);
          }
          for (int step = 0; step < 3; ++step) {
            for (std::size_t i = 0; i < count; ++i) {
              gradients.data()[i] = static_cast<float>(noise(static_cast<std::uint64_t>(rank), i, 5));
              double mean = 0;
              for (std::uint64_t r = 0; r < 3; ++r) mean += static_cast<float>(noise(r, i, 5)) / 3.0;
              v[i] = (hasVelocity ? 0.9 : 0.0) * v[i] - 0.1 * mean;
              x[i] += v[i];
            }
            expectSuccess(taccAllReduceUpdate(gradients.data(), weights.data(), hasVelocity ? velocity.data() : nullptr,
                                              count, 0.1f, hasVelocity ? 0.9f : 0.0f, comm),
                          comm);
          }
          expectNear(weights.values(), x, 1e-5, "weights");
          // Equal bits on all ranks.
          std::vector<float> least = weights.values(), most = least;
          if (count == 0) continue;
          expectSuccess(taccAllReduce(least.data(), least.data(), count, taccFloat32, taccMin, comm, nullptr), comm);
          expectSuccess(taccAllReduce(most.data(), most.data(), count, taccFloat32, taccMax, comm, nullptr), comm);
          EXPECT_EQ(least, most);
        }
    });
}

}  // namespace
}  // namespace tacc::test
