// MPI's types and operations as tacc knows them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "known_types.hpp"
#include "report.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {

/// How tacc does a reduction of MPI's.
struct Reduction {
  Passed passed;        // why it does not
  taccDataType_t type;  // the same size and kind of number
  taccRedOp_t op;
  int bytes;  // of an element
};

/// Why tacc does not reduce by them, if it does not: it has no such type, no such operation, or MPI has not that
/// operation with the type.
Passed whyNotReduced(MPI_Datatype type, MPI_Op op) noexcept;

/// Nothing but handles is looked at.
[[gnu::always_inline]] inline Reduction reductionOf(MPI_Datatype type, MPI_Op op) noexcept {
  const KnownType* const known = knownTypes.find(type);
  const KnownOperation* const operation = knownOperations.find(op);
  if (known == nullptr || operation == nullptr || (known->reducedBy >> operation->tacc & 1) == 0) [[unlikely]]
    return {whyNotReduced(type, op), taccInt8, taccSum, 1};
  return {Passed::none, known->tacc, operation->tacc, known->reducedBytes};
}

/// Fills knownTypes and knownOperations. MPI is initialized.
void learnTypes();

/// What bytesOf() says of MPI_DATATYPE_NULL and what has no known size. Not std::optional: compilers copy that by way
/// of memory, where a short call waits for what it has just written.
constexpr std::size_t noSize = SIZE_MAX;

/// bytesOf() and isBlock() of types that are not among the known ones.
std::size_t bytesOfOther(MPI_Datatype type) noexcept;
bool isOtherBlock(MPI_Datatype type) noexcept;

/// Bytes of the numbers in one element, without the gaps, or noSize.
[[gnu::always_inline]] inline std::size_t bytesOf(MPI_Datatype type) noexcept {
  const KnownType* const known = knownTypes.find(type);
  return known != nullptr ? known->bytes : bytesOfOther(type);
}

/// Of a type that was looked at already.
inline std::size_t bytesOfJudged(MPI_Datatype type) noexcept {
  const std::size_t bytes = bytesOf(type);
  return bytes == noSize ? 0 : bytes;
}

/// Whether elements of `type`, one after the other, are a block of memory in the order in which MPI sends them. False
/// for derived types other than blocks in a row: size and extent alone do not tell the order.
inline bool isBlock(MPI_Datatype type) noexcept {
  const KnownType* const known = knownTypes.find(type);
  return known != nullptr ? known->isBlock : isOtherBlock(type);
}

}  // namespace tacc::mpi
