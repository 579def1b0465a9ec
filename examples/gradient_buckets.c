/* A training step's gradients in buckets: they are added as backpropagation makes them, and while it goes on, full
 * buckets are summed over the ranks. Start it with any launcher, as `mpiexec -n 4 gradient_buckets`. */
#include <stdio.h>
#include <stdlib.h>

#include "tacc/tacc.h"

#define CHECK(call)                                  \
  if ((call) != taccSuccess) {                       \
    fprintf(stderr, "%s\n", taccGetLastError(NULL)); \
    return EXIT_FAILURE;                             \
  }

enum { layers = 50, steps = 3 };

/* Stands for the computation of a layer's gradient. */
static size_t backpropagate(int layer, float* gradient) {
  const size_t count = layer % 2 == 0 ? 64 : 20000;
  for (size_t i = 0; i < count; ++i) gradient[i] = (float)(layer + 1);
  return count;
}

int main(void) {
  taccComm_t comm;
  taccStream_t stream;
  taccBucket_t bucket;
  int ranks;
  size_t bytes;
  static float gradients[layers][20000];
  CHECK(taccCommInitEnv(&comm, NULL));
  CHECK(taccCommCount(comm, &ranks));
  CHECK(taccStreamCreate(&stream));
  CHECK(taccBucketCreate(&bucket, comm, stream, 0)); /* 0: a size that suits the network */
  for (int step = 0; step < steps; ++step) {
    for (int layer = layers - 1; layer >= 0; --layer) {
      const size_t count = backpropagate(layer, gradients[layer]);
      CHECK(taccBucketAdd(bucket, gradients[layer], count, taccFloat, taccSum));
    }
    CHECK(taccBucketFlush(bucket)); /* the last one is rarely full */
    CHECK(taccStreamSynchronize(stream));
    for (int layer = 0; layer < layers; ++layer)
      if (gradients[layer][63] != (float)((layer + 1) * ranks)) return EXIT_FAILURE;
  }
  CHECK(taccBucketBytes(bucket, &bytes));
  printf("%d layers on %d ranks, in buckets of %zu bytes\n", layers, ranks, bytes);
  CHECK(taccBucketDestroy(bucket));
  CHECK(taccStreamDestroy(stream));
  CHECK(taccCommDestroy(comm));
  return EXIT_SUCCESS;
}
