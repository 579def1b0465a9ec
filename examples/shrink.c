/* Going on after a failure: `shrink [RANKS]` runs as that many processes (default 4, at least 2), of which the last is
 * killed in the midst of the work. The others are told who died, make a communicator without it and finish. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacc/tacc.h"

#define CHECK(call)                                                 \
  if ((call) != taccSuccess) {                                      \
    fprintf(stderr, "rank %d: %s\n", rank, taccGetLastError(NULL)); \
    return EXIT_FAILURE;                                            \
  }

enum { steps = 10, fatalStep = 4 };

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 4;
  int rank = 0; /* of this process: the first is rank 0 and starts the others */
  taccUniqueId id;
  CHECK(taccGetUniqueId(&id));
  for (int child = 1; child < ranks && rank == 0; ++child)
    if (fork() == 0) rank = child;

  taccComm_t comm;
  CHECK(taccCommInitRank(&comm, ranks, id, rank));
  int living = ranks, wrong = 0;
  for (int step = 0; step < steps;) {
    if (step == fatalStep && rank == ranks - 1) raise(SIGKILL);
    int sum = 1;
    if (taccAllReduce(&sum, &sum, 1, taccInt, taccSum, comm, NULL) != taccSuccess) {
      printf("rank %d, step %d: %s\n", rank, step, taccGetLastError(comm));
      taccComm_t rest;
      CHECK(taccCommShrink(comm, NULL, 0, &rest, NULL, 0));
      CHECK(taccCommDestroy(comm));
      comm = rest;
      CHECK(taccCommCount(comm, &living));
      /* A call may have ended well on some ranks only: all go on from the first step that is not done everywhere. */
      CHECK(taccAllReduce(&step, &step, 1, taccInt, taccMin, comm, NULL));
      continue;
    }
    wrong += sum != living;
    ++step;
  }
  printf("rank %d: %d steps done, %d of %d ranks left\n", rank, steps, living, ranks);
  wrong += living != ranks - 1;
  CHECK(taccCommDestroy(comm));

  int status, killed = 0;
  while (wait(&status) > 0) {
    killed += WIFSIGNALED(status);
    wrong += WIFEXITED(status) && WEXITSTATUS(status) != 0;
  }
  return wrong == 0 && killed == (rank == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
