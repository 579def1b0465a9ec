#include "meeting.hpp"

#include <sched.h>

namespace tacc::mpi {
namespace {

/// `code`: what beginning it returned. Where that or waiting fails, MPI has told the communicator's error handler.
void awaitWithoutCore(int code, MPI_Request& request) {
  int isComplete = 0;
  while (code == MPI_SUCCESS && isComplete == 0) {
    code = PMPI_Test(&request, &isComplete, MPI_STATUS_IGNORE);
    if (isComplete == 0) ::sched_yield();
  }
}

}  // namespace

void reduceOfAll(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  awaitWithoutCore(PMPI_Iallreduce(mine, all, count, type, operation, comm, &request), request);
}

void hearFirst(void* words, int bytes, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  awaitWithoutCore(PMPI_Ibcast(words, bytes, MPI_BYTE, 0, comm, &request), request);
}

void meet(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  awaitWithoutCore(PMPI_Ibarrier(comm, &request), request);
}

}  // namespace tacc::mpi
