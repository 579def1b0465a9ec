// Communicators of drawn programs, made in all ways that MPI has.
#pragma once

#include "draws.hpp"
#include "sequence_call.hpp"

namespace tacc::test {

/// A duplicate of the world.
Twin copyOfWorld();
/// Of all ranks or some, which may be none. Collective over the world; equal draws on all ranks.
Twin drawTwin(Draws& draws);
void freeTwin(Twin& twin);
/// What some of them came from, when all are freed.
void endSession();

}  // namespace tacc::test
