// By which names an MPI has persistent collectives.
#pragma once

#include <mpi.h>

// Persistent collectives are MPI's since version 4; Open MPI 4 has them as an extension.
#if MPI_VERSION >= 4
#define TACC_MPI_PERSISTENT(name) PMPI_##name
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define TACC_MPI_PERSISTENT(name) PMPIX_##name
#endif
#endif
