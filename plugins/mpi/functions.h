/* The functions of MPI that libtacc_mpi takes over. */
#ifndef TACC_PLUGINS_MPI_FUNCTIONS_H
#define TACC_PLUGINS_MPI_FUNCTIONS_H

/* Collectives: FUNCTION(name) for each, without the "MPI_" that goes before. */
#define TACC_MPI_COLLECTIVES(FUNCTION) \
  FUNCTION(Allreduce)                  \
  FUNCTION(Bcast)                      \
  FUNCTION(Reduce)                     \
  FUNCTION(Allgather)                  \
  FUNCTION(Reduce_scatter_block)       \
  FUNCTION(Alltoall)                   \
  FUNCTION(Gather)                     \
  FUNCTION(Scatter)                    \
  FUNCTION(Barrier)

#define TACC_MPI_FUNCTIONS(FUNCTION) \
  FUNCTION(Init)                     \
  FUNCTION(Init_thread)              \
  FUNCTION(Finalize)                 \
  TACC_MPI_COLLECTIVES(FUNCTION)

#endif
