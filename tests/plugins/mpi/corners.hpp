// What MPI allows and few programs do.
#pragma once

#include <mpi.h>

namespace tacc::test {

inline int rankIn(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

inline int ranksIn(MPI_Comm comm) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  return ranks;
}

/// Buffers, counts and types; collective over the world.
void useCornersOfData(bool isTacc);

/// How communicators come and go, and what else happens meanwhile; collective over the world. What is left is used when
/// MPI_Finalize ends MPI_COMM_SELF.
void useCornersOfCommunicators();
void useBesideCopies();

}  // namespace tacc::test
