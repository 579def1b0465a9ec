// Element types and reductions: sizes, names and their parsing. The names are those that nccl-tests prints.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tacc/tacc.h"

namespace tacc {

/// Bytes of one element. `type` must be valid.
constexpr std::size_t sizeOf(taccDataType_t type) noexcept {
  switch (type) {
    case taccInt8:
    case taccUint8:
    case taccBool:
      return 1;
    case taccInt16:
    case taccUint16:
    case taccFloat16:
    case taccBfloat16:
      return 2;
    case taccInt32:
    case taccUint32:
    case taccFloat32:
      return 4;
    case taccComplex128:
    case taccDoubleInt:
    case taccLongInt:
      return 16;
    default:
      return 8;
  }
}
/// Which addresses elements have, as a program's compiler places them. `type` must be valid.
constexpr std::size_t alignmentOf(taccDataType_t type) noexcept {
  switch (type) {
    case taccComplex64:
    case taccFloatInt:
    case taccIntInt:
    case taccShortInt:
      return 4;
    case taccComplex128:
    case taccDoubleInt:
    case taccLongInt:
      return 8;
    default:
      return sizeOf(type);
  }
}
/// The most bytes that an element has.
inline constexpr std::size_t maxElementBytes = 16;

constexpr bool isValid(taccDataType_t type) noexcept { return type >= 0 && type < taccNumTypes; }

/// Types whose sums depend on the order in which they are taken.
constexpr bool isFloating(taccDataType_t type) noexcept {
  return type == taccFloat16 || type == taccBfloat16 || type == taccFloat32 || type == taccFloat64 ||
         type == taccComplex64 || type == taccComplex128;
}
constexpr bool isComplex(taccDataType_t type) noexcept { return type == taccComplex64 || type == taccComplex128; }
/// A value and an index.
constexpr bool isPair(taccDataType_t type) noexcept { return type >= taccFloatInt && type <= taccShortInt; }
constexpr bool isInteger(taccDataType_t type) noexcept {
  return type <= taccUint64 || type == taccInt16 || type == taccUint16;
}
/// Whether a built-in operation is one of that type's.
constexpr bool hasOperation(taccDataType_t type, taccRedOp_t op) noexcept {
  if (op == taccMinLoc || op == taccMaxLoc || isPair(type))
    return (op == taccMinLoc || op == taccMaxLoc) && isPair(type);
  if (op >= taccLogicalAnd && op <= taccLogicalXor) return isInteger(type) || type == taccBool;
  if (op >= taccBitAnd && op <= taccBitXor) return isInteger(type);
  if (type == taccBool) return false;
  return !isComplex(type) || op == taccSum || op == taccProd || op == taccAvg;
}
/// Types whose sums are kept in float32 until they are complete.
constexpr bool isHalfWidth(taccDataType_t type) noexcept { return type == taccFloat16 || type == taccBfloat16; }

inline constexpr std::string_view typeNames[taccNumTypes] = {
    "int8", "uint8", "int32",  "uint32",    "int64",      "uint64",   "half",      "float",   "double", "bfloat16",
    "bool", "int16", "uint16", "complex64", "complex128", "floatint", "doubleint", "longint", "intint", "shortint"};
inline constexpr std::string_view opNames[taccNumOps] = {"sum",  "prod", "max", "min",  "avg",    "land",  "lor",
                                                         "lxor", "band", "bor", "bxor", "minloc", "maxloc"};

constexpr std::string_view nameOf(taccDataType_t type) noexcept {
  return isValid(type) ? typeNames[type] : std::string_view("invalid type");
}
constexpr std::string_view nameOf(taccRedOp_t op) noexcept {
  return op >= 0 && op < taccNumOps ? opNames[op] : std::string_view("mulsum");
}

}  // namespace tacc
