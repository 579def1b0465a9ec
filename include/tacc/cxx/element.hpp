/* Which C++ types are elements of messages, and which ranges are buffers. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_ELEMENT_HPP
#define TACC_CXX_ELEMENT_HPP

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include "tacc/tacc.h"

namespace taccxx {

/// The library's type for a C++ type, as `value`. A program's own 16-bit floats are elements too once they say so:
///   template <> struct taccxx::ElementType<MyHalf> : std::integral_constant<taccDataType_t, taccFloat16> {};
template <class T>
struct ElementType {};

template <>
struct ElementType<float> : std::integral_constant<taccDataType_t, taccFloat32> {};
template <>
struct ElementType<double> : std::integral_constant<taccDataType_t, taccFloat64> {};
template <>
struct ElementType<bool> : std::integral_constant<taccDataType_t, taccBool> {};
template <>
struct ElementType<std::complex<float>> : std::integral_constant<taccDataType_t, taccComplex64> {};
template <>
struct ElementType<std::complex<double>> : std::integral_constant<taccDataType_t, taccComplex128> {};

/// A value and where it is, for taccMinLoc and taccMaxLoc.
template <class T>
struct Located {
  /// Compared first.
  T value;
  /// Decides among equal values.
  std::int32_t index;
  /// Both are equal.
  friend bool operator==(const Located&, const Located&) = default;
};
template <>
struct ElementType<Located<float>> : std::integral_constant<taccDataType_t, taccFloatInt> {};
template <>
struct ElementType<Located<double>> : std::integral_constant<taccDataType_t, taccDoubleInt> {};
template <>
struct ElementType<Located<std::int64_t>> : std::integral_constant<taccDataType_t, taccLongInt> {};
template <>
struct ElementType<Located<std::int32_t>> : std::integral_constant<taccDataType_t, taccIntInt> {};
template <>
struct ElementType<Located<std::int16_t>> : std::integral_constant<taccDataType_t, taccShortInt> {};

/// Integers by their size and sign, so `long` and `long long` are both what they are here. Not characters of texts.
template <class T>
concept PlainInteger =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t> && sizeof(T) <= 8;

template <PlainInteger T>
struct ElementType<T>
    : std::integral_constant<taccDataType_t, sizeof(T) == 1   ? (std::is_signed_v<T> ? taccInt8 : taccUint8)
                                             : sizeof(T) == 2 ? (std::is_signed_v<T> ? taccInt16 : taccUint16)
                                             : sizeof(T) == 4 ? (std::is_signed_v<T> ? taccInt32 : taccUint32)
                                                              : (std::is_signed_v<T> ? taccInt64 : taccUint64)> {};

template <class T>
concept Element = requires {
  { ElementType<T>::value } -> std::convertible_to<taccDataType_t>;
};

/// What a call reads: contiguous elements that the argument does not own, so that they are still there when a stream
/// comes to them.
template <class R>
concept Input = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && std::ranges::borrowed_range<R> &&
    Element<std::ranges::range_value_t<R>>;

/// What a call writes.
template <class R>
concept Output = Input<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Two buffers of one call.
template <class A, class B>
concept SameElements = std::same_as<std::ranges::range_value_t<A>, std::ranges::range_value_t<B>>;

template <Input R>
inline constexpr taccDataType_t elementTypeOf = ElementType<std::ranges::range_value_t<R>>::value;

}  // namespace taccxx

#endif
