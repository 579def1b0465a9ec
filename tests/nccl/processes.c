/* A C program in NCCL's style: a process for each of 4 ranks, which get the id from the first, a stream, every
 * collective, and the sums that must come out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "names.h"

#define NCCLCHECK(cmd)                                                                                            \
  do {                                                                                                            \
    ncclResult_t r = (cmd);                                                                                       \
    if (r != ncclSuccess) {                                                                                       \
      printf("%s:%d: %s is '%s': %s\n", __FILE__, __LINE__, #cmd, ncclGetErrorString(r), ncclGetLastError(NULL)); \
      exit(EXIT_FAILURE);                                                                                         \
    }                                                                                                             \
  } while (0)
#define EXPECT(what)                                                       \
  do {                                                                     \
    if (!(what)) {                                                         \
      printf("%s:%d: rank %d: not %s\n", __FILE__, __LINE__, rank, #what); \
      exit(EXIT_FAILURE);                                                  \
    }                                                                      \
  } while (0)

enum { ranks = 4, elements = 3000 };

static float* buffer(size_t blocks) {
  void* memory = NULL;
  NCCLCHECK(ncclMemAlloc(&memory, blocks * elements * sizeof(float)));
  return (float*)memory;
}

static int isAll(const float* values, size_t count, float value) {
  for (size_t i = 0; i < count; ++i)
    if (values[i] != value) return 0;
  return 1;
}

static void fill(float* values, size_t count, float value) {
  for (size_t i = 0; i < count; ++i) values[i] = value;
}

/* The null stream's calls are complete when they return. */
static void finish(cudaStream_t stream) {
  if (stream != NULL) NCCLCHECK(taccStreamSynchronize(stream));
}

static void collectives(ncclComm_t comm, int rank, cudaStream_t s) {
  float* one = buffer(1);
  float* result = buffer(1);
  float* many = buffer(ranks);
  float* others = buffer(ranks);

  fill(one, elements, (float)(rank + 1));
  NCCLCHECK(ncclAllReduce(one, result, elements, ncclFloat, ncclSum, comm, s));
  finish(s);
  EXPECT(isAll(result, elements, 10.0f));
  NCCLCHECK(ncclReduce(one, result, elements, ncclFloat, ncclMax, 2, comm, s));
  finish(s);
  EXPECT(isAll(result, elements, rank == 2 ? 4.0f : 10.0f));
  NCCLCHECK(ncclBroadcast(one, result, elements, ncclFloat, 3, comm, s));
  finish(s);
  EXPECT(isAll(result, elements, 4.0f));
  NCCLCHECK(ncclBcast(result, elements, ncclFloat, 0, comm, s));
  NCCLCHECK(ncclAllGather(one, many, elements, ncclFloat, comm, s));
  NCCLCHECK(ncclReduceScatter(many, result, elements, ncclFloat, ncclProd, comm, s));
  finish(s);
  for (int peer = 0; peer < ranks; ++peer) EXPECT(isAll(many + peer * elements, elements, (float)(peer + 1)));
  EXPECT(isAll(result, elements, (float)((rank + 1) * (rank + 1) * (rank + 1) * (rank + 1))));

  for (int peer = 0; peer < ranks; ++peer) fill(many + peer * elements, elements, (float)(10 * rank + peer));
  NCCLCHECK(ncclAlltoAll(many, others, elements, ncclFloat, comm, s));
  finish(s);
  for (int peer = 0; peer < ranks; ++peer) EXPECT(isAll(others + peer * elements, elements, (float)(10 * peer + rank)));
  NCCLCHECK(ncclGather(one, others, elements, ncclFloat, 1, comm, s));
  NCCLCHECK(ncclScatter(others, result, elements, ncclFloat, 1, comm, s));
  finish(s);
  EXPECT(isAll(result, elements, (float)(rank + 1)));

  NCCLCHECK(ncclGroupStart());
  NCCLCHECK(ncclSend(one, elements, ncclFloat, (rank + 1) % ranks, comm, s));
  NCCLCHECK(ncclRecv(result, elements, ncclFloat, (rank + ranks - 1) % ranks, comm, s));
  NCCLCHECK(ncclGroupEnd());
  finish(s);
  EXPECT(isAll(result, elements, (float)((rank + ranks - 1) % ranks + 1)));

  float factor = 0.5f;
  ncclRedOp_t half;
  NCCLCHECK(ncclRedOpCreatePreMulSum(&half, &factor, ncclFloat, ncclScalarHostImmediate, comm));
  NCCLCHECK(ncclAllReduce(one, one, elements, ncclFloat, half, comm, s));
  finish(s);
  NCCLCHECK(ncclRedOpDestroy(half, comm));
  EXPECT(isAll(one, elements, 5.0f));

  NCCLCHECK(ncclMemFree(one));
  NCCLCHECK(ncclMemFree(result));
  NCCLCHECK(ncclMemFree(many));
  NCCLCHECK(ncclMemFree(others));
}

int main(void) {
  int rank = 0;
  ncclUniqueId id;
  NCCLCHECK(ncclGetUniqueId(&id));
  for (int child = 1; child < ranks && rank == 0; ++child)
    if (fork() == 0) rank = child;

  ncclComm_t comm;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = rank % 2;
  ncclResult_t state = ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
  EXPECT(state == ncclSuccess || (rank % 2 == 0 && state == ncclInProgress));
  do {
    NCCLCHECK(ncclCommGetAsyncError(comm, &state));
  } while (state == ncclInProgress);
  NCCLCHECK(state);
  int count, number, device, version;
  NCCLCHECK(ncclCommCount(comm, &count));
  NCCLCHECK(ncclCommUserRank(comm, &number));
  NCCLCHECK(ncclCommCuDevice(comm, &device));
  NCCLCHECK(ncclGetVersion(&version));
  EXPECT(count == ranks && number == rank && device == rank && version == NCCL_VERSION_CODE);
  EXPECT(ncclCommCuDevice(comm, NULL) == ncclInvalidArgument && ncclGetVersion(NULL) == ncclInvalidArgument);
  EXPECT(ncclFunctions.allReduce != NULL);

  cudaStream_t stream;
  NCCLCHECK(taccStreamCreate(&stream));
  collectives(comm, rank, stream);
  collectives(comm, rank, NULL);

  ncclComm_t part;
  NCCLCHECK(ncclCommSplit(comm, rank % 2, -rank, &part, NULL));
  NCCLCHECK(ncclCommUserRank(part, &number));
  EXPECT(number == (rank < 2));
  void* handle;
  static float own[2 * 4096];
  NCCLCHECK(ncclCommRegister(part, own, sizeof(own), &handle));
  fill(own, 2 * 4096, 1.0f);
  NCCLCHECK(ncclAllReduce(own, own, 2 * 4096, ncclFloat, ncclAvg, part, stream));
  NCCLCHECK(taccStreamSynchronize(stream));
  EXPECT(isAll(own, 2 * 4096, 1.0f));
  NCCLCHECK(ncclCommDeregister(part, handle));
  NCCLCHECK(ncclCommDestroy(part));
  NCCLCHECK(ncclCommSplit(comm, rank == 0 ? NCCL_SPLIT_NOCOLOR : 0, 0, &part, NULL));
  EXPECT((part == NULL) == (rank == 0));
  NCCLCHECK(ncclCommFinalize(part));
  if (rank % 2 == 0) {
    NCCLCHECK(ncclCommDestroy(part));
  } else {
    NCCLCHECK(ncclCommAbort(part));
  }
  EXPECT(ncclCommDestroy(NULL) == ncclSuccess && ncclCommAbort(NULL) == ncclSuccess);

  int none[1] = {3};
  ncclComm_t rest;
  if (rank != 3) {
    NCCLCHECK(ncclCommShrink(comm, none, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    NCCLCHECK(ncclCommCount(rest, &count));
    EXPECT(count == 3);
    NCCLCHECK(ncclCommAbort(rest));
  }
  NCCLCHECK(taccStreamDestroy(stream));
  NCCLCHECK(ncclCommFinalize(comm));
  NCCLCHECK(ncclCommDestroy(comm));

  int status, failures = 0;
  while (wait(&status) > 0) failures += status != 0;
  if (rank == 0 && failures == 0) printf("%d ranks as processes: all sums are right\n", ranks);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
