/* tacc/mpi_transport.h in a C program. */
#include "tacc/mpi_transport.h"

taccResult_t fillMpiTable(taccTransport_t* table);

taccResult_t fillMpiTable(taccTransport_t* table) { return taccMpiTransport(MPI_COMM_WORLD, table); }
