/* libtacc_mpi_memory.so: preloaded beside libtacc_mpi.so, it lets large blocks of malloc and its like be memory that
 * the other ranks of the host reach, from MPI_Init on (shared_heap.hpp). All else goes to the malloc that the program
 * would have without it; so does everything in processes that are no ranks, as shells and launchers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heap_functions.h"

#define EXPORTED __attribute__((visibility("default")))

static const size_t page = 4096;

static const struct TaccHeapFunctions* heap; /* NULL: before MPI_Init */

static struct {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*aligned)(size_t, size_t);
  int (*posixMemalign)(void**, size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  void (*free)(void*);
  size_t (*usable)(void*);
} next;
static int isReady; /* next is known */

/* For what is allocated while next is looked for. Never given back. */
static _Alignas(16) char early[16384];
static size_t earlyUsed;

static int isEarly(const void* block) { return (uintptr_t)block - (uintptr_t)early < sizeof early; }

static void* takeEarly(size_t bytes) {
  const size_t whole = (bytes + 15) / 16 * 16 + 16;
  const size_t begin = __atomic_fetch_add(&earlyUsed, whole, __ATOMIC_RELAXED);
  if (whole < bytes || begin + whole > sizeof early) {
    errno = ENOMEM;
    return NULL;
  }
  memcpy(early + begin, &bytes, sizeof bytes); /* for realloc */
  return early + begin + 16;
}

/* dlsym() gives a pointer to an object, which ISO C does not let be converted. */
#define FIND(name, symbol)                        \
  do {                                            \
    void* const found = dlsym(RTLD_NEXT, symbol); \
    memcpy(&next.name, &found, sizeof found);     \
  } while (0)

/* By the first thread, before there are others: an allocation comes before the program can make one. */
static void findNext(void) {
  static int isLooking;
  if (isLooking) return;
  isLooking = 1;
  FIND(calloc, "calloc");
  FIND(realloc, "realloc");
  FIND(memalign, "memalign");
  FIND(aligned, "aligned_alloc");
  FIND(posixMemalign, "posix_memalign");
  FIND(valloc, "valloc");
  FIND(pvalloc, "pvalloc");
  FIND(free, "free");
  FIND(usable, "malloc_usable_size");
  FIND(malloc, "malloc");
  __atomic_store_n(&isReady, 1, __ATOMIC_RELEASE);
}

static inline int hasNext(void) {
  if (__builtin_expect(__atomic_load_n(&isReady, __ATOMIC_ACQUIRE), 1)) return 1;
  findNext();
  return isReady;
}

__attribute__((constructor)) static void begin(void) { (void)hasNext(); }

void taccMpiMemory_use(const struct TaccHeapFunctions* functions) {
  __atomic_store_n(&heap, functions, __ATOMIC_RELEASE);
}

static inline const struct TaccHeapFunctions* heapFor(size_t bytes) {
  const struct TaccHeapFunctions* const found = __atomic_load_n(&heap, __ATOMIC_ACQUIRE);
  return found != NULL && bytes >= found->leastBytes ? found : NULL;
}

/* The heap, if the block is its. */
static inline const struct TaccHeapFunctions* heapOf(const void* block) {
  const struct TaccHeapFunctions* const found = __atomic_load_n(&heap, __ATOMIC_ACQUIRE);
  return found != NULL && found->holds(block) ? found : NULL;
}

EXPORTED void* malloc(size_t bytes) {
  const struct TaccHeapFunctions* const shared = heapFor(bytes);
  void* block = shared == NULL ? NULL : shared->allocate(bytes, page, 0);
  if (block != NULL) return block;
  return hasNext() ? next.malloc(bytes) : takeEarly(bytes);
}

EXPORTED void* calloc(size_t count, size_t each) {
  size_t bytes;
  const struct TaccHeapFunctions* shared;
  void* block;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  shared = heapFor(bytes);
  block = shared == NULL ? NULL : shared->allocateZeroed(bytes);
  if (block != NULL) return block;
  return hasNext() ? next.calloc(count, each) : takeEarly(bytes); /* which is zero */
}

EXPORTED void free(void* block) {
  const struct TaccHeapFunctions* shared;
  if (block == NULL || isEarly(block)) return;
  shared = heapOf(block);
  if (shared != NULL && shared->free(block)) return;
  if (hasNext()) next.free(block);
}

/* To a new place, with as much as fits. */
static void* move(void* block, size_t has, void* to, size_t bytes) {
  if (to == NULL) return NULL;
  memcpy(to, block, has < bytes ? has : bytes);
  free(block);
  return to;
}

EXPORTED void* realloc(void* block, size_t bytes) {
  const struct TaccHeapFunctions* shared;
  if (block == NULL) return malloc(bytes);
  if (isEarly(block)) {
    size_t has;
    memcpy(&has, (char*)block - 16, sizeof has);
    return move(block, has, malloc(bytes), bytes);
  }
  shared = heapOf(block);
  if (shared != NULL) {
    const size_t has = shared->sizeOf(block);
    void* to;
    if (bytes == 0) {
      free(block);
      return NULL;
    }
    /* What shrinks much gives the rest back by moving. */
    if (has > 0 && bytes >= has / 2 && shared->resize(block, bytes)) return block;
    if (has > 0) {
      /* What grows once grows again: it gets room, which costs nothing until it is touched. */
      to = bytes >= shared->leastBytes ? shared->allocate(bytes, page, bytes > has ? 2 * bytes : 0) : NULL;
      return move(block, has, to != NULL ? to : hasNext() ? next.malloc(bytes) : NULL, bytes);
    }
  }
  return hasNext() ? next.realloc(block, bytes) : NULL;
}

EXPORTED void* reallocarray(void* block, size_t count, size_t each) {
  size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(block, bytes);
}

static int isPower(size_t number) { return number != 0 && (number & (number - 1)) == 0; }

static void* allocateAligned(size_t alignment, size_t bytes) {
  const struct TaccHeapFunctions* const shared = heapFor(bytes);
  return shared == NULL || !isPower(alignment) ? NULL : shared->allocate(bytes, alignment, 0);
}

EXPORTED void* memalign(size_t alignment, size_t bytes) {
  void* const block = allocateAligned(alignment, bytes);
  if (block != NULL) return block;
  return hasNext() ? next.memalign(alignment, bytes) : NULL;
}

EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  void* const block = allocateAligned(alignment, bytes);
  if (block != NULL) return block;
  return hasNext() ? next.aligned(alignment, bytes) : NULL;
}

EXPORTED int posix_memalign(void** block, size_t alignment, size_t bytes) {
  void* const made = alignment % sizeof(void*) == 0 ? allocateAligned(alignment, bytes) : NULL;
  if (made == NULL) return hasNext() ? next.posixMemalign(block, alignment, bytes) : ENOMEM;
  *block = made;
  return 0;
}

EXPORTED void* valloc(size_t bytes) {
  void* const block = allocateAligned(page, bytes);
  if (block != NULL) return block;
  return hasNext() ? next.valloc(bytes) : NULL;
}

EXPORTED void* pvalloc(size_t bytes) {
  void* const block = bytes <= SIZE_MAX - page ? allocateAligned(page, (bytes + page - 1) / page * page) : NULL;
  if (block != NULL) return block;
  return hasNext() ? next.pvalloc(bytes) : NULL;
}

EXPORTED size_t malloc_usable_size(void* block) {
  const struct TaccHeapFunctions* shared;
  if (block == NULL) return 0;
  shared = heapOf(block);
  if (shared != NULL) {
    const size_t has = shared->sizeOf(block);
    if (has > 0) return has;
  }
  return hasNext() && !isEarly(block) ? next.usable(block) : 0;
}
