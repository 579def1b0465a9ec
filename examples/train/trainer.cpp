#include "trainer.hpp"

#include <algorithm>
#include <cmath>

#include "model.hpp"
#include "shard.hpp"
#include "stopwatch.hpp"

namespace tacc::train {
namespace {

constexpr int testBatch = 64;

StrategyOptions strategyOf(const Options& options, const Run& run) {
  StrategyOptions strategy = options.strategy;
  strategy.mode = run.mode;
  strategy.period = std::max(run.tau, 1);
  return strategy;
}

/// A rank of one run.
class Trainer {
 public:
  Trainer(const Options& options, const Run& run, const Split& data, const Team& team, taccComm_t comm)
      : options_(options),
        data_(data),
        team_(team),
        model_(makeModel(options.model, options.batch, data.train.side, data.train.classes)),
        testModel_(makeModel(options.model, testBatch, data.train.side, data.train.classes)),
        shard_(data.train, team.rank(), team.ranks(), options.batch, options.seed),
        parameters_(model_->parameterCount()),
        strategy_(makeStrategy(strategyOf(options, run), parameters_, comm)) {
    model_->initialize(parameters_.weights.data(), options.seed);
    strategy_->start();
  }

  EpochRecord runEpoch(int epoch) {
    shard_.beginEpoch(epoch);
    strategy_->setLearningRate(learningRateOf(options_, epoch));
    const Communication before = strategy_->communication();
    Score sum;
    team_.meet();
    const Stopwatch watch;
    for (int step = 0; step < shard_.steps(); ++step) {
      shard_.take(step, batch_);
      const Score score = computeGradient(*model_, parameters_.weights.data(), batch_.pixels.data(),
                                          batch_.labels.data(), parameters_.gradients.data());
      sum.loss += score.loss;
      sum.correct += score.correct;
      strategy_->step();
    }
    const double seconds = watch.seconds();
    const Communication after = strategy_->communication();
    return summarize(epoch, seconds, sum, {after.waited - before.waited, after.taken - before.taken});
  }

  const float* center() { return strategy_->center(); }
  std::size_t parameterCount() const { return parameters_.weights.size(); }

 private:
  EpochRecord summarize(int epoch, double seconds, const Score& sum, const Communication& spent) {
    std::vector<double> totals = {sum.loss, static_cast<double>(sum.correct), seconds, spent.waited, spent.taken};
    std::vector<double> longest = {seconds};
    team_.combine(totals);
    team_.combine(longest, taccMax);
    const double steps = static_cast<double>(shard_.steps()) * team_.ranks();
    const double images = steps * options_.batch;
    images_ += static_cast<std::uint64_t>(images);
    seconds_ += longest[0];
    EpochRecord record;
    record.epoch = epoch;
    record.images = images_;
    record.loss = totals[0] / steps;
    record.trainAccuracy = totals[1] / images;
    record.testAccuracy = testCenter();
    record.seconds = seconds_;
    record.waitedShare = totals[3] / totals[2];
    record.hiddenShare = totals[4] > 0 ? std::max(0.0, 1 - totals[3] / totals[4]) : 0;
    return record;
  }

  /// Rank 0 does it for all.
  double testCenter() {
    const float* weights = strategy_->center();
    std::vector<double> correct = {0};
    if (team_.rank() == 0) correct[0] = static_cast<double>(evaluate(*testModel_, weights, data_.test).correct);
    team_.combine(correct);
    return correct[0] / static_cast<double>(data_.test.size());
  }

  const Options& options_;
  const Split& data_;
  const Team& team_;
  std::unique_ptr<Model> model_, testModel_;
  Shard shard_;
  Parameters parameters_;
  std::unique_ptr<Strategy> strategy_;
  Batch batch_;
  std::uint64_t images_ = 0;
  double seconds_ = 0;
};

}  // namespace

std::string Run::label() const { return tau > 0 ? fmt::format("{}, tau {}", mode, tau) : mode; }

std::vector<Run> runsOf(const Options& options) {
  std::vector<Run> runs;
  for (const std::string& mode : options.modes) {
    if (isElastic(mode))
      for (const int tau : options.taus) runs.push_back({mode, tau});
    else
      runs.push_back({mode, 0});
  }
  return runs;
}

float learningRateOf(const Options& options, int epoch) {
  const float rate = options.strategy.learningRate;
  if (options.schedule == "constant") return rate;
  const double done = (epoch - 1.0) / options.epochs;
  return static_cast<float>(rate * (1 + std::cos(M_PI * done)) / 2);
}

std::vector<float> train(const Options& options, const Run& run, const Split& data, const Team& team, taccComm_t comm,
                         const std::function<void(const EpochRecord&)>& onEpoch) {
  Trainer trainer(options, run, data, team, comm);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) onEpoch(trainer.runEpoch(epoch));
  const float* center = trainer.center();
  return {center, center + trainer.parameterCount()};
}

}  // namespace tacc::train
