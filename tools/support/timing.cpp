#include "support/timing.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace tacc::tools {

void timeInTurn(std::vector<Timed>& contestants, double seconds, bool processorTime) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto now = [processorTime] {
    timespec time{};
    clock_gettime(processorTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  do {
    for (Timed& contestant : contestants) {
      for (int i = 0; i < 3; ++i) {
        const double begin = now();
        contestant.run();
        const double took = contestant.ownSeconds ? contestant.ownSeconds() : now() - begin;
        if (i > 0) contestant.seconds = std::min(contestant.seconds, took);
      }
    }
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
}

}  // namespace tacc::tools
