/** An executor over OpenMP for tacc/compute.h. Only for programs that are compiled with OpenMP themselves: the library
 * knows nothing of it. @file */
#ifndef TACC_COMPUTE_OPENMP_H
#define TACC_COMPUTE_OPENMP_H

#include <omp.h>

#include "tacc/compute.h"

/** What the executor runs. Each thread has the same share of equally many tasks in every run, so that what it read and
 * wrote is in its caches when it comes back to it; plans cut work so that shares are equal. */
static inline void taccOpenMpRun(void* context, size_t tasks, void (*task)(void*, size_t, int), void* argument) {
  const int threads = *(const int*)context;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t i = 0; i < tasks; ++i) task(argument, i, omp_get_thread_num());
}

/** An executor with `*threads` threads of OpenMP's pool. *threads stays where it is while the executor is used. */
static inline taccExecutor_t taccOpenMpExecutor(int* threads) {
  const taccExecutor_t executor = {threads, *threads, taccOpenMpRun};
  return executor;
}

#endif
