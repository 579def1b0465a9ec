#include "wrappers.hpp"

#include <dlfcn.h>

#include <array>
#include <bit>
#include <utility>

#include "functions.h"

namespace tacc::mpi {
namespace {

// As C calls them and as Fortran does, each with the name of the MPI's own.
#define TACC_MPI_C_NAME(name) std::pair{"MPI_" #name, "PMPI_" #name},
#define TACC_MPI_FORTRAN_NAME(name, fortran) std::pair{"mpi_" #fortran "_", "pmpi_" #fortran "_"},
constexpr std::array completions{TACC_MPI_COMPLETIONS(TACC_MPI_C_NAME)
                                     TACC_MPI_FORTRAN_COMPLETIONS(TACC_MPI_FORTRAN_NAME)};

/// The file that has this code, and where it lies.
Dl_info placeOf(void* code) noexcept {
  Dl_info place{};
  if (code == nullptr || ::dladdr(code, &place) == 0) place = {};
  return place;
}

}  // namespace

std::string wrapperOfCompletions(void (*ofLibrary)()) {
  const void* const library = placeOf(std::bit_cast<void*>(ofLibrary)).dli_fbase;
  if (library == nullptr) return "";
  for (const auto& [name, ofMpi] : completions) {
    const Dl_info first = placeOf(::dlsym(RTLD_DEFAULT, name));
    if (first.dli_fbase == nullptr || first.dli_fbase == library) continue;
    // Of an interpreter's extension, which has the library for itself, the MPI alone may be seen from here.
    if (first.dli_fbase == placeOf(::dlsym(RTLD_DEFAULT, ofMpi)).dli_fbase) continue;
    return std::string(name) + " is that of " + (first.dli_fname == nullptr ? "the program" : first.dli_fname);
  }
  return "";
}

}  // namespace tacc::mpi
