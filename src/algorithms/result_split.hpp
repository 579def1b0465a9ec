// An allreduce in two parts: until blocks are complete, and how they spread. What goes between ranks in the first are
// contributions and partial sums, in the second results; so the parts can move elements of different widths.
//
//   A message belongs to the second part if its receiver copies it, and to the first if it is combined with something:
//   both ends know which without asking. Of a step that completes a block and sends it on at once the sends belong to
//   the second part. Run one after the other the parts are the plan: tests/algorithms/result_split_test.cpp proves that
//   of every algorithm.
#pragma once

#include <vector>

#include "algorithms/local_plan.hpp"

namespace tacc {

struct ResultSplit {
  struct Blocks {
    int first, count;
  };
  LocalPlan sums;                // leaves the blocks that this rank completes in its output
  LocalPlan results;             // sends these on, and receives the others
  std::vector<Blocks> complete;  // those that `sums` completes, and nobody else hands to this rank
};

/// The two parts of what a rank runs of a proven allreduce. An Error (taccInternalError) where a step moves results and
/// partial sums together.
ResultSplit splitAtResults(const LocalPlan& plan);

}  // namespace tacc
