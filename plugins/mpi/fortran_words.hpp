// What Fortran programs give to MPI's functions, and what C has for it. All arguments are addresses, handles are
// numbers, and special buffers are variables of the MPI.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

// Functions for Fortran that the dispatcher finds by their names. Open MPI's own call MPI by its PMPI_ names, so there
// all that is taken over in C is taken over here as well. MPICH's do so only in mpi_f08, where there is no buffer among
// the arguments.
#ifdef OPEN_MPI
#define TACC_MPI_FORTRAN_ENTRY(name) extern "C" __attribute__((visibility("default"))) void taccMpiFortran_##name
#else
#define TACC_MPI_FORTRAN_ENTRY(name) extern "C" __attribute__((visibility("default"))) void taccMpiModern_##name
#endif

namespace tacc::mpi {

static_assert(sizeof(MPI_Fint) == sizeof(int), "counts of Fortran are handed on where they are");

/// A variable by whose address a Fortran program says what C says by a constant. Null where no Fortran is loaded.
inline const void* fortranVariable(const char* name) noexcept { return dlsym(RTLD_DEFAULT, name); }

/// The last argument, which programs of mpi_f08 may leave out.
inline void answer(void* word, int code) noexcept {
  if (word != nullptr) *static_cast<MPI_Fint*>(word) = code;
}

}  // namespace tacc::mpi
