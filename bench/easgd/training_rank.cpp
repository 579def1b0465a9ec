#include "easgd/training_rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "contestants/bound_kernel.hpp"

namespace tacc::bench {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

TrainingRank::TrainingRank(taccComm_t comm, const EasgdOptions& options)
    : comm_(comm),
      options_(options),
      count_(options.bytes / sizeof(float)),
      weights_(allocate()),
      gradients_(allocate()),
      sums_(allocate()),
      center_(allocate()) {
  check(taccCommUserRank(comm, &rank_));
  check(taccCommCount(comm, &ranks_));
  taccCommInfo_t info{};
  info.size = sizeof info;
  check(taccCommGetInfo(comm, &info));
  hosts_ = info.hosts;
  fill();
}

TrainingRank::~TrainingRank() {
  for (float* memory : {weights_, gradients_, sums_, center_})
    options_.privateMemory ? std::free(memory) : static_cast<void>(taccMemFree(memory));
}

float* TrainingRank::allocate() {
  void* memory = nullptr;
  if (options_.privateMemory) {
    constexpr std::size_t page = 4096;
    memory = std::aligned_alloc(page, (count_ * sizeof(float) + page - 1) / page * page);
    if (memory == nullptr) throw std::bad_alloc();
  } else {
    check(taccMemAlloc(&memory, count_ * sizeof(float)));
  }
  return static_cast<float*>(memory);
}

void TrainingRank::fill() {
  for (std::size_t i = 0; i < count_; ++i) {
    weights_[i] = center_[i] = static_cast<float>(i % 1000) * 1e-3f;
    gradients_[i] = static_cast<float>(i % 17) * 1e-3f;
    sums_[i] = 0;
  }
}

std::vector<double> TrainingRank::timeInTurns(const std::vector<std::function<void()>>& works) {
  std::vector<std::vector<double>> times(works.size());
  for (int repetition = 0; repetition <= options_.repetitions; ++repetition)
    for (std::size_t i = 0; i < works.size(); ++i) {
      check(taccBarrier(comm_, nullptr));
      const Clock::time_point start = Clock::now();
      works[i]();
      check(taccBarrier(comm_, nullptr));
      if (repetition > 0) times[i].push_back(secondsSince(start) * 1e3);  // the first one pays for memory
    }
  std::vector<double> medians;
  for (std::vector<double>& one : times) medians.push_back(median(std::move(one)));
  return medians;
}

void TrainingRank::passOverMemory() {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t part = count_ / ranks / boundLanes * boundLanes;
  std::vector<float*> streams{center_};
  for (std::size_t r = 0; r < ranks; ++r) streams.push_back(weights_ + r * part);
  moveTogether(streams, part);
}

EasgdBaselines TrainingRank::measureBaselines() {
  constexpr float rate = 0.01f, alpha = 0.01f;
  const auto ranks = static_cast<float>(ranks_);
  const auto reduce = [&](const float* from) {
    check(taccAllReduce(from, sums_, count_, taccFloat32, taccSum, comm_, nullptr));
  };
  EasgdBaselines found{};
  found.allReduce = time([&] { reduce(gradients_); });
  found.separately = time([&] {
    reduce(gradients_);
    for (std::size_t i = 0; i < count_; ++i) weights_[i] -= rate / ranks * sums_[i];
  });
  found.fused = time([&] { check(taccAllReduceUpdate(gradients_, weights_, nullptr, count_, rate, 0, comm_)); });
  found.exchangeSeparately = time([&] {
    reduce(weights_);
    for (std::size_t i = 0; i < count_; ++i) weights_[i] -= alpha * (weights_[i] - center_[i]);
    for (std::size_t i = 0; i < count_; ++i) center_[i] += alpha * (sums_[i] - ranks * center_[i]);
  });
  fill();
  return found;
}

EasgdResult TrainingRank::measure(taccEasgdMode_t mode, int period) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  config.mode = mode;
  config.momentum = options_.momentum;
  if (mode == taccEasgdSync2 || mode == taccEasgdSync3 || mode == taccEasgdHierarchical) config.wire = options_.wire;
  if (mode == taccEasgdAsync || mode == taccEasgdHogwild) config.servers = options_.servers;
  EasgdResult result{taccEasgdModeName(mode), period, 0, 0, 0, 0, 0, 0, 0};
  taccEasgd_t easgd = nullptr;
  // With no step that exchanges nothing is under way when an exchange is asked for.
  config.period = std::numeric_limits<int>::max();
  check(taccEasgdCreate(&easgd, weights_, count_, comm_, &config));
  check(taccEasgdStart(easgd));
  std::vector<std::function<void()>> turns = {
      [&] { check(taccEasgdExchange(easgd)); },
      [&] { check(taccAllReduce(gradients_, sums_, count_, taccFloat32, taccSum, comm_, nullptr)); }};
  if (hosts_ == 1) turns.emplace_back([&] { passOverMemory(); });
  const std::vector<double> times = timeInTurns(turns);
  result.exchange = times[0];
  result.allReduce = times[1];
  if (hosts_ == 1) result.bound = times[2];
  check(taccEasgdDestroy(easgd));
  fill();
  config.period = period;
  check(taccEasgdCreate(&easgd, weights_, count_, comm_, &config));
  check(taccEasgdStart(easgd));
  check(taccBarrier(comm_, nullptr));
  const bool isLast = ranks_ > 1 && rank_ == ranks_ - 1;
  // A rank that waits for the others to compute is as one that computes for all of them.
  const int turnsOfOthers = options_.inTurn && mode == taccEasgdOriginal ? ranks_ : 1;
  const std::chrono::duration<double> computes(options_.computeSeconds * turnsOfOthers *
                                               (isLast ? options_.slowFactor : 1));
  // Without barriers in between, which would wait for what is under way beside the program.
  std::vector<double> rounds;
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  for (int round = 0; round <= options_.repetitions; ++round) {
    for (int step = 0; step < period; ++step) {
      if (options_.computeSeconds > 0) std::this_thread::sleep_for(computes);
      check(taccEasgdStep(easgd, gradients_));
    }
    rounds.push_back(secondsSince(last) * 1e3);
    last = Clock::now();
  }
  const double all = secondsSince(start);
  rounds.erase(rounds.begin());
  taccEasgdInfo_t info{};
  info.size = sizeof info;
  check(taccEasgdInfo(easgd, &info));
  // Of asynchronous modes ranks differ: the slowest counts.
  const double step = median(std::move(rounds)) / period;
  double slowest[] = {step, info.waitSeconds / all, -info.hiddenShare, isLast ? 0 : step};
  check(taccAllReduce(slowest, slowest, 4, taccFloat64, taccMax, comm_, nullptr));
  result.step = slowest[0];
  result.waitShare = slowest[1];
  result.hiddenShare = -slowest[2];
  result.othersStep = slowest[3];
  check(taccEasgdDestroy(easgd));
  return result;
}

}  // namespace tacc::bench
