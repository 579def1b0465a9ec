#include "transports/shm/core_competition.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace tacc {
namespace {

double steadySeconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool CoreCompetition::yield() noexcept {
  const double start = steadySeconds();
  sched_yield();
  const double end = steadySeconds();
  if (end - start < longYieldSeconds) return false;
  seenUntil_.store(end + memorySeconds, std::memory_order_relaxed);
  if (end - start >= sliceSeconds) {
    Slice& mine = slices_[nextSlice_.fetch_add(1, std::memory_order_relaxed) % steadySlices];
    mine.start.store(start, std::memory_order_relaxed);
    mine.end.store(end, std::memory_order_relaxed);
    double first = start, slept = 0;
    for (const Slice& slice : slices_) {
      first = std::min(first, slice.start.load(std::memory_order_relaxed));
      slept += slice.end.load(std::memory_order_relaxed) - slice.start.load(std::memory_order_relaxed);
    }
    const double before = slept - (end - start);
    const double between = start - first - before;
    if (between < steadyShare * before) steadyUntil_.store(end + steadyMemorySeconds, std::memory_order_relaxed);
  }
  return true;
}

bool CoreCompetition::wasSeen() const noexcept {
  const double until = seenUntil_.load(std::memory_order_relaxed);
  return until != 0 && steadySeconds() < until;
}

bool CoreCompetition::isSteady() const noexcept {
  const double until = steadyUntil_.load(std::memory_order_relaxed);
  return until != 0 && steadySeconds() < until;
}

CoreCompetition& coreCompetition() noexcept {
  static CoreCompetition competition;
  return competition;
}

}  // namespace tacc
