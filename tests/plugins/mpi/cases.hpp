// Every function that libtacc_mpi takes over, called by MPI's name and by PMPI's, with equal results.
#pragma once

#include <mpi.h>

#include "draws.hpp"

namespace tacc::test {

/// Collective over `comm`, with equal draws on all ranks of it. Throw nothing: what is wrong ends the job.
/// `usesInPlace`: not for runs without tacc, as MPICH 4.0 itself crashes in MPI_Reduce with MPI_IN_PLACE, and fails in
/// MPI_Alltoall. What PMPI's functions are called for is never in place.
void checkReductions(MPI_Comm comm, Draws& draws, bool usesInPlace);
void checkMovements(MPI_Comm comm, Draws& draws, bool usesInPlace);

}  // namespace tacc::test
