// How contestants in one process are timed against each other.
#pragma once

#include <functional>
#include <vector>

namespace tacc::tools {

/// Someone who runs, and the least time seen.
struct Timed {
  std::function<void()> run;
  double seconds = 1e30;
  std::function<double()> ownSeconds = {};  ///< of the last run, if it takes its time itself
};

/// In turn, until `seconds` are over: each is warmed by a run and timed in the next two, so that nobody pays for what
/// the one before left in the caches. With `processorTime` that of the calling thread counts, in place of the time that
/// passes.
void timeInTurn(std::vector<Timed>& contestants, double seconds, bool processorTime);

}  // namespace tacc::tools
