// How contestants take turns, so that none has the better places: processes, and functions of one process.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace tacc::tools {

/// Who runs when: for each repetition the contestants, by number, in the order of their turns. Whoever runs finds the
/// machine as the one before has left it (the buffers of links, the caches), so over all repetitions, their borders
/// included, each follows each of the others as often as any other does, or once more or less (of more than six:
/// nearly); nobody follows himself. As far as this leaves it open, each runs as often in every place.
std::vector<std::vector<std::size_t>> turnsOf(std::size_t contestants, int repetitions);

/// Someone who runs, and the least time seen; of processor times one that an eighth of them are below.
struct Timed {
  std::function<void()> run;
  double seconds = 1e30;
  std::function<double()> ownSeconds = {};  ///< of the last run, if it takes its time itself
};

/// In turn, and in the opposite order every second time, until `seconds` are over, and twice at least: each is warmed
/// by a run and timed in the next two, so that nobody pays for what the one before left in the caches. Who once took
/// four times as long as the fastest does not run again. With `processorTime` that of the calling thread counts, in
/// place of the time that passes. What the clock says of nothing, which has its turn too, is taken off
/// everybody's time, unless some take their time themselves: processor time is asked of the kernel, which takes as long
/// as the smallest layers.
void timeInTurn(std::vector<Timed>& contestants, double seconds, bool processorTime);

}  // namespace tacc::tools
