// Ranges of blocks that go round at the end of a vector, in runs that do not.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "algorithms/exchanges.hpp"

namespace tacc {

/// Blocks [first, first + count), counted from a rank's own.
struct BlockRun {
  int first;
  int count;
};

/// Three at most, without memory of their own: pricing asks for those of tens of thousands of ranks.
struct BlockRuns {
  std::array<BlockRun, 3> runs;
  int count = 0;
  const BlockRun* begin() const { return runs.data(); }
  const BlockRun* end() const { return runs.data() + count; }
};

/// [begin, end) cut at those of the two places that lie inside it.
inline BlockRuns cutAt(int begin, int end, int place, int otherPlace) {
  BlockRuns cut;
  for (int stop : {std::min(place, otherPlace), std::max(place, otherPlace), end}) {
    stop = std::min(stop, end);
    if (stop <= begin) continue;
    cut.runs[static_cast<std::size_t>(cut.count++)] = {begin, stop - begin};
    begin = stop;
  }
  return cut;
}

/// A message for each run, of `width` times as many blocks.
inline MessageCut messagesOf(const BlockRuns& runs, int width = 1) {
  MessageCut cut;
  for (const BlockRun& run : runs) cut.blocks[static_cast<std::size_t>(cut.count++)] = run.count * width;
  return cut;
}

}  // namespace tacc
