/* Has some PMPI_ functions of its own, which look who called them and go on to the MPI's: how a call that is not taken
 * over reaches the MPI. The library's part for the MPI is on the way of those that it has to look at, and not of those
 * that are no more than a jump. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { deepest = 64 };
static int jumped, looked; /* calls that reached the functions here */

/* Whether the part has called the function that calls this one. */
static void countCaller(void) {
  void* frames[deepest];
  const int found = backtrace(frames, deepest);
  int i;
  for (i = 0; i < found; ++i) {
    Dl_info place;
    if (dladdr(frames[i], &place) != 0 && strstr(place.dli_fname, "libtacc_mpi_") != NULL) {
      ++looked;
      return;
    }
  }
  ++jumped;
}

/* The address of the next PMPI_ function of that name. ISO C does not let a pointer to an object be converted. */
#define NEXT(name)                                     \
  __typeof__(&PMPI_##name) next;                       \
  void* const found = dlsym(RTLD_NEXT, "PMPI_" #name); \
  memcpy(&next, &found, sizeof next);                  \
  countCaller()
#define OWN __attribute__((visibility("default"))) int

OWN PMPI_Barrier(MPI_Comm comm) {
  NEXT(Barrier);
  return next(comm);
}
OWN PMPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  NEXT(Bcast);
  return next(buffer, count, type, root, comm);
}
OWN PMPI_Alltoallv(const void* send, const int* counts, const int* places, MPI_Datatype type, void* receive,
                   const int* receiveCounts, const int* receivePlaces, MPI_Datatype receiveType, MPI_Comm comm) {
  NEXT(Alltoallv);
  return next(send, counts, places, type, receive, receiveCounts, receivePlaces, receiveType, comm);
}
OWN PMPI_Ialltoallv(const void* send, const int* counts, const int* places, MPI_Datatype type, void* receive,
                    const int* receiveCounts, const int* receivePlaces, MPI_Datatype receiveType, MPI_Comm comm,
                    MPI_Request* request) {
  NEXT(Ialltoallv);
  return next(send, counts, places, type, receive, receiveCounts, receivePlaces, receiveType, comm, request);
}
OWN PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  NEXT(Wait);
  return next(request, status);
}
OWN PMPI_Comm_free(MPI_Comm* comm) {
  NEXT(Comm_free);
  return next(comm);
}

/* Six calls, one of each function. Returns whether they moved what they should. */
static int callAll(int rank) {
  const int counts[2] = {1, 1}, places[2] = {0, 1};
  int sent[2] = {10 * rank, 10 * rank + 1}, received[2] = {-1, -1}, later[2] = {-1, -1}, number = rank + 7;
  MPI_Comm copy;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  MPI_Bcast(&number, 1, MPI_INT, 0, copy);
  MPI_Alltoallv(sent, counts, places, MPI_INT, received, counts, places, MPI_INT, copy);
  MPI_Ialltoallv(sent, counts, places, MPI_INT, later, counts, places, MPI_INT, copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&copy);
  return number == 7 && received[0] == rank && received[1] == 10 + rank && later[0] == rank && later[1] == 10 + rank;
}

int main(int argc, char** argv) {
  int rank, isRight, jumpedThen, lookedThen, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  jumped = looked = 0; /* what MPI_Init called */
  isRight = callAll(rank);
  jumpedThen = jumped, lookedThen = looked;
  /* In turns, so that lines are not mixed. */
  for (i = 0; i < 2; ++i) {
    if (i == rank)
      printf("rank %d: %s, %d jumped, %d were looked at\n", rank, isRight ? "right" : "wrong", jumpedThen, lookedThen);
    fflush(stdout);
    PMPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
