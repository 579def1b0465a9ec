// What a rank copies for itself waits until the others have what they wait for.
#pragma once

#include "algorithms/plan.hpp"
#include "engine/shm/program.hpp"

namespace tacc {

/// Moves copies of `rank`'s own input to its own output from the round before the last, where other ranks wait for what
/// it stages there, to the last round, in which they read that. A copy stays where something of the last round touches
/// the same blocks. For programs all of whose messages are staged: nobody but `rank` touches its buffers.
void deferOwnCopies(Program& program, const Plan& plan, int rank, const LoweringFacts& facts);

}  // namespace tacc
