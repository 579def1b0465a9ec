#include "meeting.hpp"

#ifndef OPEN_MPI
#include <sched.h>
#endif

namespace tacc::mpi {

#ifdef OPEN_MPI
// It gives cores away by itself. And its nonblocking collectives (4.1.4) end with MPI_ERR_TRUNCATE where functions of a
// program's attributes call collectives while MPI makes or frees a communicator.
void reduceOfAll(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm) {
  PMPI_Allreduce(mine, all, count, type, operation, comm);
}

void hearFirst(void* words, int bytes, MPI_Comm comm) { PMPI_Bcast(words, bytes, MPI_BYTE, 0, comm); }

void meet(MPI_Comm comm) { PMPI_Barrier(comm); }
#else
namespace {

/// Looks before the core is given away: others that have one each come within some microseconds.
constexpr int looksWithCore = 30;

/// Where beginning or waiting fails, MPI has told the communicator's error handler; what has begun is waited for all
/// the same, as it writes where the caller said.
void awaitWithoutCore(MPI_Request& request) {
  for (int looks = 0; request != MPI_REQUEST_NULL; ++looks) {
    int isComplete = 0;
    PMPI_Test(&request, &isComplete, MPI_STATUS_IGNORE);
    if (isComplete != 0) return;
    if (looks >= looksWithCore) ::sched_yield();
  }
}

}  // namespace

void reduceOfAll(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallreduce(mine, all, count, type, operation, comm, &request);
  awaitWithoutCore(request);
}

void hearFirst(void* words, int bytes, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibcast(words, bytes, MPI_BYTE, 0, comm, &request);
  awaitWithoutCore(request);
}

void meet(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibarrier(comm, &request);
  awaitWithoutCore(request);
}
#endif

}  // namespace tacc::mpi
