// Timing calls of a communicator, all ranks together.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "comm/joined_communicator.hpp"

namespace tacc::tune {

/// Seconds of one call, and for how long rank 0 has been measuring: equal on all ranks, which so decide alike.
struct Reading {
  double seconds;
  double elapsed;
};

class Gauge {
 public:
  /// Buffers of at least `bytes` each. The communicator outlives it.
  Gauge(JoinedCommunicator& comm, std::size_t bytes);

  /// Collective: makes `calls` calls of `count` floats each, one after the other, by the route of that name ("": as the
  /// library chooses). The time goes on until the last rank is done. `warm` calls come before them, unseen.
  Reading time(Collective collective, std::size_t count, const std::string& route, int calls, int warm = 0);

  /// The algorithm of the last call that was timed.
  const std::string& lastAlgorithm() const noexcept { return last_; }
  /// As of the last reading.
  double elapsed() const noexcept { return elapsed_; }
  JoinedCommunicator& comm() noexcept { return comm_; }

 private:
  using Clock = std::chrono::steady_clock;

  JoinedCommunicator& comm_;
  std::string agreeing_;  // the route by which readings are exchanged
  std::vector<float> input_, output_;
  Clock::time_point start_ = Clock::now();
  double elapsed_ = 0;
  std::string last_;
};

}  // namespace tacc::tune
