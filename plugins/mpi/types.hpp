// MPI's types and operations as tacc knows them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>

#include "tacc/tacc.h"

namespace tacc::mpi {

/// The type in which tacc reduces `type`: the same size and kind of number. Nothing where it has none.
std::optional<taccDataType_t> reducedType(MPI_Datatype type) noexcept;
/// The operation, of a type that tacc reduces. Nothing for operations that tacc does not have, or MPI not with this
/// type.
std::optional<taccRedOp_t> reducedBy(MPI_Op op, MPI_Datatype type) noexcept;

/// Bytes of the numbers in one element, without the gaps; nothing for MPI_DATATYPE_NULL and what has no known size.
std::optional<std::size_t> bytesOf(MPI_Datatype type) noexcept;
/// Whether elements of `type`, one after the other, are a block of memory in the order in which MPI sends them. False
/// for derived types: size and extent alone do not tell the order.
bool isBlock(MPI_Datatype type) noexcept;

}  // namespace tacc::mpi
