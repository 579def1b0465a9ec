// Elastic averaging in training: Sync 2 is what its equations say, Sync 3 is Sync 2, and every mode learns.
#include "tacc/easgd.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "model.hpp"
#include "shapes.hpp"
#include "shard.hpp"
#include "support/run_program.hpp"
#include "support/settings.hpp"
#include "thread_ranks.hpp"
#include "trainer.hpp"

namespace tacc::train {
namespace {

constexpr double allAlpha = 0.9;  // p * alpha where no elasticity is given

Options someOptions() {
  Options options;
  options.model = "lenet";
  options.batch = 8;
  options.seed = 12;
  options.strategy.learningRate = 0.01F;
  return options;
}

struct Result {
  std::vector<float> weights, center;
};

/// What the trainer does, on one rank, with the rank's weights as a result too.
Result trainRank(const Options& options, const Run& run, const Split& data, int rank, int ranks, taccComm_t comm) {
  const auto model = makeModel(options.model, options.batch, data.train.side, data.train.classes);
  Parameters parameters(model->parameterCount());
  StrategyOptions how = options.strategy;
  how.mode = run.mode;
  how.period = run.tau;
  const auto strategy = makeStrategy(how, parameters, comm);
  // Rank 0's weights are to become those of all.
  model->initialize(parameters.weights.data(), options.seed + static_cast<std::uint64_t>(rank));
  strategy->start();
  Shard shard(data.train, rank, ranks, options.batch, options.seed);
  Batch batch;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    shard.beginEpoch(epoch);
    for (int step = 0; step < shard.steps(); ++step) {
      shard.take(step, batch);
      computeGradient(*model, parameters.weights.data(), batch.pixels.data(), batch.labels.data(),
                      parameters.gradients.data());
      strategy->step();
    }
  }
  const float* center = strategy->center();
  const std::size_t count = model->parameterCount();
  return {{parameters.weights.data(), parameters.weights.data() + count}, {center, center + count}};
}

std::vector<Result> trainRanks(const Options& options, const Run& run, const Split& data, int ranks) {
  std::vector<Result> results(static_cast<std::size_t>(ranks));
  test::runThreads(ranks, [&](int rank, taccComm_t comm) {
    results[static_cast<std::size_t>(rank)] = trainRank(options, run, data, rank, ranks, comm);
  });
  return results;
}

/// The equations of Sync EASGD with momentum, one rank after the other, as they stand in tacc/easgd.h.
std::vector<Result> reference(const Options& options, int tau, double alpha, const Split& data, int ranks) {
  const auto model = makeModel(options.model, options.batch, data.train.side, data.train.classes);
  const std::size_t count = model->parameterCount();
  std::vector<float> first(count), gradient(count);
  model->initialize(first.data(), options.seed);
  std::vector<double> center(first.begin(), first.end());
  const auto each = static_cast<std::size_t>(ranks);
  std::vector<std::vector<float>> weights(each, first);
  std::vector<std::vector<double>> velocity(each, std::vector<double>(count));
  std::vector<Shard> shards;
  for (int rank = 0; rank < ranks; ++rank) shards.emplace_back(data.train, rank, ranks, options.batch, options.seed);
  Batch batch;
  for (int epoch = 1, steps = 0; epoch <= options.epochs; ++epoch) {
    for (Shard& shard : shards) shard.beginEpoch(epoch);
    for (int step = 0; step < shards[0].steps(); ++step) {
      const bool exchanges = ++steps % tau == 0;
      std::vector<double> nextCenter = center;
      for (std::size_t rank = 0; rank < each; ++rank) {
        shards[rank].take(step, batch);
        computeGradient(*model, weights[rank].data(), batch.pixels.data(), batch.labels.data(), gradient.data());
        for (std::size_t i = 0; i < count; ++i) {
          const double pull = exchanges ? alpha * (weights[rank][i] - center[i]) : 0;
          velocity[rank][i] =
              options.strategy.momentum * velocity[rank][i] - double(options.strategy.learningRate) * gradient[i];
          weights[rank][i] = static_cast<float>(weights[rank][i] + velocity[rank][i] - pull);
          nextCenter[i] += pull;
        }
      }
      center = nextCenter;
    }
  }
  std::vector<Result> results;
  for (const std::vector<float>& mine : weights) results.push_back({mine, {center.begin(), center.end()}});
  return results;
}

double largestDifference(const std::vector<float>& one, const std::vector<float>& other) {
  EXPECT_EQ(one.size(), other.size());
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) largest = std::max(largest, std::abs(double(one[i]) - other[i]));
  return largest;
}

class EquationsTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(EquationsTest, AreWhatSync2Does) {
  const auto [ranks, tau] = GetParam();
  Options options = someOptions();
  options.epochs = 2;
  const Split data = splitDataset(drawShapes(300, 8, options.seed), options.seed);
  const std::vector<Result> results = trainRanks(options, {"sync2", tau}, data, ranks);
  const std::vector<Result> expected = reference(options, tau, allAlpha / ranks, data, ranks);
  const std::vector<Result> unlike = reference(options, tau, 0.5 * allAlpha / ranks, data, ranks);
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_LT(largestDifference(results[rank].weights, expected[rank].weights), 1e-5) << rank;
    EXPECT_LT(largestDifference(results[rank].center, expected[rank].center), 1e-5) << rank;
    // With half of alpha it would be somewhere else, so this could have failed.
    EXPECT_GT(largestDifference(results[rank].center, unlike[rank].center), 1e-3) << rank;
  }
}

/// The center after one more exchange, as its equation says.
std::vector<float> nextCenter(const std::vector<Result>& results, double alpha) {
  std::vector<float> next = results[0].center;
  for (std::size_t i = 0; i < next.size(); ++i) {
    double sum = 0;
    for (const Result& result : results) sum += double(result.weights[i]) - result.center[i];
    next[i] = static_cast<float>(next[i] + alpha * sum);
  }
  return next;
}

TEST_P(EquationsTest, AreThoseOfSync3) {
  const auto [ranks, tau] = GetParam();
  Options options = someOptions();
  options.epochs = 2;
  const Split data = splitDataset(drawShapes(300, 8, options.seed), options.seed);
  const std::vector<Result> sync2 = trainRanks(options, {"sync2", tau}, data, ranks);
  const std::vector<Result> sync3 = trainRanks(options, {"sync3", tau}, data, ranks);
  // Where the next step exchanges, that exchange is under way already, and counts.
  const int steps = options.epochs * Shard(data.train, 0, ranks, options.batch, options.seed).steps();
  const bool isAhead = (steps + 1) % tau == 0;
  const std::vector<float> center = isAhead ? nextCenter(sync2, allAlpha / ranks) : sync2[0].center;
  // Two numbers have one sum, more are added in another order.
  const double tolerance = ranks <= 2 ? 0 : 1e-5;
  for (std::size_t rank = 0; rank < sync2.size(); ++rank) {
    EXPECT_LE(largestDifference(sync2[rank].weights, sync3[rank].weights), tolerance) << rank;
    EXPECT_LE(largestDifference(center, sync3[rank].center), isAhead ? 1e-5 : tolerance) << rank;
    EXPECT_EQ(sync2[rank].center, sync2[0].center) << rank;
    EXPECT_EQ(sync3[rank].center, sync3[0].center) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(RanksAndTau, EquationsTest, testing::Combine(testing::Values(1, 2, 4), testing::Values(1, 3)));

double finalAccuracy(const Options& options, const Run& run, const Split& data, int ranks) {
  double accuracy = 0;
  if (run.mode == "serial") {
    train(options, run, data, Team(), nullptr, [&](const EpochRecord& record) { accuracy = record.testAccuracy; });
    return accuracy;
  }
  test::runThreads(ranks, [&](int rank, taccComm_t comm) {
    const Team team(comm);
    train(options, run, data, team, comm, [&](const EpochRecord& record) {
      if (rank == 0) accuracy = record.testAccuracy;
    });
  });
  return accuracy;
}

/// scikit-learn's digits; nothing where it is missing.
const Dataset& digits() {
  static const Dataset all = [] {
    const std::string path = testing::TempDir() + "tacc_digits_" + std::to_string(::getpid()) + ".txt";
    const tacc::test::Ran exported = tacc::test::runProgram(TACC_TEST_EXPORT, path, "");
    if (exported.status != 0) return Dataset{};
    Dataset data = readDatasetFile(path);
    std::filesystem::remove(path);
    return data;
  }();
  return all;
}

/// On images that were not trained on: of digits most of them, in several runs, as a fifth of them says too little.
double accuracyOf(Options options, const Run& run, int ranks) {
  if (digits().size() == 0) {
    options.epochs = 8;  // of more images than digits
    return finalAccuracy(options, run, splitDataset(drawShapes(3000, 16, options.seed), options.seed), ranks);
  }
  const int folds = tacc::test::isQuick() ? 1 : 3;
  double accuracy = 0;
  for (int fold = 0; fold < folds; ++fold)
    accuracy += finalAccuracy(options, run, splitDataset(digits(), options.seed, fold), ranks) / folds;
  return accuracy;
}

class EveryMode : public testing::TestWithParam<std::string> {};

/// By the trainer's defaults: in the mean of three seeds within a point of serial training after the same epochs. A
/// sample of one run says less.
TEST_P(EveryMode, LearnsAsSerialTrainingDoes) {
  const std::uint64_t seeds = tacc::test::isQuick() ? 1 : 3;
  const double mostBehind = tacc::test::isQuick() ? 0.04 : 0.01;
  static std::map<std::uint64_t, double> serial;
  double behind = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Options options;
    options.seed = seed;
    if (!serial.contains(seed)) serial[seed] = accuracyOf(options, {"serial", 0}, 1);
    EXPECT_GT(serial[seed], 0.97);
    const double accuracy = accuracyOf(options, {GetParam(), options.taus[0]}, 4);
    EXPECT_GT(accuracy, serial[seed] - 0.01 - mostBehind) << "seed " << seed;
    behind += (serial[seed] - accuracy) / static_cast<double>(seeds);
  }
  EXPECT_LT(behind, mostBehind);
}

std::vector<std::string> modesOfSeveralRanks() {
  std::vector<std::string> names = modeNames();
  std::erase(names, "serial");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryMode, testing::ValuesIn(modesOfSeveralRanks()), [](const auto& mode) {
  std::string name = mode.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace tacc::train
