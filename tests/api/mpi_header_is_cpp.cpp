// tacc/mpi.h compiles as C++ with the warnings of this build.
#include "tacc/mpi.h"

int main() { return taccCommInitMPI(nullptr, MPI_COMM_NULL, nullptr) == taccInvalidArgument ? 0 : 1; }
