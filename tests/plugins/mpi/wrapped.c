/* Has an MPI_Wait, an MPI_Test and an MPI_Free_mem of its own, which count and go on to the PMPI_ names, as tools that
 * profile MPI have them: they stand before the library's, which learns of no end by them. With TAKES_ADDRESSES it has
 * none, and takes the addresses of those that there are: where the program's own are fixed they seem to be in it. */
#include <mpi.h>
#include <stdio.h>

static int calls;

#ifdef TAKES_ADDRESSES
static int (*volatile const wait)(MPI_Request*, MPI_Status*) = MPI_Wait;
static int (*volatile const test)(MPI_Request*, int*, MPI_Status*) = MPI_Test;
static int (*volatile const freeMemory)(void*) = MPI_Free_mem;
#else
#define OWN __attribute__((visibility("default"))) int

OWN MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++calls;
  return PMPI_Wait(request, status);
}

OWN MPI_Test(MPI_Request* request, int* isDone, MPI_Status* status) {
  ++calls;
  return PMPI_Test(request, isDone, status);
}

OWN MPI_Free_mem(void* memory) {
  ++calls;
  return PMPI_Free_mem(memory);
}
#endif

int main(int argc, char** argv) {
  enum { count = 1 << 17 }; /* long enough to be taken over */
  int rank, ranks, i, isDone = 0, isRight = 1;
  int *values, *sums;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Alloc_mem(2 * count * sizeof(int), MPI_INFO_NULL, &values);
  sums = values + count;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (i = 0; i < count; ++i) values[i] = i + rank;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iallreduce(values, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  while (!isDone) MPI_Test(&request, &isDone, MPI_STATUS_IGNORE);
  for (i = 0; i < count; ++i) {
    const int sum = ranks * i + ranks * (ranks - 1) / 2;
    isRight = isRight && sums[i] == sum && values[i] == sum;
  }
#ifdef TAKES_ADDRESSES
  calls = wait != NULL && test != NULL && freeMemory != NULL ? 2 : 0;
#endif
  MPI_Allreduce(MPI_IN_PLACE, &isRight, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", isRight && calls > 1 ? "all right" : "wrong");
  MPI_Free_mem(values);
  MPI_Finalize();
  return 0;
}
