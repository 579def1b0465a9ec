/* The same program under any launcher: `mpiexec -n 4 allreduce_env`, `srun -n 4 allreduce_env`, and so on. The launcher
 * says who this process is and where the ranks meet; MPI is not needed. With an argument it joins that many times. */
#include <stdio.h>
#include <stdlib.h>

#include "tacc/tacc.h"

#define CHECK(call)                                                                    \
  if ((call) != taccSuccess) {                                                         \
    fprintf(stderr, "%s\n", taccGetLastError(NULL)); /* NULL: of the calling thread */ \
    return EXIT_FAILURE;                                                               \
  }

int main(int argc, char** argv) {
  for (int left = argc > 1 ? atoi(argv[1]) : 1; left > 0; --left) {
    taccComm_t comm;
    int rank, ranks;
    CHECK(taccCommInitEnv(&comm, NULL)); /* NULL: the default configuration */
    CHECK(taccCommUserRank(comm, &rank));
    CHECK(taccCommCount(comm, &ranks));
    const float mine[2] = {(float)rank, 1.0f};
    float sum[2] = {0};
    CHECK(taccAllReduce(mine, sum, 2, taccFloat, taccSum, comm, NULL)); /* NULL stream: done when it returns */
    printf("rank %d of %d: the sum of all ranks is %g\n", rank, ranks, (double)sum[0]);
    CHECK(taccCommDestroy(comm));
    if (sum[1] != (float)ranks) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
