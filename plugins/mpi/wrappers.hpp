// Functions of the program, or of a tool that profiles it, which stand before the library's.
#pragma once

#include <string>

namespace tacc::mpi {

/// A function in this process that ends requests, has the name of one of the library's and comes before it, as
/// "MPI_Wait is that of FILE"; empty: there is none. Such a function goes on to the MPI's PMPI_ name, where a
/// collective that was taken over never ends: its message to the rank itself is sent by the library's function.
/// `ofLibrary`: any function of libtacc_mpi.so.
std::string wrapperOfCompletions(void (*ofLibrary)());

/// The same of MPI_Free_mem, whose PMPI_ name knows nothing of memory that is not the MPI's.
std::string wrapperOfFree(void (*ofLibrary)());

}  // namespace tacc::mpi
