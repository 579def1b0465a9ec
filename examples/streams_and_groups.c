/* Streams and groups: `streams_and_groups [RANKS]` runs as that many processes (default 4). A stream runs calls beside
 * the program, one after the other; calls of a group begin together, and small ones travel as one. */
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

enum { layers = 40, layerSize = 100, tableSize = 1 << 20 };

int main(int argc, char** argv) {
  static float layer[layers][layerSize], table[tableSize];
  const int ranks = argc > 1 ? atoi(argv[1]) : 4;
  int rank = 0; /* of this process: the first is rank 0 and starts the others */
  taccUniqueId id;
  CHECK(taccGetUniqueId(&id));
  for (int child = 1; child < ranks && rank == 0; ++child)
    if (fork() == 0) rank = child;

  taccComm_t comm;
  taccStream_t stream;
  CHECK(taccCommInitRank(&comm, ranks, id, rank));
  CHECK(taccStreamCreate(&stream));

  for (int i = 0; i < tableSize; ++i) table[i] = 1;
  CHECK(taccAllReduce(table, table, tableSize, taccFloat, taccSum, comm, stream)); /* returns at once */
  for (int l = 0; l < layers; ++l) /* meanwhile, memory that the stream does not use */
    for (int i = 0; i < layerSize; ++i) layer[l][i] = (float)(l * rank);

  CHECK(taccGroupStart());
  for (int l = 0; l < layers; ++l)
    CHECK(taccAllReduce(layer[l], layer[l], layerSize, taccFloat, taccSum, comm, stream)); /* runs behind the table's */
  CHECK(taccGroupEnd());
  CHECK(taccStreamSynchronize(stream)); /* now all of them are done */

  int wrong = 0;
  for (int i = 0; i < tableSize; ++i) wrong += table[i] != (float)ranks;
  for (int l = 0; l < layers; ++l)
    for (int i = 0; i < layerSize; ++i) wrong += layer[l][i] != (float)(l * ranks * (ranks - 1) / 2);
  printf("rank %d of %d: a table and %d layers, %d wrong\n", rank, ranks, layers, wrong);
  CHECK(taccStreamDestroy(stream));
  CHECK(taccCommDestroy(comm));

  int status;
  while (wait(&status) > 0) wrong += status != 0;
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
