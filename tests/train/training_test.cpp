// Training by one rank learns, and training by several with the mean gradient is the same.
#include <gtest/gtest.h>

#include <cmath>

#include "model.hpp"
#include "shapes.hpp"
#include "shard.hpp"
#include "thread_ranks.hpp"
#include "trainer.hpp"

namespace tacc::train {
namespace {

Options smallOptions(const std::string& model) {
  Options options;
  options.model = model;
  options.batch = 8;
  options.strategy.learningRate = 0.01F;
  options.seed = 11;
  return options;
}

std::vector<EpochRecord> trainAlone(const Options& options, const Split& data) {
  std::vector<EpochRecord> records;
  train(options, {"serial", 0}, data, Team(), nullptr, [&](const EpochRecord& record) { records.push_back(record); });
  return records;
}

TEST(Serial, LearnsShapes) {
  Options options = smallOptions("lenet");
  options.epochs = 6;
  const Split data = splitDataset(drawShapes(1500, 16, options.seed), options.seed);
  const std::vector<EpochRecord> records = trainAlone(options, data);
  ASSERT_EQ(records.size(), 6U);
  EXPECT_GT(records.back().testAccuracy, 0.95);
  EXPECT_GT(records.back().trainAccuracy, 0.95);
  EXPECT_LT(records.back().loss, 0.2 * records.front().loss);
  EXPECT_EQ(records.back().images, 6U * 1200);
}

TEST(Serial, LearnsSomeOfItByRegression) {
  Options options = smallOptions("softmax");
  options.epochs = 6;
  const Split data = splitDataset(drawShapes(1500, 16, options.seed), options.seed);
  const std::vector<EpochRecord> records = trainAlone(options, data);
  EXPECT_GT(records.back().testAccuracy, 0.5);
  EXPECT_LT(records.back().loss, 0.6 * records.front().loss);
}

/// Weights after `epochs` of plain SGD whose every batch is those of all ranks' shards together.
std::vector<float> trainOnGlobalBatches(const Options& options, const Split& data, int ranks) {
  std::unique_ptr<Model> model = makeModel(options.model, options.batch * ranks, data.train.side, data.train.classes);
  Parameters parameters(model->parameterCount());
  model->initialize(parameters.weights.data(), options.seed);
  std::unique_ptr<Strategy> strategy = makeStrategy(options.strategy, parameters, nullptr);
  strategy->start();
  std::vector<Shard> shards;
  for (int rank = 0; rank < ranks; ++rank) shards.emplace_back(data.train, rank, ranks, options.batch, options.seed);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    for (Shard& shard : shards) shard.beginEpoch(epoch);
    strategy->setLearningRate(learningRateOf(options, epoch));
    for (int step = 0; step < shards[0].steps(); ++step) {
      Batch all, part;
      for (const Shard& shard : shards) {
        shard.take(step, part);
        all.pixels.insert(all.pixels.end(), part.pixels.begin(), part.pixels.end());
        all.labels.insert(all.labels.end(), part.labels.begin(), part.labels.end());
      }
      computeGradient(*model, parameters.weights.data(), all.pixels.data(), all.labels.data(),
                      parameters.gradients.data());
      strategy->step();
    }
  }
  return {parameters.weights.data(), parameters.weights.data() + parameters.weights.size()};
}

double largestDifference(const std::vector<float>& one, const std::vector<float>& other) {
  EXPECT_EQ(one.size(), other.size());
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) largest = std::max(largest, std::abs(double(one[i]) - other[i]));
  return largest;
}

TEST(Schedule, GoesDownToNothing) {
  Options options = smallOptions("softmax");
  options.epochs = 4;
  EXPECT_FLOAT_EQ(learningRateOf(options, 1), 0.01F);
  EXPECT_FLOAT_EQ(learningRateOf(options, 3), 0.005F);
  EXPECT_FLOAT_EQ(learningRateOf(options, 5), 0);
  options.schedule = "constant";
  EXPECT_FLOAT_EQ(learningRateOf(options, 4), 0.01F);
}

class AllReduceTest : public testing::TestWithParam<std::tuple<std::string, std::string, int>> {};

TEST_P(AllReduceTest, IsSerialWithTheGlobalBatch) {
  const auto& [mode, model, ranks] = GetParam();
  Options options = smallOptions(model);
  options.epochs = 2;
  const Split data = splitDataset(drawShapes(300, 8, options.seed), options.seed);
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  test::runThreads(ranks, [&](int rank, taccComm_t comm) {
    const Team team(comm);
    results[static_cast<std::size_t>(rank)] = train(options, {mode, 0}, data, team, comm, [](const EpochRecord&) {});
  });
  for (const std::vector<float>& weights : results) EXPECT_EQ(weights, results[0]);  // bit for bit
  EXPECT_LT(largestDifference(results[0], trainOnGlobalBatches(options, data, ranks)), 2e-6);
  // Rank 0's batches alone lead elsewhere, so this could have failed.
  EXPECT_GT(largestDifference(results[0], trainOnGlobalBatches(options, data, 1)), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllReduceTest,
                         testing::Combine(testing::Values("allreduce", "allreduce-fused"),
                                          testing::ValuesIn(modelNames()), testing::Values(2, 4)));

TEST(AllReduce, BeginsWithTheWeightsOfRankZero) {
  test::runThreads(3, [](int rank, taccComm_t comm) {
    Parameters parameters(20);
    for (std::size_t i = 0; i < 20; ++i) parameters.weights.data()[i] = static_cast<float>(100 * rank) + float(i);
    StrategyOptions options;
    options.mode = "allreduce";
    std::unique_ptr<Strategy> strategy = makeStrategy(options, parameters, comm);
    strategy->start();
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(strategy->center()[i], float(i));
  });
}

TEST(MakeStrategy, RefusesUnknownModes) {
  Parameters parameters(16);
  StrategyOptions options;
  options.mode = "telepathy";
  EXPECT_THROW(makeStrategy(options, parameters, nullptr), std::runtime_error);
}

}  // namespace
}  // namespace tacc::train
