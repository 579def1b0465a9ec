// What a rank copies for itself waits until the others have what they wait for.
#pragma once

#include "algorithms/plan.hpp"
#include "engine/shm/program.hpp"

namespace tacc {

/// Moves copies of `rank`'s own input to its own output from the round before the last to the last round, where that
/// lets others work meanwhile: those that read what it stages in the round before, or have a part in copies that it
/// begins in the last (Operation::isShared). A copy stays where something of the last round touches the same blocks.
/// For programs in which nobody but `rank` touches its buffers otherwise.
void deferOwnCopies(Program& program, const Plan& plan, int rank, const LoweringFacts& facts);

}  // namespace tacc
