/* Has an MPI_Wait and an MPI_Test of its own, which count and go on to the PMPI_ names, as tools that profile MPI have
 * them: they stand before the library's, which learns of no request's end by them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN __attribute__((visibility("default"))) int

static int calls;

OWN MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++calls;
  return PMPI_Wait(request, status);
}

OWN MPI_Test(MPI_Request* request, int* isDone, MPI_Status* status) {
  ++calls;
  return PMPI_Test(request, isDone, status);
}

int main(int argc, char** argv) {
  enum { count = 1 << 17 }; /* long enough to be taken over */
  int rank, ranks, i, isDone = 0, isRight = 1;
  int* const values = malloc(2 * count * sizeof(int));
  int* const sums = values + count;
  MPI_Request request;
  MPI_Init(&argc, &argv);
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
  MPI_Allreduce(MPI_IN_PLACE, &isRight, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", isRight && calls > 1 ? "all right" : "wrong");
  MPI_Finalize();
  free(values);
  return 0;
}
