/** tacc for programs that use MPI. Header only, C or C++: it is compiled with the mpi.h of whatever MPI the program is
 * built with; the tacc library itself is built without any.
 *
 * @code
 *   #include <mpi.h>
 *   #include "tacc/mpi.h"
 *   ...
 *   taccComm_t comm;
 *   taccResult_t result = taccCommInitMPI(&comm, MPI_COMM_WORLD, NULL);
 * @endcode
 *
 * MPI's functions are called by their PMPI_ names: what is put before MPI, such as libtacc_mpi, does not see these
 * calls.
 * @file */
#ifndef TACC_MPI_H
#define TACC_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "tacc/mpi_transport.h"
#include "tacc/tacc.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Joins the communicator of the ranks of `mpi`, with the same rank numbers. Collective over `mpi`; MPI must be
 * initialised. `config` NULL: the defaults. The library is also handed a transport over a duplicate of `mpi`
 * (tacc/mpi_transport.h), for TACC_TRANSPORT=mpi and for machines where only MPI works, unless `config` has one; so the
 * communicator has to end before MPI_Finalize.
 *
 * When rank 0 cannot make the id, all ranks return its result; only on rank 0 has taccGetLastError(NULL) the sentence.
 * taccInvalidArgument for an `mpi` that is MPI_COMM_NULL; taccSystemError when MPI returns an error, which it does only
 * where the program asked for that (MPI_ERRORS_RETURN). */
static inline taccResult_t taccCommInitMPI(taccComm_t* comm, MPI_Comm mpi, const taccConfig_t* config) {
  struct {
    int result;
    taccUniqueId id;
  } start;
  int rank = 0;
  int ranks = 0;
  if (mpi == MPI_COMM_NULL) return taccInvalidArgument;
  if (PMPI_Comm_rank(mpi, &rank) != MPI_SUCCESS || PMPI_Comm_size(mpi, &ranks) != MPI_SUCCESS) return taccSystemError;
  memset(&start, 0, sizeof(start));
  if (rank == 0) start.result = (int)taccGetUniqueId(&start.id);
  if (PMPI_Bcast(&start, (int)sizeof(start), MPI_BYTE, 0, mpi) != MPI_SUCCESS) return taccSystemError;
  if (start.result != (int)taccSuccess) return (taccResult_t)start.result;
  if (config != NULL && (config->size <= offsetof(taccConfig_t, transport) || config->transport != NULL))
    return taccCommInitRankConfig(comm, ranks, start.id, rank, config);
  {
    taccConfig_t own = TACC_CONFIG_INITIALIZER;
    taccTransport_t transport;
    if (config != NULL) own = *config;
    if (taccMpiTransport(mpi, &transport) != taccSuccess) return taccSystemError;
    own.transport = &transport;
    return taccCommInitRankConfig(comm, ranks, start.id, rank, &own);
  }
}

#ifdef __cplusplus
}
#endif

#endif
