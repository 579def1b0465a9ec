// Calls over several hosts whose blocks have unequal lengths.
//
// Allgather and reduce-scatter run the plan of their collective over blocks of these lengths. Before that every rank
// tells all its own length, so that a rank that was told another one finds it out before anything moves: which of the
// plans runs, and so who waits for whom, depends on the lengths. Of the others a rank knows the lengths of its own
// blocks alone, so they run plans in which nobody handles another's; each pair compares what the one gives with what
// the other expects.
#pragma once

#include <cstddef>
#include <vector>

#include "core/unequal_blocks.hpp"
#include "engine/net/chunked_run.hpp"

namespace tacc {

class UnequalRun {
 public:
  explicit UnequalRun(ChunkedRun& run) : run_(run) {}

  /// The call by which every rank tells all the length of its own block, at `own`. To be run before compareLengths().
  Call tellLength(const std::size_t& own);
  /// Throws (taccInvalidUsage) where what this rank counts for a rank, `all`, is not what that counts for itself.
  void compareLengths(Collective collective, const BlockRow& all) const;

  /// Runs an allgather or a reduce-scatter, whose blocks of all ranks are `all`, to its end.
  void runKnown(const NetworkCall& call, const BlockRow& all);
  /// Runs a gather, a scatter or an alltoall to its end: a rank knows the lengths of none but its own blocks. The
  /// plan's blocks are straight (algorithms/plan_demands.hpp), and it is cut by what is equal on all ranks, which the
  /// lengths are not.
  void runOfPairs(const NetworkCall& call);

 private:
  /// Where the alltoall `call` reads: not where it writes.
  const std::byte* inputOf(const Call& call);
  /// Fills blocks_.
  void takeBlocks(const Call& call);

  ChunkedRun& run_;
  std::vector<std::size_t> lengths_;  // of all ranks' blocks, as each says its own
  NetworkBlocks blocks_;
  std::vector<std::byte> copy_;
};

}  // namespace tacc
