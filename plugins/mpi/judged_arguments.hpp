// Whether a collective's arguments are ones that tacc serves, where every rank has as much. What MPI refuses goes to
// MPI: it says what is wrong in its own words.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "communicators.hpp"
#include "types.hpp"

namespace tacc::mpi {

/// `count` elements of `type`: what goes from one rank to another.
inline Judged judgeMovement(MPI_Count count, MPI_Datatype type) {
  const std::size_t bytes = bytesOf(type);
  if (bytes == noSize || count < 0) return {Passed::arguments};
  return {.bytes = bytes * static_cast<std::size_t>(count)};
}

/// The same, where they are all that the rank has: nothing is there in whose place they could be.
inline Judged judgeMovement(const void* address, MPI_Count count, MPI_Datatype type) {
  return address == MPI_IN_PLACE ? Judged{Passed::arguments} : judgeMovement(count, type);
}

/// The same, where the rank has elements at `other` besides, which take the places of these where that is MPI_IN_PLACE.
inline Judged judgeMovement(const void* address, MPI_Count count, MPI_Datatype type, const void* other,
                            MPI_Count otherCount, MPI_Datatype otherType) {
  const bool isOther = other == MPI_IN_PLACE || (otherCount >= 0 && otherType != MPI_DATATYPE_NULL);
  return address == MPI_IN_PLACE || !isOther ? Judged{Passed::arguments} : judgeMovement(count, type);
}

/// `elements`: all that a rank gives. `needed`: where its result is, or without one what it gives.
inline Judged judgeReduction(MPI_Count elements, const Reduction& how, const void* needed) {
  if (elements < 0 || needed == MPI_IN_PLACE) return {Passed::arguments};
  if (how.passed != Passed::none) return {how.passed};
  return {.bytes = static_cast<std::size_t>(elements) * static_cast<std::size_t>(how.bytes)};
}

}  // namespace tacc::mpi
