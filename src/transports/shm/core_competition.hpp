// Whether other programs compete for the cores of this process's ranks.
//
// A rank that waits yields its core once it has spun for a while: on a core that nobody else wants that costs 0.3 us.
// Where another program wants it, the scheduler gives that one a whole slice, some milliseconds, and the rank that was
// waited for, which comes back meanwhile, then waits for this one: two ranks hand each other slices instead of
// microseconds. So a rank notices how long a yield took, and for some time afterwards keeps the core that it has a
// right to: it spins, and when that has lasted for long it sleeps, as the scheduler soon runs who is woken.
#pragma once

#include <atomic>

namespace tacc {

class CoreCompetition {
 public:
  /// Yields the core. Whether another program had it for long, which is remembered for `memorySeconds`. Any thread.
  bool yield() noexcept;
  /// Whether that was so lately. Cost: a clock. Any thread.
  bool wasSeen() const noexcept;

  /// Longer than a rank that shares the core keeps it while it waits, and shorter than a scheduler's slice.
  static constexpr double longYieldSeconds = 200e-6;
  /// A yield that finds out anew costs a slice: one in some hundred.
  static constexpr double memorySeconds = 1.0;
  /// How long to spin then: as the slices of some other programs last.
  static constexpr double spinSeconds = 0.01;

 private:
  std::atomic<double> seenUntil_{0};  // of the steady clock
};

/// That of this process: its communicators share cores.
CoreCompetition& coreCompetition() noexcept;

}  // namespace tacc
