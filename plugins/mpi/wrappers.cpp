#include "wrappers.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <bit>
#include <span>
#include <utility>

#include "functions.h"

namespace tacc::mpi {
namespace {

// As C calls them and as Fortran does, each with the name of the MPI's own.
#define TACC_MPI_C_NAME(name) std::pair{"MPI_" #name, "PMPI_" #name},
#define TACC_MPI_FORTRAN_NAME(name, fortran) std::pair{"mpi_" #fortran "_", "pmpi_" #fortran "_"},
constexpr std::array completions{TACC_MPI_COMPLETIONS(TACC_MPI_C_NAME)
                                     TACC_MPI_FORTRAN_COMPLETIONS(TACC_MPI_FORTRAN_NAME)};

constexpr std::array frees{std::pair{"MPI_Free_mem", "PMPI_Free_mem"}, std::pair{"mpi_free_mem_", "pmpi_free_mem_"}};

/// The file that has this code, and where it lies; nothing where it has but the way to another's: a program whose
/// addresses are fixed, and that takes a function's, is found to have the function by its name.
Dl_info placeOf(void* code) noexcept {
  Dl_info place{};
  void* entry = nullptr;
  if (code == nullptr || ::dladdr1(code, &place, &entry, RTLD_DL_SYMENT) == 0) return {};
  const auto* const symbol = static_cast<const ElfW(Sym)*>(entry);
  return symbol != nullptr && symbol->st_shndx == SHN_UNDEF ? Dl_info{} : place;
}

std::string firstWrapper(std::span<const std::pair<const char*, const char*>> names, void (*ofLibrary)()) {
  const void* const library = placeOf(std::bit_cast<void*>(ofLibrary)).dli_fbase;
  if (library == nullptr) return "";
  for (const auto& [name, ofMpi] : names) {
    const Dl_info first = placeOf(::dlsym(RTLD_DEFAULT, name));
    if (first.dli_fbase == nullptr || first.dli_fbase == library) continue;
    // Of an interpreter's extension, which has the library for itself, the MPI alone may be seen from here.
    if (first.dli_fbase == placeOf(::dlsym(RTLD_DEFAULT, ofMpi)).dli_fbase) continue;
    return std::string(name) + " is that of " + (first.dli_fname == nullptr ? "the program" : first.dli_fname);
  }
  return "";
}

}  // namespace

std::string wrapperOfCompletions(void (*ofLibrary)()) { return firstWrapper(completions, ofLibrary); }

std::string wrapperOfFree(void (*ofLibrary)()) { return firstWrapper(frees, ofLibrary); }

}  // namespace tacc::mpi
