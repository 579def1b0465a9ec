// One rank of tacc_bench easgd: its communicator and memory, and what is timed.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "easgd/easgd_bench.hpp"
#include "tacc/easgd.h"

namespace tacc::bench {

/// Throws std::runtime_error with the library's sentence.
void check(taccResult_t result);

class TrainingRank {
 public:
  TrainingRank(taccComm_t comm, const EasgdOptions& options);
  TrainingRank(const TrainingRank&) = delete;
  TrainingRank& operator=(const TrainingRank&) = delete;
  ~TrainingRank();

  EasgdBaselines measureBaselines();
  EasgdResult measure(taccEasgdMode_t mode, int period);

 private:
  float* allocate();
  void fill();
  /// Milliseconds of each one's median. They take turns, as a machine's speed changes.
  std::vector<double> timeInTurns(const std::vector<std::function<void()>>& works);
  double time(const std::function<void()>& work) { return timeInTurns({work}).front(); }
  /// Reads and writes once what an exchange has to: this rank's part of all ranks' weights and of the center.
  void passOverMemory();

  taccComm_t comm_;
  const EasgdOptions& options_;
  std::size_t count_;
  int rank_ = 0, ranks_ = 0, hosts_ = 0;
  float* weights_;
  float* gradients_;
  float* sums_;
  float* center_;
};

}  // namespace tacc::bench
