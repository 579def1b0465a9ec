// Seconds since a moment, by the clock that is never set.
#pragma once

#include <chrono>

namespace tacc {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tacc
