/* MPI's functions in Fortran, by the names that compilers for Linux give them: mpi_allreduce_ for `use mpi` and mpif.h,
 * and what Open MPI's mpi_f08 calls, ompi_allreduce_f. Open MPI's part has functions for them. MPICH's own call MPI by
 * the names that C has, so there, and where no part fits, a call goes on to the MPI's. All arguments are addresses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "functions.h"

#define NUMBER(name, fortran) number##name,
enum { TACC_MPI_FORTRAN_FUNCTIONS(NUMBER) functionCount };

#define NAME(name, fortran) #name,
static const char* const names[] = {TACC_MPI_FORTRAN_FUNCTIONS(NAME)};
#define FORTRAN_NAME(name, fortran) #fortran,
static const char* const fortranNames[] = {TACC_MPI_FORTRAN_FUNCTIONS(FORTRAN_NAME)};

static LongFunction functions[functionCount]; /* each written once, by resolve() */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The MPI's own, also where an interpreter's extension has loaded it for itself alone. */
static void* findOriginal(const char* fortranName) {
  char whole[64];
  void* found;
  void* library;
  snprintf(whole, sizeof whole, "mpi_%s_", fortranName);
  found = dlsym(RTLD_NEXT, whole);
  if (found != NULL) return found;
  library = libraryWith(whole);
  return library == NULL ? NULL : dlsym(library, whole);
}

static void resolve(void) {
  void* const part = partForMpi();
  int i;
  for (i = 0; i < functionCount; ++i) {
    char whole[64];
    void* found;
    LongFunction function;
    snprintf(whole, sizeof whole, "taccMpiFortran_%s", names[i]);
    found = part == NULL ? NULL : dlsym(part, whole);
    if (found == NULL) found = findOriginal(fortranNames[i]);
    memcpy(&function, &found, sizeof function);
    __atomic_store_n(&functions[i], function, __ATOMIC_RELEASE);
  }
}

static __attribute__((noinline, cold)) LongFunction seek(int number) {
  pthread_once(&once, resolve);
  if (functions[number] != NULL) return functions[number];
  fprintf(stderr, "tacc: %s calls mpi_%s_ of Fortran, which this MPI does not have\n", program_invocation_short_name,
          fortranNames[number]);
  abort();
}

static inline LongFunction functionOf(int number) {
  const LongFunction known = __atomic_load_n(&functions[number], __ATOMIC_ACQUIRE);
  return __builtin_expect(known != NULL, 1) ? known : seek(number);
}

#define DEFINE_AS(symbol, number)                                                                                \
  EXPORTED void symbol(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k);  \
  EXPORTED void symbol(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k) { \
    functionOf(number)(a, b, c, d, e, f, g, h, i, j, k);                                                         \
  }
#define DEFINE(name, fortran)               \
  DEFINE_AS(mpi_##fortran##_, number##name) \
  DEFINE_AS(ompi_##fortran##_f, number##name)
TACC_MPI_FORTRAN_FUNCTIONS(DEFINE)
