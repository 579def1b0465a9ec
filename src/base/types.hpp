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
      return 1;
    case taccFloat16:
    case taccBfloat16:
      return 2;
    case taccInt32:
    case taccUint32:
    case taccFloat32:
      return 4;
    default:
      return 8;
  }
}

constexpr bool isValid(taccDataType_t type) noexcept { return type >= 0 && type < taccNumTypes; }

/// Types whose sums are kept in float32 until they are complete.
constexpr bool isFloating(taccDataType_t type) noexcept {
  return type == taccFloat16 || type == taccBfloat16 || type == taccFloat32 || type == taccFloat64;
}
constexpr bool isHalfWidth(taccDataType_t type) noexcept { return type == taccFloat16 || type == taccBfloat16; }

inline constexpr std::string_view typeNames[taccNumTypes] = {"int8",   "uint8", "int32", "uint32", "int64",
                                                             "uint64", "half",  "float", "double", "bfloat16"};
inline constexpr std::string_view opNames[taccNumOps] = {"sum", "prod", "max", "min", "avg"};

constexpr std::string_view nameOf(taccDataType_t type) noexcept {
  return isValid(type) ? typeNames[type] : std::string_view("invalid type");
}
constexpr std::string_view nameOf(taccRedOp_t op) noexcept {
  return op >= 0 && op < taccNumOps ? opNames[op] : std::string_view("mulsum");
}

}  // namespace tacc
