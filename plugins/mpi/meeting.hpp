// A few words that ranks tell each other by MPI, where they agree on what they do next. Ranks that are more than cores
// give theirs away while they wait: an MPI that spins (MPICH) holds it for a time slice, milliseconds for each of
// these.
#pragma once

#include <mpi.h>

namespace tacc::mpi {

/// MPI_Allreduce; `mine` may be MPI_IN_PLACE.
void reduceOfAll(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm);

/// Gives `bytes` bytes of rank 0 to all.
void hearFirst(void* words, int bytes, MPI_Comm comm);

/// Returns when all ranks have come.
void meet(MPI_Comm comm);

}  // namespace tacc::mpi
