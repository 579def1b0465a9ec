// What the kernels must compute, written as plainly as possible: one element at a time, the conversions of the 16-bit
// types by arithmetic on doubles instead of by bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "core/types.hpp"
#include "tacc/tacc.h"

namespace tacc::test {

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

template <class T>
inline constexpr bool isSixteenBits = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;
/// The type in which T is reduced.
template <class T>
using Wide = std::conditional_t<isSixteenBits<T>, float, T>;

template <class T>
struct Format;  // of a 16-bit type
template <>
struct Format<Half> {
  static constexpr int mantissaBits = 10, bias = 15, maxExponent = 31;
};
template <>
struct Format<Brain> {
  static constexpr int mantissaBits = 7, bias = 127, maxExponent = 255;
};

template <class T>
float widen(T value) {
  using F = Format<T>;
  const int mantissa = value.bits & ((1 << F::mantissaBits) - 1);
  const int exponent = (value.bits >> F::mantissaBits) & F::maxExponent;
  double magnitude;
  if (exponent == F::maxExponent) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - F::bias - F::mantissaBits);
  } else {
    magnitude = std::ldexp(mantissa + (1 << F::mantissaBits), exponent - F::bias - F::mantissaBits);
  }
  return static_cast<float>(std::copysign(magnitude, (value.bits & 0x8000) != 0 ? -1.0 : 1.0));
}

template <class T>
T narrow(float value) {
  using F = Format<T>;
  const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
  constexpr unsigned infinity = static_cast<unsigned>(F::maxExponent) << F::mantissaBits;
  if (std::isnan(value)) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const unsigned payload = (bits & 0x7fffffu) >> (23 - F::mantissaBits);
    return {static_cast<std::uint16_t>(sign | infinity | (1u << (F::mantissaBits - 1)) | payload)};
  }
  const double magnitude = std::fabs(static_cast<double>(value));
  unsigned encoded = infinity;
  if (!std::isinf(value)) {
    const int lowest = 1 - F::bias;
    const int exponent = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude), lowest);
    // In units of the last place of this exponent; nearbyint rounds to nearest even.
    const double units = std::nearbyint(std::ldexp(magnitude, F::mantissaBits - exponent));
    const unsigned offset = static_cast<unsigned>(exponent - lowest) << F::mantissaBits;
    encoded = std::min(offset + static_cast<unsigned>(units), infinity);
  }
  return {static_cast<std::uint16_t>(sign | encoded)};
}

template <class T>
Wide<T> toWide(T value) {
  if constexpr (isSixteenBits<T>) {
    return widen(value);
  } else {
    return value;
  }
}

template <class T>
T fromWide(Wide<T> value) {
  if constexpr (isSixteenBits<T>) {
    return narrow<T>(value);
  } else {
    return value;
  }
}

template <class W>
bool isNan(W value) {
  if constexpr (std::is_floating_point_v<W>) {
    return std::isnan(value);
  } else {
    return false;
  }
}

template <class W>
W combine(taccRedOp_t op, W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (op == taccSum) return static_cast<W>(x + y);
    if (op == taccProd) return static_cast<W>(x * y);
  } else {
    if (op == taccSum) return a + b;
    if (op == taccProd) return a * b;
  }
  if (isNan(a)) return a;
  if (isNan(b)) return b;
  if (op == taccMax) return b > a ? b : a;
  return b < a ? b : a;
}

template <class W>
W divide(W value, int divisor) {
  if (divisor <= 1) return value;
  if constexpr (std::is_same_v<W, std::uint64_t>) {
    return value / static_cast<std::uint64_t>(divisor);
  } else if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::int64_t>(value) / divisor);
  } else {
    return value / static_cast<W>(divisor);
  }
}

template <class T>
T reduceElement(taccRedOp_t op, const std::vector<const T*>& sources, std::size_t i, int divisor) {
  Wide<T> value = toWide(sources[0][i]);
  for (std::size_t k = 1; k < sources.size(); ++k) value = combine(op, value, toWide(sources[k][i]));
  return fromWide<T>(divide(value, divisor));
}

/// Equal bits, or both NaN: which of several NaNs comes out is not specified.
template <class T>
bool isSame(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    if (isNan(toWide(a)) && isNan(toWide(b))) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// All bit patterns for integers; for floating point mostly moderate numbers, so that sums stay finite, and one in 32
/// something special.
template <class T>
T randomValue(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    using W = Wide<T>;
    constexpr W special[] = {W(0),
                             -W(0),
                             std::numeric_limits<W>::infinity(),
                             -std::numeric_limits<W>::infinity(),
                             std::numeric_limits<W>::quiet_NaN(),
                             std::numeric_limits<W>::denorm_min(),
                             W(6e-8),
                             W(65504)};
    const std::uint64_t bits = random();
    if (bits % 32 == 0) return fromWide<T>(special[bits / 32 % 8]);
    return fromWide<T>(static_cast<W>(static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-62));
  }
}

/// Calls visit with a value of the C++ type of `type`.
template <class Visit>
void withType(taccDataType_t type, Visit visit) {
  switch (type) {
    case taccInt8:
      return visit(std::int8_t{});
    case taccUint8:
      return visit(std::uint8_t{});
    case taccInt32:
      return visit(std::int32_t{});
    case taccUint32:
      return visit(std::uint32_t{});
    case taccInt64:
      return visit(std::int64_t{});
    case taccUint64:
      return visit(std::uint64_t{});
    case taccFloat16:
      return visit(Half{});
    case taccFloat32:
      return visit(float{});
    case taccFloat64:
      return visit(double{});
    default:
      return visit(Brain{});
  }
}

inline constexpr taccDataType_t allTypes[] = {taccInt8,   taccUint8,   taccInt32,   taccUint32,  taccInt64,
                                              taccUint64, taccFloat16, taccFloat32, taccFloat64, taccBfloat16};
inline constexpr taccRedOp_t allOps[] = {taccSum, taccProd, taccMax, taccMin};

}  // namespace tacc::test
