// Sums of 16-bit numbers over several hosts: partial sums travel as floats, so that they are rounded once, and results
// as 16 bits. Of a long vector that is 6 bytes a number where floats both ways are 8.
//
// The plan of the allreduce runs in its two parts (algorithms/result_split.hpp), sums and then results. What is done
// here is to widen a chunk's numbers before it goes out, and to round what this rank has completed of it.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/net/chunked_run.hpp"
#include "transports/shm/library_window.hpp"

namespace tacc {

/// Numbers that go together: as floats they are 16 MiB, which a network takes long enough for that a second start does
/// not count.
inline constexpr std::size_t halfWidthTogether = std::size_t{4} << 20;

/// The plan of an allreduce, and how long its messages of floats are to be.
struct HalfWidthPlan {
  const Algorithm& algorithm;
  std::size_t messageBytes;
};

/// Runs an allreduce of 16-bit numbers to its end, at most halfWidthTogether at a time; `choose` is asked for each
/// time. `window`: for the floats.
void runHalfWidth(ChunkedRun& run, const Call& call, LibraryWindow& window,
                  const std::function<HalfWidthPlan(std::size_t numbers)>& choose);

}  // namespace tacc
