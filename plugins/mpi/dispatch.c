/* libtacc_mpi.so: what a program preloads, or is linked with before its MPI. It has MPI's functions and needs neither
 * tacc nor MPI itself, so that it does no harm in the shells and launchers that it is preloaded into as well. At the
 * first call it looks which MPI the process has and opens the library that is compiled for that one's mpi.h
 * (libtacc_mpi_mpich.so or libtacc_mpi_openmpi.so, in the same folder); where there is none, calls go to MPI.
 *
 * MPIs differ in the types of their handles: int here, pointers there. The functions here know nothing of them: they
 * hand on nine words, or eleven, as many as the longest of these calls has. Where int and pointers are passed in
 * registers and slots of one size, as on x86-64 and 64-bit Arm, that is what a compiler does with the arguments
 * themselves. */
#define _GNU_SOURCE
#include "dispatch.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

typedef char intsAreInSlotsOfPointers[sizeof(long) == sizeof(void*) ? 1 : -1];

typedef long (*Function)(long, long, long, long, long, long, long, long, long);

#define NUMBER(name) number##name,
enum { TACC_MPI_FUNCTIONS(NUMBER) TACC_MPI_LONG_FUNCTIONS(NUMBER) functionCount };

#define NAME(name) #name,
static const char* const names[] = {TACC_MPI_FUNCTIONS(NAME) TACC_MPI_LONG_FUNCTIONS(NAME)};

/* What stands for a function before it is looked for. */
#define DECLARE_FIRST(name) static long first##name(long, long, long, long, long, long, long, long, long);
TACC_MPI_FUNCTIONS(DECLARE_FIRST)
#define DECLARE_FIRST_LONG(name) \
  static long first##name(long, long, long, long, long, long, long, long, long, long, long);
TACC_MPI_LONG_FUNCTIONS(DECLARE_FIRST_LONG)

#define FIRST(name) first##name,
#define FIRST_LONG(name) (Function)(void (*)(void)) first##name,
#define FIRSTS \
  { TACC_MPI_FUNCTIONS(FIRST) TACC_MPI_LONG_FUNCTIONS(FIRST_LONG) }
static const Function firsts[functionCount] = FIRSTS;
static Function functions[functionCount] = FIRSTS; /* written by resolve(), and by passAllOn() */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *openedPart, *openedMpi; /* written by resolve() */

/* dlsym() gives a pointer to an object, which ISO C does not let be converted. */
static Function functionIn(void* library, const char* prefix, const char* name) {
  char whole[64];
  void* found;
  Function function;
  snprintf(whole, sizeof whole, "%s%s", prefix, name);
  found = dlsym(library, whole);
  memcpy(&function, &found, sizeof function);
  return function;
}

static int isOwn(void* function) {
  Dl_info one, self;
  return dladdr(function, &one) != 0 && dladdr(names, &self) != 0 && one.dli_fbase == self.dli_fbase;
}

struct Sought {
  const char* symbol;
  void* library;
};

static int seekIn(struct dl_phdr_info* object, size_t size, void* argument) {
  struct Sought* const sought = argument;
  void* library;
  void* found;
  (void)size;
  if (object->dlpi_name == NULL || object->dlpi_name[0] == '\0') return 0;
  library = dlopen(object->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (library == NULL) return 0;
  found = dlsym(library, sought->symbol);
  if (found == NULL || isOwn(found)) {
    dlclose(library);
    return 0;
  }
  sought->library = library;
  return 1;
}

void* libraryWith(const char* symbol) {
  struct Sought sought = {symbol, NULL};
  dl_iterate_phdr(seekIn, &sought);
  return sought.library;
}

/* The MPI of this process, NULL when there is none. An interpreter's extension may have loaded it for itself alone; the
 * library for it has to see it as well. */
static void* findMpi(void) {
  void* mpi;
  if (dlsym(RTLD_DEFAULT, "PMPI_Allreduce") != NULL) return dlopen(NULL, RTLD_LAZY);
  mpi = libraryWith("PMPI_Allreduce");
  if (mpi != NULL) {
    struct link_map* map = NULL;
    if (dlinfo(mpi, RTLD_DI_LINKMAP, &map) == 0) dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL);
  }
  return mpi;
}

/* Which of the two libraries fits the MPI; NULL for none. `version` gets its first line. */
static const char* nameOfFitting(void* mpi, char* version) {
  int (*getVersion)(char*, int*);
  char text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING: 256 in Open MPI, 8192 in MPICH */
  int length = 0;
  void* found = dlsym(mpi, "PMPI_Get_library_version");
  memcpy(&getVersion, &found, sizeof getVersion);
  if (found != NULL) getVersion(text, &length);
  text[strcspn(text, "\n,")] = '\0';
  snprintf(version, 80, "%.79s", text);
  if (strstr(text, "Open MPI") != NULL) return "libtacc_mpi_openmpi.so";
  if (strstr(text, "MPICH") != NULL || strstr(text, "Intel(R) MPI") != NULL || strstr(text, "MVAPICH") != NULL)
    return "libtacc_mpi_mpich.so";
  return NULL;
}

static void* openFitting(void* mpi) {
  Dl_info self;
  char version[80] = "";
  char path[4096];
  const char* slash;
  const char* name = nameOfFitting(mpi, version);
  void* library;
  if (name == NULL) {
    fprintf(stderr, "tacc: libtacc_mpi knows MPICH's ABI and Open MPI, and this is \"%s\": all calls go to it\n",
            version);
    return NULL;
  }
  if (dladdr(names, &self) == 0 || self.dli_fname == NULL) return NULL;
  slash = strrchr(self.dli_fname, '/');
  snprintf(path, sizeof path, "%.*s%s", slash == NULL ? 0 : (int)(slash - self.dli_fname + 1), self.dli_fname, name);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    fprintf(stderr, "tacc: libtacc_mpi cannot open its part for %s, so all calls go to that: %s\n", version, dlerror());
  return library;
}

static Function originalOf(int number) {
  const Function found = functionIn(openedMpi, "PMPI_", names[number]);
  return found != NULL ? found : functionIn(openedMpi, "PMPIX_", names[number]);
}

/* Where nothing is taken over: calls cost a jump more than without this library. */
static void passAllOn(void) {
  int i;
  for (i = 0; i < functionCount; ++i) {
    const Function found = originalOf(i);
    if (found != NULL) __atomic_store_n(&functions[i], found, __ATOMIC_RELEASE);
  }
}

/* The part calls it once it knows that nothing is taken over. */
static void offerToPassOn(void* part) {
  void (*take)(void (*)(void));
  void* const found = part == NULL ? NULL : dlsym(part, "taccMpi_setPassAllOn");
  memcpy(&take, &found, sizeof take);
  if (found != NULL) take(passAllOn);
}

static void resolve(void) {
  void* const mpi = openedMpi = findMpi();
  void* library;
  int i;
  if (mpi == NULL) {
    fprintf(
        stderr,
        "tacc: %s calls MPI, and no MPI library is loaded but libtacc_mpi; link it with an MPI (shared, not static)\n",
        program_invocation_short_name);
    exit(1);
  }
  library = openedPart = openFitting(mpi);
  offerToPassOn(library); /* before other threads may call it */
  for (i = 0; i < functionCount; ++i) {
    Function found = library == NULL ? NULL : functionIn(library, "taccMpi_", names[i]);
    if (found == NULL) found = originalOf(i);
    if (found != NULL) __atomic_store_n(&functions[i], found, __ATOMIC_RELEASE);
  }
}

void* partForMpi(void) {
  pthread_once(&once, resolve);
  return openedPart;
}

/* Not all MPIs have all of them. A program that asks for one by its name, to know, is told that there is one. */
static __attribute__((noinline, cold)) Function seek(int number) {
  Function found;
  pthread_once(&once, resolve);
  found = __atomic_load_n(&functions[number], __ATOMIC_ACQUIRE);
  if (found != firsts[number]) return found;
  fprintf(stderr, "tacc: %s calls MPI_%s, which this MPI does not have\n", program_invocation_short_name,
          names[number]);
  abort();
}

/* A load and a jump where the function was found before: short calls take less than a tenth of a microsecond, so not
 * even a comparison stands here, for which all arguments would be laid aside. C would copy those on the stack. */
#if defined(__x86_64__)
#define DEFINE_JUMP(name, number) \
  EXPORTED __attribute__((naked)) void name(void) { __asm__("jmp *%0" : : "m"(functions[number])); }
#define DEFINE_LONG_JUMP DEFINE_JUMP
#else
#define DEFINE_JUMP(name, number)                                                              \
  EXPORTED long name(long a, long b, long c, long d, long e, long f, long g, long h, long i) { \
    return __atomic_load_n(&functions[number], __ATOMIC_ACQUIRE)(a, b, c, d, e, f, g, h, i);   \
  }
#define DEFINE_LONG_JUMP(name, number)                                                                                \
  EXPORTED long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k) {        \
    return ((LongFunction)(void (*)(void))__atomic_load_n(&functions[number], __ATOMIC_ACQUIRE))(a, b, c, d, e, f, g, \
                                                                                                 h, i, j, k);         \
  }
#endif

#define DEFINE(name)                                                                                \
  DEFINE_JUMP(MPI_##name, number##name)                                                             \
  static long first##name(long a, long b, long c, long d, long e, long f, long g, long h, long i) { \
    return seek(number##name)(a, b, c, d, e, f, g, h, i);                                           \
  }
TACC_MPI_FUNCTIONS(DEFINE)

#define DEFINE_LONG(name)                                                                                           \
  DEFINE_LONG_JUMP(MPI_##name, number##name)                                                                        \
  static long first##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k) { \
    return ((LongFunction)(void (*)(void))seek(number##name))(a, b, c, d, e, f, g, h, i, j, k);                     \
  }
TACC_MPI_LONG_FUNCTIONS(DEFINE_LONG)

/* Open MPI 4 has persistent collectives as an extension, under names of their own. */
#define DEFINE_AS_EXTENSION(name) DEFINE_LONG_JUMP(MPIX_##name, number##name)
TACC_MPI_PERSISTENT_COLLECTIVES(DEFINE_AS_EXTENSION)

static int isToReport(void) {
  const char* const mode = getenv("TACC_MPI");
  return mode != NULL && strcmp(mode, "report") == 0;
}

/* Who asked for a report and gets none is told why. */
__attribute__((constructor)) static void sayUseless(void) {
  if (!isToReport() || dlsym(RTLD_DEFAULT, "PMPI_Allreduce") != NULL) return;
  fprintf(stderr, "tacc: TACC_MPI=report, and %s is not linked with MPI: nothing is taken over unless it loads one\n",
          program_invocation_short_name);
}

__attribute__((destructor)) static void sayUnused(void) {
  int (*hasBegun)(void);
  void* const found = openedPart == NULL ? NULL : dlsym(openedPart, "taccMpi_hasBegun");
  if (!isToReport() || dlsym(RTLD_DEFAULT, "PMPI_Allreduce") == NULL) return;
  memcpy(&hasBegun, &found, sizeof hasBegun);
  if (found != NULL && hasBegun()) return;
  fprintf(stderr,
          "tacc: TACC_MPI=report, and %s has begun MPI by no name that libtacc_mpi has: nothing was taken over\n",
          program_invocation_short_name);
}
