/* MPI's functions in Fortran, by the names that compilers for Linux give them: mpi_allreduce_ for `use mpi` and mpif.h,
 * what Open MPI's mpi_f08 calls, ompi_allreduce_f, and mpi_barrier_f08_ for those of mpi_f08 that have no buffer. The
 * part for the MPI has functions for those that call MPI by its PMPI_ names. The others reach the names that C has, so
 * there, and where no part fits, a call goes on to the MPI's. All arguments are addresses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "functions.h"

/* As many words as the longest call has. */
typedef long (*FortranFunction)(long, long, long, long, long, long, long, long, long, long, long, long);

#define TACC_MPI_FORTRAN_FUNCTIONS(FUNCTION) \
  TACC_MPI_FORTRAN_LIFECYCLE(FUNCTION)       \
  TACC_MPI_FORTRAN_MEMORY(FUNCTION)          \
  TACC_MPI_FORTRAN_BARRIERS(FUNCTION)        \
  TACC_MPI_FORTRAN_COMPLETIONS(FUNCTION)     \
  TACC_MPI_FORTRAN_BUFFERED(FUNCTION)        \
  TACC_MPI_FORTRAN_PERSISTENT(FUNCTION)

/* Those of mpi_f08 without a buffer. */
#define TACC_MPI_MODERN_FUNCTIONS(FUNCTION) \
  TACC_MPI_FORTRAN_LIFECYCLE(FUNCTION)      \
  TACC_MPI_FORTRAN_BARRIERS(FUNCTION)       \
  TACC_MPI_FORTRAN_COMPLETIONS(FUNCTION)    \
  FUNCTION(Barrier_init, barrier_init)

#define NUMBER(name, fortran) number##name,
#define MODERN_NUMBER(name, fortran) modernNumber##name,
enum { TACC_MPI_FORTRAN_FUNCTIONS(NUMBER) TACC_MPI_MODERN_FUNCTIONS(MODERN_NUMBER) functionCount };

/* What is looked for in the part, and then in the MPI. Open MPI's part has one function for both kinds of names. */
struct Names {
  const char *ofPart, *ofPartToo, *ofMpi, *ofExtension;
};
#define NAMES(name, fortran) {"taccMpiFortran_" #name, NULL, "mpi_" #fortran "_", "mpix_" #fortran "_"},
#define MODERN_NAMES(name, fortran) \
  {"taccMpiModern_" #name, "taccMpiFortran_" #name, "mpi_" #fortran "_f08_", "mpix_" #fortran "_f08_"},
static const struct Names names[] = {TACC_MPI_FORTRAN_FUNCTIONS(NAMES) TACC_MPI_MODERN_FUNCTIONS(MODERN_NAMES)};

static FortranFunction functions[functionCount]; /* each written once, by resolve() */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The MPI's own, also where an interpreter's extension has loaded it for itself alone. */
static void* findOriginal(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  void* const library = found == NULL ? libraryWith(name) : NULL;
  return library == NULL ? found : dlsym(library, name);
}

static void resolve(void) {
  void* const part = partForMpi();
  int i;
  for (i = 0; i < functionCount; ++i) {
    FortranFunction function;
    void* found = part == NULL ? NULL : dlsym(part, names[i].ofPart);
    if (found == NULL && part != NULL && names[i].ofPartToo != NULL) found = dlsym(part, names[i].ofPartToo);
    if (found == NULL) found = findOriginal(names[i].ofMpi);
    if (found == NULL) found = findOriginal(names[i].ofExtension);
    memcpy(&function, &found, sizeof function);
    __atomic_store_n(&functions[i], function, __ATOMIC_RELEASE);
  }
}

static __attribute__((noinline, cold)) FortranFunction seek(int number) {
  pthread_once(&once, resolve);
  if (functions[number] != NULL) return functions[number];
  fprintf(stderr, "tacc: %s calls %s of Fortran, which this MPI does not have\n", program_invocation_short_name,
          names[number].ofMpi);
  abort();
}

static inline FortranFunction functionOf(int number) {
  const FortranFunction known = __atomic_load_n(&functions[number], __ATOMIC_ACQUIRE);
  return __builtin_expect(known != NULL, 1) ? known : seek(number);
}

#define DEFINE_AS(symbol, number)                                                                              \
  EXPORTED void symbol(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, \
                       long l);                                                                                \
  EXPORTED void symbol(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, \
                       long l) {                                                                               \
    functionOf(number)(a, b, c, d, e, f, g, h, i, j, k, l);                                                    \
  }
#define DEFINE(name, fortran)               \
  DEFINE_AS(mpi_##fortran##_, number##name) \
  DEFINE_AS(ompi_##fortran##_f, number##name)
TACC_MPI_FORTRAN_FUNCTIONS(DEFINE)

/* Open MPI 4 has persistent collectives as an extension. */
#define DEFINE_EXTENSION(name, fortran)      \
  DEFINE_AS(mpix_##fortran##_, number##name) \
  DEFINE_AS(ompix_##fortran##_f, number##name)
TACC_MPI_FORTRAN_PERSISTENT(DEFINE_EXTENSION)

#define DEFINE_MODERN(name, fortran) DEFINE_AS(mpi_##fortran##_f08_, modernNumber##name)
TACC_MPI_MODERN_FUNCTIONS(DEFINE_MODERN)
