/* The smallest tacc program: `allreduce [RANKS]` runs as that many processes (default 4), which add up their ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacc/tacc.h"

#define CHECK(call)                                                                                   \
  if ((call) != taccSuccess) {                                                                        \
    fprintf(stderr, "rank %d: %s\n", rank, taccGetLastError(NULL)); /* NULL: of the calling thread */ \
    return EXIT_FAILURE;                                                                              \
  }

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 4;
  int rank = 0; /* of this process: the first is rank 0 and starts the others */
  taccUniqueId id;
  CHECK(taccGetUniqueId(&id)); /* one process makes it; here the others get it by fork, elsewhere by any other means */
  for (int child = 1; child < ranks && rank == 0; ++child)
    if (fork() == 0) rank = child;

  taccComm_t comm;
  CHECK(taccCommInitRank(&comm, ranks, id, rank));
  const float mine[2] = {(float)rank, 1.0f};
  float sum[2] = {0};
  CHECK(taccAllReduce(mine, sum, 2, taccFloat, taccSum, comm, NULL)); /* NULL stream: done when it returns */
  printf("rank %d of %d: the sum of all ranks is %g\n", rank, ranks, (double)sum[0]);
  CHECK(taccCommDestroy(comm));

  int status, failures = sum[1] != (float)ranks;
  while (wait(&status) > 0) failures += status != 0;
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
