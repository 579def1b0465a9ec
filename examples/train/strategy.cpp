#include "strategy.hpp"

#include <algorithm>

#include "stopwatch.hpp"
#include "tacc/compute.h"

namespace tacc::train {
namespace {

/// Plain SGD with momentum, by one rank alone.
class Serial : public Strategy {
 public:
  Serial(const StrategyOptions& options, Parameters& parameters)
      : options_(options), parameters_(parameters), velocity_(parameters.weights.size()) {}

  void start() override { std::fill_n(velocity_.data(), velocity_.size(), 0.0F); }
  void step() override {
    check(taccSgdMomentum(parameters_.weights.data(), velocity_.data(), parameters_.gradients.data(), velocity_.size(),
                          options_.learningRate, options_.momentum, 0.0F));
  }
  const float* center() override { return parameters_.weights.data(); }
  Communication communication() const override { return communication_; }

 protected:
  const StrategyOptions options_;
  Parameters& parameters_;
  Communication communication_;

 private:
  Floats velocity_;
};

/// Synchronous SGD: every rank takes the same step with the mean of all gradients, so all weights stay equal.
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

 private:
  taccComm_t comm_;
};

}  // namespace

std::vector<std::string> modeNames() { return {"serial", "allreduce"}; }

bool isElastic(const std::string& mode) { return std::ranges::count(modeNames(), mode) == 0; }

std::unique_ptr<Strategy> makeStrategy(const StrategyOptions& options, Parameters& parameters, taccComm_t comm) {
  if (options.mode == "serial") return std::make_unique<Serial>(options, parameters);
  if (options.mode == "allreduce") return std::make_unique<AllReduce>(options, parameters, comm);
  fail("unknown mode \"{}\"; there are {}", options.mode, fmt::join(modeNames(), ", "));
}

}  // namespace tacc::train
