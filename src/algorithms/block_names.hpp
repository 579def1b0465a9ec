// Which blocks of the whole a step handles: what lets a plan serve calls whose blocks have unequal lengths.
//
//   In a stack every block is of one kind, so a plan need not say which one a step is about, and one that goes through
//   scratch does not. Where a block of the caller's buffers takes part in a step, it does say so: a block of an
//   allgather is known by whose it is, so output 3 and the input of rank 3 have the name 3. A call that gives every
//   name its own length is then served by the plan as it is: the partition is the call's, not the plan's.
//
//   verifyNames() proves of a proven plan that this is sound: all operands of a step have one name, and both ends of a
//   message the same. By induction over the steps every place then holds what its name says, in its length.
#pragma once

#include "algorithms/plan.hpp"

namespace tacc {

/// The name of the first block that `step` of `rank` handles; those behind it have the numbers that follow. A block is
/// known by the rank that it comes from (allgather, gather) or goes to (reduce-scatter, scatter), in an alltoall by
/// both: from * ranks + to. -1: the step does not say it, or its operands say different things. Stacks only.
int nameOfBlock(const PlanRequest& request, int rank, const Step& step) noexcept;

/// Whether a plan that verify() has proven serves unequal blocks as well. Cost: that of its steps and messages.
bool verifyNames(const Plan& plan);

}  // namespace tacc
