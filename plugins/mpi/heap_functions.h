/* What libtacc_mpi_memory.so, which has the program's malloc, and the part for the MPI know of each other. */
#ifndef TACC_PLUGINS_MPI_HEAP_FUNCTIONS_H
#define TACC_PLUGINS_MPI_HEAP_FUNCTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As of SharedHeap, which says more; from any thread. */
struct TaccHeapFunctions {
  size_t leastBytes; /* of a block */
  void* (*allocate)(size_t bytes, size_t alignment, size_t room);
  void* (*allocateZeroed)(size_t bytes);
  int (*holds)(const void* address);
  int (*free)(void* block);
  size_t (*sizeOf)(const void* block);
  int (*resize)(void* block, size_t bytes);
};

/* Called once by the part, when MPI has begun. The functions stay. */
__attribute__((visibility("default"))) void taccMpiMemory_use(const struct TaccHeapFunctions* functions);

#ifdef __cplusplus
}
#endif

#endif
