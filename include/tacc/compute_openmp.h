/** An executor over OpenMP for tacc/compute.h. Only for programs that are compiled with OpenMP themselves: the library
 * knows nothing of it. @file */
#ifndef TACC_COMPUTE_OPENMP_H
#define TACC_COMPUTE_OPENMP_H

#include <omp.h>

#include "tacc/compute.h"

/** Most shares that the tasks are dealt out in. More threads than that help with others' shares. */
#define TACC_OPENMP_SHARES 128

/** Where a thread goes on in its share; alone in its cache line, as others look at it only at their end. */
typedef struct {
  size_t next;
  char apart[64 - sizeof(size_t)];
} taccOpenMpShare_t;

/** What the executor runs. Each thread begins with a share of its own, the same one in every run of as many tasks, so
 * that what it read and wrote is in its caches when it comes back to it; then it takes what is left of the others'
 * shares. */
static inline void taccOpenMpRun(void* context, size_t tasks, void (*task)(void*, size_t, int), void* argument) {
  const int threads = *(const int*)context;
  const size_t shares = (size_t)(threads < TACC_OPENMP_SHARES ? threads : TACC_OPENMP_SHARES);
  taccOpenMpShare_t places[TACC_OPENMP_SHARES];
  for (size_t i = 0; i < shares; ++i) places[i].next = tasks * i / shares;
#pragma omp parallel num_threads(threads)
  {
    const int worker = omp_get_thread_num();
    for (size_t i = 0; i < shares; ++i) {
      const size_t share = ((size_t)worker + i) % shares;
      const size_t end = tasks * (share + 1) / shares;
      for (;;) {
        size_t index;
#pragma omp atomic capture
        index = places[share].next++;
        if (index >= end) break;
        task(argument, index, worker);
      }
    }
  }
}

/** An executor with `*threads` threads of OpenMP's pool. *threads stays where it is while the executor is used. */
static inline taccExecutor_t taccOpenMpExecutor(int* threads) {
  const taccExecutor_t executor = {threads, *threads, taccOpenMpRun};
  return executor;
}

#endif
