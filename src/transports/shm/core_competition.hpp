// Whether other programs compete for the cores of this process's ranks.
//
// A rank that waits yields its core once it has spun for a while: on a core that nobody else wants that costs 0.3 us.
// Where another program wants it, the scheduler gives that one a whole slice, some milliseconds, and the rank that was
// waited for, which comes back meanwhile, then waits for this one: two ranks hand each other slices instead of
// microseconds. So a rank notices how long a yield took. Where each rank has a core of its own it keeps that for some
// time afterwards: it spins for longer, and then sleeps, as the scheduler soon runs who is woken.
// Where ranks are more than cores it sleeps at once, if yields go on to last so long: one may also mean that a rank
// computes.
#pragma once

#include <array>
#include <atomic>

namespace tacc {

class CoreCompetition {
 public:
  /// Yields the core. Whether another program had it for long, which is remembered for `memorySeconds`. Any thread.
  bool yield() noexcept;
  /// Whether that was so lately. Cost: a clock. Any thread.
  bool wasSeen() const noexcept;
  /// Whether one yield after the other has cost a slice lately. Cost: a clock. Any thread.
  bool isSteady() const noexcept;

  /// Longer than a rank that shares the core keeps it while it waits, and shorter than a scheduler's slice.
  static constexpr double longYieldSeconds = 200e-6;
  /// A yield that finds out anew costs a slice: one in some hundred.
  static constexpr double memorySeconds = 1.0;
  /// As long as a slice, other than what a rank does between two waits.
  static constexpr double sliceSeconds = 1e-3;
  /// This many slices are steady if the rank had the core between them for less than this share of all but the last:
  /// another program had it, and the rank soon waited again. A rank that shares the core may have a slice for itself
  /// too, as one that sends call after call, but then what it has sent keeps this one busy. The last slice is followed
  /// by nothing yet, however long it was. Long steps may look alike, hence for a short time: to sleep and be woken
  /// costs 20 us.
  static constexpr int steadySlices = 3;
  static constexpr double steadyShare = 0.45, steadyMemorySeconds = 0.1;
  /// How long to spin then: some wake-ups of a rank that sleeps, whom the scheduler runs before other programs' slices
  /// end.
  static constexpr double spinSeconds = 200e-6;

 private:
  // Of the steady clock. Several threads write as they come: one that is lost is no matter.
  std::atomic<double> seenUntil_{0}, steadyUntil_{0};
  struct Slice {
    std::atomic<double> start{0}, end{0};
  };
  std::array<Slice, steadySlices> slices_;  // the last ones
  std::atomic<unsigned> nextSlice_{0};
};

/// That of this process: its communicators share cores.
CoreCompetition& coreCompetition() noexcept;

}  // namespace tacc
