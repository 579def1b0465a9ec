// Large blocks of the program's memory that the other ranks of the host reach (shared_heap.hpp).
#pragma once

#include <string>

namespace tacc::mpi {

/// MPI_Alloc_mem gives such blocks from now on, and malloc where libtacc_mpi_memory.so is preloaded. Once.
void openMemory();
/// No more of them.
void closeMemory() noexcept;

/// The line of the report about them; empty where none was given.
std::string textOfMemory();

}  // namespace tacc::mpi
