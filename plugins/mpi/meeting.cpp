#include "meeting.hpp"

#include <sched.h>

namespace tacc::mpi {
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

}  // namespace tacc::mpi
