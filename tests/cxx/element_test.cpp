// Which C++ types are which elements, and what is a buffer. Most of it is decided by the compiler.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>
#include <vector>

#include "cxx/ranks.hpp"

namespace {

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

}  // namespace

template <>
struct taccxx::ElementType<Half> : std::integral_constant<taccDataType_t, taccFloat16> {};
template <>
struct taccxx::ElementType<Brain> : std::integral_constant<taccDataType_t, taccBfloat16> {};

namespace taccxx::test {
namespace {

template <class T>
constexpr taccDataType_t typeOf = ElementType<T>::value;

static_assert(typeOf<std::int8_t> == taccInt8 && typeOf<std::uint8_t> == taccUint8);
static_assert(typeOf<std::int32_t> == taccInt32 && typeOf<std::uint32_t> == taccUint32);
static_assert(typeOf<std::int64_t> == taccInt64 && typeOf<std::uint64_t> == taccUint64);
static_assert(typeOf<long> == (sizeof(long) == 8 ? taccInt64 : taccInt32));
static_assert(typeOf<unsigned long long> == taccUint64);
static_assert(typeOf<float> == taccFloat32 && typeOf<double> == taccFloat64);
static_assert(typeOf<Half> == taccFloat16 && typeOf<Brain> == taccBfloat16);

static_assert(typeOf<short> == taccInt16 && typeOf<std::uint16_t> == taccUint16 && typeOf<bool> == taccBool);
static_assert(typeOf<std::complex<float>> == taccComplex64 && typeOf<Located<double>> == taccDoubleInt);
static_assert(sizeof(Located<double>) == 16 && sizeof(Located<std::int16_t>) == 8);

static_assert(!Element<wchar_t> && !Element<char32_t> && !Element<long double> && !Element<float*> &&
              !Element<std::vector<float>>);

static_assert(Input<std::vector<float>&> && Output<std::vector<float>&>);
static_assert(Input<const std::vector<float>&> && !Output<const std::vector<float>&>);
static_assert(Input<std::span<const int>> && !Output<std::span<const int>>);
static_assert(Output<std::span<int>> && Output<std::array<double, 3>&> && Output<int (&)[3]>);
static_assert(Output<Memory<float>&> && Input<const Memory<float>&> && !Output<const Memory<float>&>);
static_assert(!Input<std::vector<float>>, "it would be gone before a stream comes to it");
static_assert(!Input<std::list<float>&> && !Input<std::vector<wchar_t>&>);
static_assert(!SameElements<std::vector<float>&, std::vector<double>&>);

/// `one` on each of two ranks makes `two`.
template <class T>
void expectSum(T one, T two) {
  onRanks(2, [&](Communicator& comm) {
    std::vector<T> values(33, one);
    comm.allReduce(values);
    for (const T& value : values) ASSERT_EQ(std::memcmp(&value, &two, sizeof(T)), 0);
  });
}

TEST(CxxElement, IsSummedAsWhatItIs) {
  expectSum<std::int8_t>(100, -56);
  expectSum<std::uint8_t>(100, 200);
  expectSum<std::int32_t>(-3, -6);
  expectSum<std::uint32_t>(0x90000000u, 0x20000000u);
  expectSum<long long>(-3'000'000'000, -6'000'000'000);
  expectSum<unsigned long>(3'000'000'000u, 6'000'000'000u);
  expectSum<float>(1.25f, 2.5f);
  expectSum<double>(1e300, 2e300);
  expectSum<Half>({0x3c00}, {0x4000});
  expectSum<Brain>({0x3f80}, {0x4000});
}

}  // namespace
}  // namespace taccxx::test
