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

/* Collectives that return a request, and those that make a persistent one. */
#define TACC_MPI_COLLECTIVES_WITH_REQUEST(FUNCTION) \
  FUNCTION(Iallreduce)                              \
  FUNCTION(Ibcast)                                  \
  FUNCTION(Ireduce)                                 \
  FUNCTION(Ireduce_scatter_block)                   \
  FUNCTION(Iscan)                                   \
  FUNCTION(Iexscan)                                 \
  FUNCTION(Iallgather)                              \
  FUNCTION(Ialltoall)                               \
  FUNCTION(Igather)                                 \
  FUNCTION(Iscatter)                                \
  FUNCTION(Ireduce_scatter)                         \
  FUNCTION(Iallgatherv)                             \
  FUNCTION(Ialltoallv)                              \
  FUNCTION(Igatherv)                                \
  FUNCTION(Iscatterv)                               \
  FUNCTION(Iallreduce_c)                            \
  FUNCTION(Ibcast_c)                                \
  FUNCTION(Ireduce_c)                               \
  FUNCTION(Ireduce_scatter_block_c)                 \
  FUNCTION(Iscan_c)                                 \
  FUNCTION(Iexscan_c)                               \
  FUNCTION(Iallgather_c)                            \
  FUNCTION(Ialltoall_c)                             \
  FUNCTION(Igather_c)                               \
  FUNCTION(Iscatter_c)                              \
  FUNCTION(Ireduce_scatter_c)                       \
  FUNCTION(Iallgatherv_c)                           \
  FUNCTION(Ialltoallv_c)                            \
  FUNCTION(Igatherv_c)                              \
  FUNCTION(Iscatterv_c)                             \
  FUNCTION(Ibarrier)                                \
  TACC_MPI_PERSISTENT_COLLECTIVES(FUNCTION)

#define TACC_MPI_PERSISTENT_COLLECTIVES(FUNCTION) \
  FUNCTION(Allreduce_init)                        \
  FUNCTION(Bcast_init)                            \
  FUNCTION(Reduce_init)                           \
  FUNCTION(Reduce_scatter_block_init)             \
  FUNCTION(Scan_init)                             \
  FUNCTION(Exscan_init)                           \
  FUNCTION(Allgather_init)                        \
  FUNCTION(Alltoall_init)                         \
  FUNCTION(Gather_init)                           \
  FUNCTION(Scatter_init)                          \
  FUNCTION(Reduce_scatter_init)                   \
  FUNCTION(Allgatherv_init)                       \
  FUNCTION(Alltoallv_init)                        \
  FUNCTION(Gatherv_init)                          \
  FUNCTION(Scatterv_init)                         \
  FUNCTION(Allreduce_init_c)                      \
  FUNCTION(Bcast_init_c)                          \
  FUNCTION(Reduce_init_c)                         \
  FUNCTION(Reduce_scatter_block_init_c)           \
  FUNCTION(Scan_init_c)                           \
  FUNCTION(Exscan_init_c)                         \
  FUNCTION(Allgather_init_c)                      \
  FUNCTION(Alltoall_init_c)                       \
  FUNCTION(Gather_init_c)                         \
  FUNCTION(Scatter_init_c)                        \
  FUNCTION(Reduce_scatter_init_c)                 \
  FUNCTION(Allgatherv_init_c)                     \
  FUNCTION(Alltoallv_init_c)                      \
  FUNCTION(Gatherv_init_c)                        \
  FUNCTION(Scatterv_init_c)                       \
  FUNCTION(Barrier_init)

/* What is done with requests. */
#define TACC_MPI_COMPLETIONS(FUNCTION) \
  FUNCTION(Test)                       \
  FUNCTION(Testall)                    \
  FUNCTION(Testany)                    \
  FUNCTION(Testsome)                   \
  FUNCTION(Wait)                       \
  FUNCTION(Waitall)                    \
  FUNCTION(Waitany)                    \
  FUNCTION(Waitsome)                   \
  FUNCTION(Request_free)               \
  FUNCTION(Cancel)                     \
  FUNCTION(Request_get_status)         \
  FUNCTION(Start)                      \
  FUNCTION(Startall)

#define TACC_MPI_FUNCTIONS(FUNCTION) \
  FUNCTION(Init)                     \
  FUNCTION(Init_thread)              \
  FUNCTION(Finalize)                 \
  FUNCTION(Comm_free)                \
  FUNCTION(Comm_disconnect)          \
  FUNCTION(Alloc_mem)                \
  FUNCTION(Free_mem)                 \
  TACC_MPI_COLLECTIVES(FUNCTION)     \
  TACC_MPI_COMPLETIONS(FUNCTION)

/* Those of Fortran that are taken over: FUNCTION(name, the same in Fortran). Open MPI's own call MPI by its PMPI_
 * names, so what is taken over in C is not for them; MPICH's do so in mpi_f08 where there is no buffer among the
 * arguments. */
#define TACC_MPI_FORTRAN_LIFECYCLE(FUNCTION) \
  FUNCTION(Init, init)                       \
  FUNCTION(Init_thread, init_thread)         \
  FUNCTION(Finalize, finalize)               \
  FUNCTION(Comm_free, comm_free)             \
  FUNCTION(Comm_disconnect, comm_disconnect)

#define TACC_MPI_FORTRAN_MEMORY(FUNCTION)  \
  FUNCTION(Alloc_mem, alloc_mem)           \
  FUNCTION(Alloc_mem_cptr, alloc_mem_cptr) \
  FUNCTION(Free_mem, free_mem)

#define TACC_MPI_FORTRAN_BARRIERS(FUNCTION) \
  FUNCTION(Barrier, barrier)                \
  FUNCTION(Ibarrier, ibarrier)

#define TACC_MPI_FORTRAN_COMPLETIONS(FUNCTION)     \
  FUNCTION(Test, test)                             \
  FUNCTION(Testall, testall)                       \
  FUNCTION(Testany, testany)                       \
  FUNCTION(Testsome, testsome)                     \
  FUNCTION(Wait, wait)                             \
  FUNCTION(Waitall, waitall)                       \
  FUNCTION(Waitany, waitany)                       \
  FUNCTION(Waitsome, waitsome)                     \
  FUNCTION(Request_free, request_free)             \
  FUNCTION(Cancel, cancel)                         \
  FUNCTION(Request_get_status, request_get_status) \
  FUNCTION(Start, start)                           \
  FUNCTION(Startall, startall)

#define TACC_MPI_FORTRAN_BUFFERED(FUNCTION)              \
  FUNCTION(Allreduce, allreduce)                         \
  FUNCTION(Bcast, bcast)                                 \
  FUNCTION(Reduce, reduce)                               \
  FUNCTION(Allgather, allgather)                         \
  FUNCTION(Reduce_scatter_block, reduce_scatter_block)   \
  FUNCTION(Alltoall, alltoall)                           \
  FUNCTION(Gather, gather)                               \
  FUNCTION(Scatter, scatter)                             \
  FUNCTION(Allgatherv, allgatherv)                       \
  FUNCTION(Gatherv, gatherv)                             \
  FUNCTION(Scatterv, scatterv)                           \
  FUNCTION(Alltoallv, alltoallv)                         \
  FUNCTION(Reduce_scatter, reduce_scatter)               \
  FUNCTION(Scan, scan)                                   \
  FUNCTION(Exscan, exscan)                               \
  FUNCTION(Iallreduce, iallreduce)                       \
  FUNCTION(Ibcast, ibcast)                               \
  FUNCTION(Ireduce, ireduce)                             \
  FUNCTION(Iallgather, iallgather)                       \
  FUNCTION(Ireduce_scatter_block, ireduce_scatter_block) \
  FUNCTION(Ialltoall, ialltoall)                         \
  FUNCTION(Igather, igather)                             \
  FUNCTION(Iscatter, iscatter)                           \
  FUNCTION(Iallgatherv, iallgatherv)                     \
  FUNCTION(Igatherv, igatherv)                           \
  FUNCTION(Iscatterv, iscatterv)                         \
  FUNCTION(Ialltoallv, ialltoallv)                       \
  FUNCTION(Ireduce_scatter, ireduce_scatter)             \
  FUNCTION(Iscan, iscan)                                 \
  FUNCTION(Iexscan, iexscan)

#define TACC_MPI_FORTRAN_PERSISTENT(FUNCTION)                    \
  FUNCTION(Allreduce_init, allreduce_init)                       \
  FUNCTION(Bcast_init, bcast_init)                               \
  FUNCTION(Reduce_init, reduce_init)                             \
  FUNCTION(Allgather_init, allgather_init)                       \
  FUNCTION(Reduce_scatter_block_init, reduce_scatter_block_init) \
  FUNCTION(Alltoall_init, alltoall_init)                         \
  FUNCTION(Gather_init, gather_init)                             \
  FUNCTION(Scatter_init, scatter_init)                           \
  FUNCTION(Allgatherv_init, allgatherv_init)                     \
  FUNCTION(Gatherv_init, gatherv_init)                           \
  FUNCTION(Scatterv_init, scatterv_init)                         \
  FUNCTION(Alltoallv_init, alltoallv_init)                       \
  FUNCTION(Reduce_scatter_init, reduce_scatter_init)             \
  FUNCTION(Scan_init, scan_init)                                 \
  FUNCTION(Exscan_init, exscan_init)                             \
  FUNCTION(Barrier_init, barrier_init)

/* Those with up to eleven arguments. */
#define TACC_MPI_LONG_FUNCTIONS(FUNCTION) TACC_MPI_COLLECTIVES_WITH_REQUEST(FUNCTION)

#endif
