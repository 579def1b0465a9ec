/* A halo exchange: `halo_exchange [RANKS]` runs as that many processes (default 4), which share a ring of cells and let
 * heat spread in it. A rank has a part of the ring, and beside it a copy of the neighbours' nearest cells: the halo. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacc/tacc.h"

#define CHECK(call)                                                 \
  if ((call) != taccSuccess) {                                      \
    fprintf(stderr, "rank %d: %s\n", rank, taccGetLastError(NULL)); \
    return EXIT_FAILURE;                                            \
  }

enum { cells = 1000, steps = 200 };

/* The new values of `count` cells; heat[0] and heat[count + 1] are the neighbours'. */
static void spread(const double* heat, double* next, int count) {
  for (int i = 1; i <= count; ++i) next[i] = heat[i] + 0.25 * (heat[i - 1] - 2 * heat[i] + heat[i + 1]);
}

/* At the beginning, of a cell of the whole ring. */
static double firstHeat(int cell) { return cell % 97 == 0 ? 1 : 0; }

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 4;
  int rank = 0; /* of this process: the first is rank 0 and starts the others */
  taccUniqueId id;
  CHECK(taccGetUniqueId(&id));
  for (int child = 1; child < ranks && rank == 0; ++child)
    if (fork() == 0) rank = child;

  taccComm_t comm;
  CHECK(taccCommInitRank(&comm, ranks, id, rank));
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  static double heat[cells + 2], next[cells + 2];
  for (int i = 1; i <= cells; ++i) heat[i] = firstHeat(rank * cells + i - 1);
  for (int step = 0; step < steps; ++step) {
    /* In a group all four begin together, so nobody waits for somebody who waits for him. */
    CHECK(taccGroupStart());
    CHECK(taccSend(&heat[1], 1, taccDouble, left, comm, NULL));
    CHECK(taccSend(&heat[cells], 1, taccDouble, right, comm, NULL));
    CHECK(taccRecv(&heat[cells + 1], 1, taccDouble, right, comm, NULL));
    CHECK(taccRecv(&heat[0], 1, taccDouble, left, comm, NULL));
    CHECK(taccGroupEnd());
    spread(heat, next, cells);
    memcpy(heat, next, sizeof heat);
  }
  CHECK(taccCommDestroy(comm));

  /* The same ring in one piece. */
  const int all = ranks * cells;
  double* whole = calloc(2 * ((size_t)all + 2), sizeof(double));
  double* then = whole + all + 2;
  for (int i = 1; i <= all; ++i) whole[i] = firstHeat(i - 1);
  for (int step = 0; step < steps; ++step) {
    whole[0] = whole[all];
    whole[all + 1] = whole[1];
    spread(whole, then, all);
    memcpy(whole, then, ((size_t)all + 2) * sizeof(double));
  }
  int wrong = 0;
  for (int i = 1; i <= cells; ++i) wrong += heat[i] != whole[rank * cells + i];
  free(whole);
  printf("rank %d of %d: %d cells after %d steps, %d wrong\n", rank, ranks, cells, steps, wrong);

  int status;
  while (wait(&status) > 0) wrong += status != 0;
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
