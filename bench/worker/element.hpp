#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tacc/tacc.h"

namespace tacc::bench {

/// Types and operations that can be measured: those of real numbers, which are the first of all.
inline constexpr int numTypes = taccBfloat16 + 1;
inline constexpr int numOps = taccAvg + 1;

/// Bytes of one element.
size_t elementSize(taccDataType_t type);

/// The names that nccl-tests prints and accepts: "int8", "half", "float", "bfloat16", ...
const char* typeName(taccDataType_t type);
std::optional<taccDataType_t> typeFromName(std::string_view name);

/// "sum", "prod", "max", "min", "avg".
const char* opName(taccRedOp_t op);
std::optional<taccRedOp_t> opFromName(std::string_view name);

/// True for half, bfloat16, float and double.
bool isFloating(taccDataType_t type);

/// Bits of the significand, the hidden one included: integers up to 2^bits are exact. Integers types: their value bits.
int exactBits(taccDataType_t type);

/// Writes `value` as an element: floating types round to nearest even, integers truncate towards zero and wrap.
void storeElement(taccDataType_t type, double value, void* at);
double loadElement(taccDataType_t type, const void* at);

}  // namespace tacc::bench
