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
  FUNCTION(Allgatherv)                 \
  FUNCTION(Gatherv)                    \
  FUNCTION(Scatterv)                   \
  FUNCTION(Alltoallv)                  \
  FUNCTION(Reduce_scatter)             \
  FUNCTION(Scan)                       \
  FUNCTION(Exscan)                     \
  FUNCTION(Allreduce_c)                \
  FUNCTION(Bcast_c)                    \
  FUNCTION(Reduce_c)                   \
  FUNCTION(Allgather_c)                \
  FUNCTION(Reduce_scatter_block_c)     \
  FUNCTION(Alltoall_c)                 \
  FUNCTION(Gather_c)                   \
  FUNCTION(Scatter_c)                  \
  FUNCTION(Allgatherv_c)               \
  FUNCTION(Gatherv_c)                  \
  FUNCTION(Scatterv_c)                 \
  FUNCTION(Alltoallv_c)                \
  FUNCTION(Reduce_scatter_c)           \
  FUNCTION(Scan_c)                     \
  FUNCTION(Exscan_c)                   \
  FUNCTION(Barrier)

#define TACC_MPI_FUNCTIONS(FUNCTION) \
  FUNCTION(Init)                     \
  FUNCTION(Init_thread)              \
  FUNCTION(Finalize)                 \
  TACC_MPI_COLLECTIVES(FUNCTION)

#endif
