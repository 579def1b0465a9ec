/* tacc in an MPI program: `mpiexec -n 4 allreduce_mpi` adds up the ranks. MPI brings the processes together; the sum is
 * tacc's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "tacc/mpi.h"

#define CHECK(call)                                                                                   \
  if ((call) != taccSuccess) {                                                                        \
    fprintf(stderr, "rank %d: %s\n", rank, taccGetLastError(NULL)); /* NULL: of the calling thread */ \
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);                                                          \
  }

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  taccComm_t comm;
  CHECK(taccCommInitMPI(&comm, MPI_COMM_WORLD, NULL)); /* NULL: the default configuration */
  const float mine[2] = {(float)rank, 1.0f};
  float sum[2] = {0};
  CHECK(taccAllReduce(mine, sum, 2, taccFloat, taccSum, comm, NULL)); /* NULL stream: done when it returns */
  printf("rank %d of %d: the sum of all ranks is %g\n", rank, ranks, (double)sum[0]);
  CHECK(taccCommDestroy(comm));

  MPI_Finalize();
  return sum[1] == (float)ranks ? EXIT_SUCCESS : EXIT_FAILURE;
}
