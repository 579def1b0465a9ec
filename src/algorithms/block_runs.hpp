// Ranges of blocks that go round at the end of a vector, in runs that do not.
#pragma once

#include <algorithm>
#include <vector>

namespace tacc {

/// Blocks [first, first + count), counted from a rank's own.
struct BlockRun {
  int first;
  int count;
};

/// [begin, end) cut at those of the two places that lie inside it.
inline std::vector<BlockRun> cutAt(int begin, int end, int place, int otherPlace) {
  std::vector<BlockRun> runs;
  for (int stop : {std::min(place, otherPlace), std::max(place, otherPlace), end}) {
    stop = std::min(stop, end);
    if (stop <= begin) continue;
    runs.push_back({begin, stop - begin});
    begin = stop;
  }
  return runs;
}

}  // namespace tacc
