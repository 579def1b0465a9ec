#include "strategy.hpp"

#include <algorithm>

#include "easgd.hpp"
#include "stopwatch.hpp"
#include "tacc/compute.h"
#include "tacc/easgd.h"

namespace tacc::train {
namespace {

/// Plain SGD with momentum, by one rank alone.
class Serial : public Strategy {
 public:
  Serial(const StrategyOptions& options, Parameters& parameters)
      : options_(options), parameters_(parameters), velocity_(parameters.weights.size()) {}

  void start() override { std::fill_n(velocity_.data(), velocity_.size(), 0.0F); }
  void setLearningRate(float rate) override { options_.learningRate = rate; }
  void step() override {
    check(taccSgdMomentum(parameters_.weights.data(), velocity_.data(), parameters_.gradients.data(), velocity_.size(),
                          options_.learningRate, options_.momentum, 0.0F));
  }
  const float* center() override { return parameters_.weights.data(); }
  Communication communication() const override { return communication_; }

 protected:
  StrategyOptions options_;
  Parameters& parameters_;
  Floats velocity_;
  Communication communication_;
};

/// Synchronous SGD: every rank takes the same step with the mean of all
/// gradients, so all weights stay equal.
class AllReduce : public Serial {
 public:
  AllReduce(const StrategyOptions& options, Parameters& parameters, taccComm_t comm)
      : Serial(options, parameters), comm_(comm) {}

  void start() override {
    Serial::start();
    communication_ = {};
    check(taccBcast(parameters_.weights.data(), parameters_.weights.size(), taccFloat, 0, comm_, nullptr));
  }
  void step() override {
    float* gradients = parameters_.gradients.data();
    const Stopwatch watch;
    check(taccAllReduce(gradients, gradients, parameters_.gradients.size(), taccFloat, taccAvg, comm_, nullptr));
    communication_.waited += watch.seconds();
    communication_.taken = communication_.waited;
    Serial::step();
  }

 protected:
  taccComm_t comm_;
};

/// The same in one call: weights are made new while the sums are in the cache.
class FusedAllReduce : public AllReduce {
 public:
  using AllReduce::AllReduce;

  void step() override {
    const Stopwatch watch;
    check(taccAllReduceUpdate(parameters_.gradients.data(), parameters_.weights.data(), velocity_.data(),
                              velocity_.size(), options_.learningRate, options_.momentum, comm_));
    communication_.waited += watch.seconds();
    communication_.taken = communication_.waited;
  }
};

}  // namespace

std::vector<std::string> modeNames() {
  std::vector<std::string> names = {"serial", "allreduce", "allreduce-fused"};
  for (const std::string& name : elasticModeNames()) names.push_back(name);
  return names;
}

bool isElastic(const std::string& mode) { return std::ranges::count(elasticModeNames(), mode) > 0; }

std::unique_ptr<Strategy> makeStrategy(const StrategyOptions& options, Parameters& parameters, taccComm_t comm) {
  if (options.mode == "serial") return std::make_unique<Serial>(options, parameters);
  if (options.mode == "allreduce") return std::make_unique<AllReduce>(options, parameters, comm);
  if (options.mode == "allreduce-fused") return std::make_unique<FusedAllReduce>(options, parameters, comm);
  if (isElastic(options.mode)) return makeElastic(options, parameters, comm);
  fail("unknown mode \"{}\"; there are {}", options.mode, fmt::join(modeNames(), ", "));
}

}  // namespace tacc::train
