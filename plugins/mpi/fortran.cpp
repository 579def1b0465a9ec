// MPI's functions in Fortran that are taken over (fortran_words.hpp), but for those on requests. They become calls of
// what C programs call.
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fortran_words.hpp"
#include "functions.h"
#include "persistent.hpp"

#define TACC_MPI_DECLARE(name, fortran) extern "C" decltype(MPI_##name) taccMpi_##name;
TACC_MPI_FORTRAN_LIFECYCLE(TACC_MPI_DECLARE)
TACC_MPI_FORTRAN_BARRIERS(TACC_MPI_DECLARE)
extern "C" decltype(MPI_Alloc_mem) taccMpi_Alloc_mem;
extern "C" decltype(MPI_Free_mem) taccMpi_Free_mem;
TACC_MPI_FORTRAN_BUFFERED(TACC_MPI_DECLARE)
#ifdef TACC_MPI_PERSISTENT
#define TACC_MPI_DECLARE_PERSISTENT(name, fortran) extern "C" decltype(TACC_MPI_PERSISTENT(name)) taccMpi_##name;
TACC_MPI_FORTRAN_PERSISTENT(TACC_MPI_DECLARE_PERSISTENT)
#endif

namespace tacc::mpi {
namespace {

void* bufferAt(void* word) noexcept {
  static const void* const inPlace = fortranVariable("mpi_fortran_in_place_");
  static const void* const bottom = fortranVariable("mpi_fortran_bottom_");
  if (word != nullptr && word == inPlace) return MPI_IN_PLACE;
  if (word != nullptr && word == bottom) return MPI_BOTTOM;
  return word;
}

/// What C expects in the place of a word of Fortran's.
template <class Argument>
Argument argumentAt(void* word) noexcept {
  MPI_Fint* const number = static_cast<MPI_Fint*>(word);
  if constexpr (std::is_same_v<Argument, const int*>)
    return number;
  else if constexpr (std::is_pointer_v<Argument> && std::is_void_v<std::remove_pointer_t<Argument>>)
    return bufferAt(word);
#ifdef OPEN_MPI  // handles of MPICH are numbers, for whom no conversion is needed
  else if constexpr (std::is_same_v<Argument, MPI_Datatype>)
    return PMPI_Type_f2c(*number);
  else if constexpr (std::is_same_v<Argument, MPI_Op>)
    return PMPI_Op_f2c(*number);
  else if constexpr (std::is_same_v<Argument, MPI_Comm>)
    return PMPI_Comm_f2c(*number);
  else if constexpr (std::is_same_v<Argument, MPI_Info>)
    return PMPI_Info_f2c(*number);
#endif
  else
    return *number;
}

using Words = std::array<void*, 12>;

template <class... Arguments, std::size_t... places>
void callCollective(int (*collective)(Arguments...), const Words& words, std::index_sequence<places...>) noexcept {
  answer(words[sizeof...(Arguments)], collective(argumentAt<Arguments>(words[places])...));
}

/// One whose last argument in C is a request that it makes.
template <class... Arguments, std::size_t... places>
void callWithRequest(int (*collective)(Arguments...), const Words& words, std::index_sequence<places...>) noexcept {
  constexpr std::size_t last = sizeof...(Arguments) - 1;
  MPI_Request request = MPI_REQUEST_NULL;
  using All = std::tuple<Arguments...>;
  const int code = collective(argumentAt<std::tuple_element_t<places, All>>(words[places])..., &request);
  if (code == MPI_SUCCESS) *static_cast<MPI_Fint*>(words[last]) = PMPI_Request_c2f(request);
  answer(words[last + 1], code);
}

template <class... Arguments>
void call(int (*collective)(Arguments...), const Words& words) noexcept {
  constexpr std::size_t count = sizeof...(Arguments);
  if constexpr (std::is_same_v<std::tuple_element_t<count - 1, std::tuple<Arguments...>>, MPI_Request*>)
    callWithRequest(collective, words, std::make_index_sequence<count - 1>());
  else
    callCollective(collective, words, std::make_index_sequence<count>());
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

TACC_MPI_FORTRAN_ENTRY(Init)(void* error) {
  int count = 0;
  char** arguments = nullptr;
  answer(error, taccMpi_Init(&count, &arguments));
}

TACC_MPI_FORTRAN_ENTRY(Init_thread)(MPI_Fint* required, MPI_Fint* provided, void* error) {
  int count = 0;
  char** arguments = nullptr;
  answer(error, taccMpi_Init_thread(&count, &arguments, *required, provided));
}

TACC_MPI_FORTRAN_ENTRY(Finalize)(void* error) { answer(error, taccMpi_Finalize()); }

TACC_MPI_FORTRAN_ENTRY(Comm_free)(MPI_Fint* comm, void* error) { endCommunicator(taccMpi_Comm_free, comm, error); }

TACC_MPI_FORTRAN_ENTRY(Comm_disconnect)(MPI_Fint* comm, void* error) {
  endCommunicator(taccMpi_Comm_disconnect, comm, error);
}

#ifdef OPEN_MPI
TACC_MPI_FORTRAN_ENTRY(Alloc_mem)(MPI_Aint* size, MPI_Fint* info, void* base, void* error) {
  answer(error, taccMpi_Alloc_mem(*size, PMPI_Info_f2c(*info), base));
}

TACC_MPI_FORTRAN_ENTRY(Alloc_mem_cptr)(MPI_Aint* size, MPI_Fint* info, void* base, void* error) {
  taccMpiFortran_Alloc_mem(size, info, base, error);
}

TACC_MPI_FORTRAN_ENTRY(Free_mem)(void* base, void* error) { answer(error, taccMpi_Free_mem(base)); }
#endif

#define TACC_MPI_DEFINE(name, fortran)                                                                           \
  TACC_MPI_FORTRAN_ENTRY(name)                                                                                   \
  (void* a, void* b, void* c, void* d, void* e, void* f, void* g, void* h, void* i, void* j, void* k, void* l) { \
    call(taccMpi_##name, {a, b, c, d, e, f, g, h, i, j, k, l});                                                  \
  }
TACC_MPI_FORTRAN_BARRIERS(TACC_MPI_DEFINE)
#ifdef OPEN_MPI
TACC_MPI_FORTRAN_BUFFERED(TACC_MPI_DEFINE)
#endif
#ifdef TACC_MPI_PERSISTENT
#ifdef OPEN_MPI
TACC_MPI_FORTRAN_PERSISTENT(TACC_MPI_DEFINE)
#else
TACC_MPI_DEFINE(Barrier_init, barrier_init)
#endif
#endif
