#include "easgd.hpp"

#include <algorithm>
#include <charconv>

#include "stopwatch.hpp"
#include "tacc/easgd.h"

namespace tacc::train {
namespace {

taccEasgdWire_t wireNamed(const std::string& name) {
  if (name == "float32") return taccEasgdWire32;
  if (name == "bfloat16") return taccEasgdWireBfloat16;
  if (name == "float16") return taccEasgdWireFloat16;
  fail("unknown wire format \"{}\"; there are float32, bfloat16, float16", name);
}

/// "host", "numa", "network", or so many neighbouring ranks.
void chooseGroup(const std::string& name, int rank, taccEasgdConfig_t& config) {
  if (name == "host") {
    config.group = taccEasgdGroupHost;
  } else if (name == "numa") {
    config.group = taccEasgdGroupNuma;
  } else if (name == "network") {
    config.group = taccEasgdGroupNetwork;
  } else {
    int size = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), size);
    if (error != std::errc() || end != name.data() + name.size() || size < 1)
      fail("unknown group \"{}\"; there are host, numa, network, or how many neighbouring ranks, as 2", name);
    config.group = taccEasgdGroupColor;
    config.color = rank / size;
  }
}

class Elastic : public Strategy {
 public:
  Elastic(const StrategyOptions& options, Parameters& parameters, taccComm_t comm)
      : parameters_(parameters), center_(parameters.weights.size()), isGrouped_(options.mode == "hierarchical") {
    const std::vector<std::string> names = elasticModeNames();
    taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
    config.mode = static_cast<taccEasgdMode_t>(std::ranges::find(names, options.mode) - names.begin());
    config.learningRate = options.learningRate;
    config.elasticity = options.elasticity;
    config.momentum = options.momentum;
    config.period = options.period;
    config.wire = wireNamed(options.wire);
    config.checkFinite = 1;
    int rank = 0;
    check(taccCommUserRank(comm, &rank));
    chooseGroup(options.group, rank, config);
    check(taccEasgdCreate(&easgd_, parameters.weights.data(), parameters.weights.size(), comm, &config));
  }
  ~Elastic() override { taccEasgdDestroy(easgd_); }
  Elastic(const Elastic&) = delete;
  Elastic& operator=(const Elastic&) = delete;

  void start() override {
    check(taccEasgdStart(easgd_));
    stepSeconds_ = 0;
  }
  void setLearningRate(float rate) override { check(taccEasgdSetLearningRate(easgd_, rate)); }
  void step() override {
    const Stopwatch watch;
    check(taccEasgdStep(easgd_, parameters_.gradients.data()));
    stepSeconds_ += watch.seconds();
  }
  const float* center() override {
    check(taccEasgdCenter(easgd_, center_.data()));
    return center_.data();
  }
  Communication communication() const override {
    // Groups sum their gradients in every step, which is no exchange.
    if (isGrouped_) return {stepSeconds_, stepSeconds_};
    taccEasgdInfo_t info{};
    info.size = sizeof(info);
    check(taccEasgdInfo(easgd_, &info));
    return {info.waitSeconds, info.exchangeSeconds};
  }

 private:
  Parameters& parameters_;
  taccEasgd_t easgd_ = nullptr;
  Floats center_;
  const bool isGrouped_;
  double stepSeconds_ = 0;
};

}  // namespace

std::vector<std::string> elasticModeNames() {
  return {"original",    "async", "hogwild", "sync1", "sync2", "sync3", "decentralized", "decentralized-stale",
          "hierarchical"};
}

std::unique_ptr<Strategy> makeElastic(const StrategyOptions& options, Parameters& parameters, taccComm_t comm) {
  return std::make_unique<Elastic>(options, parameters, comm);
}

}  // namespace tacc::train
