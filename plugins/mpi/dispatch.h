/* What the files of libtacc_mpi.so share. */
#ifndef TACC_PLUGINS_MPI_DISPATCH_H
#define TACC_PLUGINS_MPI_DISPATCH_H

#define EXPORTED __attribute__((visibility("default")))

/* As many words as the longest call has. */
typedef long (*LongFunction)(long, long, long, long, long, long, long, long, long, long, long);

/* The library for the MPI of this process, opened at the first call; NULL when none fits. Ends the process when it has
 * no MPI. */
__attribute__((visibility("hidden"))) void* partForMpi(void);

/* A library, other than this one, in which `symbol` is found, also one that was loaded for somebody alone; NULL for
 * none. It stays open. */
__attribute__((visibility("hidden"))) void* libraryWith(const char* symbol);

#endif
