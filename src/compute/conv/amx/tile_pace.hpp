// Whether AMX's tiles multiply at their full speed at the moment.
//
// Hyperthreads share the tiles of a core. Where a host gives the other hyperthread to somebody else who uses them,
// products take four times as long, for parts of a second to minutes: then float32 as six products of bfloat16 each
// takes up to twice as long as in AVX-512, where it takes two thirds of the time otherwise. Bfloat16 is faster on tiles
// either way.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

/// Thread safe.
class TilePace {
 public:
  using Clock = std::chrono::steady_clock;
  /// `probe` gives the time of products of tiles as a part of that of multiply-adds that should take as long.
  explicit TilePace(std::function<double()> probe, std::function<Clock::time_point()> now = Clock::now);

  /// Whether most of some probes are, which are made anew where the last ones are older than validFor. Slow times come
  /// again: for slowFor after one the answer is no.
  bool isFull();

  static constexpr int probes = 8, mostSlow = 1;
  /// Where splitting has lost what it gains: measured, 1 or 4.
  static constexpr double slowFrom = 1.6;
  static constexpr std::chrono::milliseconds validFor{10};
  static constexpr std::chrono::seconds slowFor{60};

 private:
  std::function<double()> probe_;
  std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  bool isMeasured_ = false, isFull_ = true;
  Clock::time_point validUntil_;
};

/// Those of `best` for plans of float32: without tiles while these are slow, unless a word of TACC_ISA or
/// TACC_REPRODUCIBLE asks for the same kernels every time. Takes up to 100 us.
const KernelSet& kernelsForFloats(const KernelSet& best);

/// Tests pretend one or the other; null: as it is. `*isFull` lives on.
void pretendTilePace(const bool* isFull);

}  // namespace tacc::conv
