#include "types.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tacc::mpi {
namespace {

struct Row {
  MPI_Datatype mpi;
  taccDataType_t tacc;
};

template <class Integer>
Row row(MPI_Datatype mpi) {
  constexpr bool isSigned = std::is_signed_v<Integer>;
  if (sizeof(Integer) == 1) return {mpi, isSigned ? taccInt8 : taccUint8};
  if (sizeof(Integer) == 4) return {mpi, isSigned ? taccInt32 : taccUint32};
  return {mpi, isSigned ? taccInt64 : taccUint64};
}

/// Fortran's, whose sizes its compiler decides. MPI_DATATYPE_NULL, which nobody asks for, where tacc has none of the
/// size or MPI none of the type.
Row fortranRow(MPI_Datatype mpi, bool isReal) {
  int bytes = 0;
  if (mpi == MPI_DATATYPE_NULL || PMPI_Type_size(mpi, &bytes) != MPI_SUCCESS) return {MPI_DATATYPE_NULL, taccInt8};
  if (bytes == 4) return {mpi, isReal ? taccFloat32 : taccInt32};
  if (bytes == 8) return {mpi, isReal ? taccFloat64 : taccInt64};
  return {MPI_DATATYPE_NULL, taccInt8};
}

/// Not constant before MPI's library is there: with Open MPI these are addresses in it. No short integers: tacc has
/// none of 16 bits. No MPI_BYTE and no logical types, which MPI does not add up either.
const auto& numbers() {
  static const std::array all{Row{MPI_FLOAT, taccFloat32},
                              Row{MPI_DOUBLE, taccFloat64},
                              row<char>(MPI_CHAR),
                              row<signed char>(MPI_SIGNED_CHAR),
                              row<unsigned char>(MPI_UNSIGNED_CHAR),
                              row<int>(MPI_INT),
                              row<unsigned>(MPI_UNSIGNED),
                              row<long>(MPI_LONG),
                              row<unsigned long>(MPI_UNSIGNED_LONG),
                              row<long long>(MPI_LONG_LONG_INT),
                              row<unsigned long long>(MPI_UNSIGNED_LONG_LONG),
                              row<std::int8_t>(MPI_INT8_T),
                              row<std::uint8_t>(MPI_UINT8_T),
                              row<std::int32_t>(MPI_INT32_T),
                              row<std::uint32_t>(MPI_UINT32_T),
                              row<std::int64_t>(MPI_INT64_T),
                              row<std::uint64_t>(MPI_UINT64_T),
                              row<MPI_Aint>(MPI_AINT),
                              row<MPI_Offset>(MPI_OFFSET),
                              row<MPI_Count>(MPI_COUNT),
                              fortranRow(MPI_INTEGER, false),
                              fortranRow(MPI_REAL, true),
                              fortranRow(MPI_DOUBLE_PRECISION, true)};
  return all;
}

}  // namespace

std::optional<taccDataType_t> reducedType(MPI_Datatype type) noexcept {
  for (const Row& one : numbers())
    if (one.mpi == type) return one.tacc;
  return std::nullopt;
}

std::optional<taccRedOp_t> reducedBy(MPI_Op op) noexcept {
  if (op == MPI_SUM) return taccSum;
  if (op == MPI_PROD) return taccProd;
  if (op == MPI_MAX) return taccMax;
  if (op == MPI_MIN) return taccMin;
  return std::nullopt;
}

std::optional<std::size_t> bytesOf(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return std::nullopt;
  MPI_Count bytes = 0;
  if (PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

bool isBlock(MPI_Datatype type) noexcept {
  if (type == MPI_BYTE || reducedType(type)) return true;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  if (combiner != MPI_COMBINER_NAMED) return false;
  // MPI_DOUBLE_INT and its like are named and have a gap.
  MPI_Count bytes = 0, low = 0, extent = 0, trueLow = 0, trueExtent = 0;
  return PMPI_Type_size_x(type, &bytes) == MPI_SUCCESS && PMPI_Type_get_extent_x(type, &low, &extent) == MPI_SUCCESS &&
         PMPI_Type_get_true_extent_x(type, &trueLow, &trueExtent) == MPI_SUCCESS && low == 0 && trueLow == 0 &&
         extent == bytes && trueExtent == bytes;
}

}  // namespace tacc::mpi
