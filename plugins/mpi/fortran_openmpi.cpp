// Open MPI's functions in Fortran. All arguments are addresses, handles are numbers, and special buffers are variables
// of its own. They become calls of what C programs call.
#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <utility>

#include "functions.h"
#include "plugin.hpp"

#define TACC_MPI_FORTRAN_ENTRY extern "C" __attribute__((visibility("default"))) void

#define TACC_MPI_DECLARE(name, fortran) extern "C" decltype(MPI_##name) taccMpi_##name;
TACC_MPI_FORTRAN_FUNCTIONS(TACC_MPI_DECLARE)

namespace tacc::mpi {
namespace {

static_assert(sizeof(MPI_Fint) == sizeof(int), "counts of Fortran are handed on where they are");

/// A variable by whose address a Fortran program says what C says by a constant. Null where no Fortran is loaded.
const void* variable(const char* name) noexcept { return dlsym(RTLD_DEFAULT, name); }

void* bufferAt(void* word) noexcept {
  static const void* const inPlace = variable("mpi_fortran_in_place_");
  static const void* const bottom = variable("mpi_fortran_bottom_");
  if (word != nullptr && word == inPlace) return MPI_IN_PLACE;
  if (word != nullptr && word == bottom) return MPI_BOTTOM;
  return word;
}

/// What C expects in the place of a word of Fortran's.
template <class Argument>
Argument argumentAt(void* word) noexcept {
  MPI_Fint* const number = static_cast<MPI_Fint*>(word);
  if constexpr (std::is_same_v<Argument, MPI_Datatype>)
    return PMPI_Type_f2c(*number);
  else if constexpr (std::is_same_v<Argument, MPI_Op>)
    return PMPI_Op_f2c(*number);
  else if constexpr (std::is_same_v<Argument, MPI_Comm>)
    return PMPI_Comm_f2c(*number);
  else if constexpr (std::is_same_v<Argument, int>)
    return *number;
  else if constexpr (std::is_same_v<Argument, const int*>)
    return number;
  else
    return bufferAt(word);  // void* and const void*; no other argument has a conversion
}

using Words = std::array<void*, 11>;

void answer(void* word, int code) noexcept {
  if (word != nullptr) *static_cast<MPI_Fint*>(word) = code;
}

template <class... Arguments, std::size_t... places>
void callCollective(int (*collective)(Arguments...), const Words& words, std::index_sequence<places...>) noexcept {
  answer(words[sizeof...(Arguments)], collective(argumentAt<Arguments>(words[places])...));
}

template <class... Arguments>
void callCollective(int (*collective)(Arguments...), const Words& words) noexcept {
  callCollective(collective, words, std::index_sequence_for<Arguments...>());
}

void endCommunicator(int (*end)(MPI_Comm*), MPI_Fint* comm, void* error) noexcept {
  MPI_Comm handle = PMPI_Comm_f2c(*comm);
  const int code = end(&handle);
  if (code == MPI_SUCCESS) *comm = PMPI_Comm_c2f(handle);
  answer(error, code);
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_FORTRAN_ENTRY taccMpiFortran_Init(void* error) {
  int count = 0;
  char** arguments = nullptr;
  answer(error, taccMpi_Init(&count, &arguments));
}

TACC_MPI_FORTRAN_ENTRY taccMpiFortran_Init_thread(MPI_Fint* required, MPI_Fint* provided, void* error) {
  int count = 0;
  char** arguments = nullptr;
  answer(error, taccMpi_Init_thread(&count, &arguments, *required, provided));
}

TACC_MPI_FORTRAN_ENTRY taccMpiFortran_Finalize(void* error) { answer(error, taccMpi_Finalize()); }

TACC_MPI_FORTRAN_ENTRY taccMpiFortran_Comm_free(MPI_Fint* comm, void* error) {
  endCommunicator(taccMpi_Comm_free, comm, error);
}

TACC_MPI_FORTRAN_ENTRY taccMpiFortran_Comm_disconnect(MPI_Fint* comm, void* error) {
  endCommunicator(taccMpi_Comm_disconnect, comm, error);
}

#define TACC_MPI_DEFINE(name, fortran)                                                                                 \
  TACC_MPI_FORTRAN_ENTRY taccMpiFortran_##name(void* a, void* b, void* c, void* d, void* e, void* f, void* g, void* h, \
                                               void* i, void* j, void* k) {                                            \
    callCollective(taccMpi_##name, {a, b, c, d, e, f, g, h, i, j, k});                                                 \
  }
TACC_MPI_FORTRAN_COLLECTIVES(TACC_MPI_DEFINE)
