#include "types.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "elements.hpp"

namespace tacc::mpi {

constinit KnownHandles<KnownType> knownTypes;
constinit KnownHandles<KnownOperation> knownOperations;

namespace {

/// Which operations MPI has for a type.
enum class NumberKind : std::uint8_t { integer, real, complex, logical, bytes, pair, none };

struct Row {
  MPI_Datatype mpi;
  taccDataType_t tacc;
  NumberKind kind;
};

/// MPI_DATATYPE_NULL is what nobody asks for.
constexpr taccDataType_t anyType = taccInt8;
Row noRow() { return {MPI_DATATYPE_NULL, anyType, NumberKind::none}; }

template <class Integer>
Row row(MPI_Datatype mpi) {
  constexpr bool isSigned = std::is_signed_v<Integer>;
  if (sizeof(Integer) == 1) return {mpi, isSigned ? taccInt8 : taccUint8, NumberKind::integer};
  if (sizeof(Integer) == 2) return {mpi, isSigned ? taccInt16 : taccUint16, NumberKind::integer};
  if (sizeof(Integer) == 4) return {mpi, isSigned ? taccInt32 : taccUint32, NumberKind::integer};
  return {mpi, isSigned ? taccInt64 : taccUint64, NumberKind::integer};
}

/// Fortran's, whose sizes its compiler decides, and those of other languages. None where tacc has none of the size or
/// MPI none of the type.
Row rowBySize(MPI_Datatype mpi, NumberKind kind) {
  int bytes = 0;
  if (mpi == MPI_DATATYPE_NULL || PMPI_Type_size(mpi, &bytes) != MPI_SUCCESS) return noRow();
  switch (kind) {
    case NumberKind::real:
      return bytes == 4 ? Row{mpi, taccFloat32, kind} : bytes == 8 ? Row{mpi, taccFloat64, kind} : noRow();
    case NumberKind::complex:
      return bytes == 8 ? Row{mpi, taccComplex64, kind} : bytes == 16 ? Row{mpi, taccComplex128, kind} : noRow();
    case NumberKind::logical:
      if (bytes == 1) return {mpi, taccBool, kind};
      [[fallthrough]];
    default:
      return bytes == 1   ? Row{mpi, taccInt8, kind}
             : bytes == 2 ? Row{mpi, taccInt16, kind}
             : bytes == 4 ? Row{mpi, taccInt32, kind}
             : bytes == 8 ? Row{mpi, taccInt64, kind}
                          : noRow();
  }
}

/// A pair whose memory is tacc's: as long, with as long an index at its end.
Row pairRow(MPI_Datatype mpi, taccDataType_t tacc, int numbers, std::ptrdiff_t extent) {
  MPI_Count bytes = 0, low = 0, found = 0;
  const bool isSame = mpi != MPI_DATATYPE_NULL && PMPI_Type_size_x(mpi, &bytes) == MPI_SUCCESS && bytes == numbers &&
                      PMPI_Type_get_extent_x(mpi, &low, &found) == MPI_SUCCESS && low == 0 && found == extent;
  return isSame ? Row{mpi, tacc, NumberKind::pair} : noRow();
}

/// Not constant before MPI's library is there: with Open MPI these are addresses in it. Types of Fortran's logicals
/// only where they are numbers of 0 and 1, as GNU's are.
const auto& numbers() {
  static const std::array all{Row{MPI_FLOAT, taccFloat32, NumberKind::real},
                              Row{MPI_DOUBLE, taccFloat64, NumberKind::real},
                              row<char>(MPI_CHAR),
                              row<signed char>(MPI_SIGNED_CHAR),
                              row<unsigned char>(MPI_UNSIGNED_CHAR),
                              row<short>(MPI_SHORT),
                              row<unsigned short>(MPI_UNSIGNED_SHORT),
                              row<int>(MPI_INT),
                              row<unsigned>(MPI_UNSIGNED),
                              row<long>(MPI_LONG),
                              row<unsigned long>(MPI_UNSIGNED_LONG),
                              row<long long>(MPI_LONG_LONG_INT),
                              row<unsigned long long>(MPI_UNSIGNED_LONG_LONG),
                              row<std::int8_t>(MPI_INT8_T),
                              row<std::uint8_t>(MPI_UINT8_T),
                              row<std::int16_t>(MPI_INT16_T),
                              row<std::uint16_t>(MPI_UINT16_T),
                              row<std::int32_t>(MPI_INT32_T),
                              row<std::uint32_t>(MPI_UINT32_T),
                              row<std::int64_t>(MPI_INT64_T),
                              row<std::uint64_t>(MPI_UINT64_T),
                              row<MPI_Aint>(MPI_AINT),
                              row<MPI_Offset>(MPI_OFFSET),
                              row<MPI_Count>(MPI_COUNT),
                              Row{MPI_BYTE, taccUint8, NumberKind::bytes},
                              rowBySize(MPI_C_BOOL, NumberKind::logical),
                              rowBySize(MPI_CXX_BOOL, NumberKind::logical),
                              rowBySize(MPI_LOGICAL, NumberKind::logical),
                              rowBySize(MPI_C_FLOAT_COMPLEX, NumberKind::complex),
                              rowBySize(MPI_C_DOUBLE_COMPLEX, NumberKind::complex),
                              rowBySize(MPI_CXX_FLOAT_COMPLEX, NumberKind::complex),
                              rowBySize(MPI_CXX_DOUBLE_COMPLEX, NumberKind::complex),
                              rowBySize(MPI_COMPLEX, NumberKind::complex),
                              rowBySize(MPI_DOUBLE_COMPLEX, NumberKind::complex),
                              rowBySize(MPI_INTEGER, NumberKind::integer),
                              rowBySize(MPI_REAL, NumberKind::real),
                              rowBySize(MPI_DOUBLE_PRECISION, NumberKind::real),
                              rowBySize(MPI_INTEGER1, NumberKind::integer),
                              rowBySize(MPI_INTEGER2, NumberKind::integer),
                              rowBySize(MPI_INTEGER4, NumberKind::integer),
                              rowBySize(MPI_INTEGER8, NumberKind::integer),
                              rowBySize(MPI_REAL4, NumberKind::real),
                              rowBySize(MPI_REAL8, NumberKind::real),
                              rowBySize(MPI_COMPLEX8, NumberKind::complex),
                              rowBySize(MPI_COMPLEX16, NumberKind::complex),
                              pairRow(MPI_FLOAT_INT, taccFloatInt, 8, 8),
                              pairRow(MPI_DOUBLE_INT, taccDoubleInt, 12, 16),
                              pairRow(MPI_LONG_INT, taccLongInt, 12, 16),
                              pairRow(MPI_2INT, taccIntInt, 8, 8),
                              pairRow(MPI_2INTEGER, taccIntInt, 8, 8),
                              pairRow(MPI_SHORT_INT, taccShortInt, 6, 8)};
  return all;
}

const auto& operations() {
  static const std::array all{KnownOperation{MPI_SUM, taccSum},         KnownOperation{MPI_PROD, taccProd},
                              KnownOperation{MPI_MAX, taccMax},         KnownOperation{MPI_MIN, taccMin},
                              KnownOperation{MPI_LAND, taccLogicalAnd}, KnownOperation{MPI_LOR, taccLogicalOr},
                              KnownOperation{MPI_LXOR, taccLogicalXor}, KnownOperation{MPI_BAND, taccBitAnd},
                              KnownOperation{MPI_BOR, taccBitOr},       KnownOperation{MPI_BXOR, taccBitXor},
                              KnownOperation{MPI_MINLOC, taccMinLoc},   KnownOperation{MPI_MAXLOC, taccMaxLoc}};
  return all;
}

bool has(NumberKind kind, taccRedOp_t op) noexcept {
  const bool isArithmetic = op <= taccMin, isLogical = op >= taccLogicalAnd && op <= taccLogicalXor;
  const bool isBitwise = op >= taccBitAnd && op <= taccBitXor;
  switch (kind) {
    case NumberKind::integer:
      return isArithmetic || isLogical || isBitwise;
    case NumberKind::real:
      return isArithmetic;
    case NumberKind::complex:
      return op == taccSum || op == taccProd;
    case NumberKind::logical:
      return isLogical;
    case NumberKind::bytes:
      return isBitwise;
    case NumberKind::pair:
      return op == taccMinLoc || op == taccMaxLoc;
    case NumberKind::none:
      break;
  }
  return false;
}

}  // namespace

Passed whyNotReduced(MPI_Datatype type, MPI_Op op) noexcept {
  if (type == MPI_DATATYPE_NULL || op == MPI_OP_NULL) return Passed::arguments;
  return knownTypes.find(type) == nullptr ? Passed::type : Passed::operation;
}

void learnTypes() {
  for (const KnownOperation& one : operations()) knownOperations.add(one);
  for (const Row& row : numbers()) {
    const std::size_t bytes = bytesOfOther(row.mpi);
    if (bytes == noSize) continue;
    KnownType known{.mpi = row.mpi, .bytes = static_cast<std::uint32_t>(bytes), .tacc = row.tacc};
    for (const KnownOperation& one : operations())
      if (has(row.kind, one.tacc)) known.reducedBy |= static_cast<std::uint16_t>(1U << one.tacc);
    known.reducedBytes = static_cast<std::uint8_t>(sizeOf(row.tacc));
    known.isBlock = row.kind != NumberKind::pair || isOtherBlock(row.mpi);
    knownTypes.add(known);
  }
}

std::size_t bytesOfOther(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return noSize;
  MPI_Count bytes = 0;
  if (PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) return noSize;
  return static_cast<std::size_t>(bytes);
}

namespace {

/// Whether the one type that `type` repeats, or is the same as, is a block. `addresses`: as many as its envelope tells.
bool repeatsBlock(MPI_Datatype type, int integers, int addresses) noexcept {
  int count = 0;
  std::array<MPI_Aint, 2> bounds{};
  MPI_Datatype repeated = MPI_DATATYPE_NULL;
  if (PMPI_Type_get_contents(type, integers, addresses, 1, &count, bounds.data(), &repeated) != MPI_SUCCESS)
    return false;
  const bool isRepeated = isBlock(repeated);
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(repeated, &integers, &addresses, &count, &combiner);
  if (combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&repeated);
  return isRepeated;
}

}  // namespace

bool isOtherBlock(MPI_Datatype type) noexcept {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP &&
      combiner != MPI_COMBINER_RESIZED)
    return false;
  // MPI_DOUBLE_INT and its like are named and have a gap.
  MPI_Count bytes = 0, low = 0, extent = 0, trueLow = 0, trueExtent = 0;
  const bool isDense = PMPI_Type_size_x(type, &bytes) == MPI_SUCCESS &&
                       PMPI_Type_get_extent_x(type, &low, &extent) == MPI_SUCCESS &&
                       PMPI_Type_get_true_extent_x(type, &trueLow, &trueExtent) == MPI_SUCCESS && low == 0 &&
                       trueLow == 0 && extent == bytes && trueExtent == bytes;
  return isDense && (combiner == MPI_COMBINER_NAMED || repeatsBlock(type, integers, addresses));
}

}  // namespace tacc::mpi
