// What the results mean, by example: NaN, infinities and zeros, wrap-around, averages, one rounding for 16-bit types.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "compute/reduce/kernel_table.hpp"
#include "isa_parameter.hpp"
#include "reference.hpp"

namespace tacc::test {
namespace {

class Semantics : public testing::TestWithParam<Isa> {
 protected:
  /// Reduces one element a source; the count is large enough that vectors take part, and all elements must agree.
  template <class T>
  T reduce(taccDataType_t type, taccRedOp_t op, std::initializer_list<T> values, int divisor = 1) {
    constexpr std::size_t count = 71;
    std::vector<std::array<T, count>> buffers;
    for (const T value : values) {
      buffers.emplace_back().fill(value);
    }
    std::vector<const void*> sources;
    for (const auto& buffer : buffers) sources.push_back(buffer.data());
    std::array<T, count> result{};
    void* destination = result.data();
    table_.reduce[type][op]({&destination, 1, sources.data(), static_cast<int>(sources.size()), count, divisor, false});
    for (const T value : result) EXPECT_TRUE(isSame(value, result[0]));
    return result[0];
  }
  float reduceHalf(taccRedOp_t op, std::initializer_list<float> values, int divisor = 1) {
    return widen(reduceSixteen<Half>(taccFloat16, op, values, divisor));
  }
  template <class T>
  T reduceSixteen(taccDataType_t type, taccRedOp_t op, std::initializer_list<float> values, int divisor = 1) {
    std::vector<T> narrowed;
    for (const float value : values) narrowed.push_back(narrow<T>(value));
    EXPECT_EQ(values.size(), 3u);
    return reduce<T>(type, op, {narrowed[0], narrowed[1], narrowed[2]}, divisor);
  }

  const KernelTable table_ = makeKernelTable(GetParam());
};

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST_P(Semantics, NanWinsWhereverItStands) {
  for (const taccRedOp_t op : allOps) {
    EXPECT_TRUE(std::isnan(reduce<float>(taccFloat32, op, {nan, 1, 2}))) << op;
    EXPECT_TRUE(std::isnan(reduce<float>(taccFloat32, op, {1, nan, 2}))) << op;
    EXPECT_TRUE(std::isnan(reduce<float>(taccFloat32, op, {1, 2, nan}))) << op;
    EXPECT_TRUE(std::isnan(reduce<double>(taccFloat64, op, {1, double{nan}, 2}))) << op;
    EXPECT_TRUE(std::isnan(reduceHalf(op, {nan, 1, 2}))) << op;
    EXPECT_TRUE(std::isnan(reduceHalf(op, {1, 2, nan}))) << op;
    EXPECT_TRUE(std::isnan(widen(reduceSixteen<Brain>(taccBfloat16, op, {1, nan, 2})))) << op;
  }
}

TEST_P(Semantics, Infinities) {
  EXPECT_EQ(reduce<float>(taccFloat32, taccMax, {-infinity, 3, -1}), 3);
  EXPECT_EQ(reduce<float>(taccFloat32, taccMin, {infinity, -infinity, -1}), -infinity);
  EXPECT_EQ(reduce<float>(taccFloat32, taccSum, {infinity, 3, -1}), infinity);
  EXPECT_TRUE(std::isnan(reduce<float>(taccFloat32, taccSum, {infinity, -infinity, -1})));
  EXPECT_EQ(reduceHalf(taccSum, {65504, 65504, 1}), infinity);
  EXPECT_EQ(reduceHalf(taccMin, {-infinity, 3, 1}), -infinity);
}

TEST_P(Semantics, FirstOfEqualZerosIsKept) {
  for (const taccRedOp_t op : {taccMax, taccMin}) {
    EXPECT_TRUE(std::signbit(reduce<float>(taccFloat32, op, {-0.0f, 0.0f}))) << op;
    EXPECT_FALSE(std::signbit(reduce<float>(taccFloat32, op, {0.0f, -0.0f}))) << op;
    EXPECT_TRUE(std::signbit(reduce<double>(taccFloat64, op, {-0.0, 0.0}))) << op;
  }
}

TEST_P(Semantics, IntegersWrap) {
  EXPECT_EQ(reduce<std::int8_t>(taccInt8, taccSum, {127, 1}), -128);
  EXPECT_EQ(reduce<std::int8_t>(taccInt8, taccProd, {-128, -1}), -128);
  EXPECT_EQ(reduce<std::uint8_t>(taccUint8, taccProd, {200, 3}), 600 % 256);
  EXPECT_EQ(reduce<std::int32_t>(taccInt32, taccSum, {INT32_MAX, 1}), INT32_MIN);
  EXPECT_EQ(reduce<std::int64_t>(taccInt64, taccProd, {INT64_MIN, -1}), INT64_MIN);
  EXPECT_EQ(reduce<std::uint64_t>(taccUint64, taccProd, {0x123456789abcdef1, 0xfedcba9876543211}),
            0x123456789abcdef1 * 0xfedcba9876543211);
}

TEST_P(Semantics, OrderOfSignedAndUnsigned) {
  EXPECT_EQ(reduce<std::int8_t>(taccInt8, taccMax, {-1, 1}), 1);
  EXPECT_EQ(reduce<std::uint8_t>(taccUint8, taccMax, {255, 1}), 255);
  EXPECT_EQ(reduce<std::int64_t>(taccInt64, taccMin, {-1, 1}), -1);
  EXPECT_EQ(reduce<std::uint64_t>(taccUint64, taccMin, {UINT64_MAX, 1}), 1u);
  EXPECT_EQ(reduce<std::uint32_t>(taccUint32, taccMax, {UINT32_MAX, 1}), UINT32_MAX);
}

TEST_P(Semantics, AverageDividesAtTheEnd) {
  EXPECT_EQ(reduce<std::int32_t>(taccInt32, taccSum, {-3, -4, 0}, 2), -3);
  EXPECT_EQ(reduce<std::int8_t>(taccInt8, taccSum, {100, 20, 1}, 1000), 0);
  EXPECT_EQ(reduce<std::uint8_t>(taccUint8, taccSum, {200, 50}, 7), 250 / 7);
  EXPECT_EQ(reduce<std::uint64_t>(taccUint64, taccSum, {UINT64_MAX - 1, 1}, 2), UINT64_MAX / 2);
  EXPECT_EQ(reduce<float>(taccFloat32, taccSum, {1, 2, 7}, 3), 10.0f / 3.0f);
  EXPECT_EQ(reduce<float>(taccFloat32, taccSum, {7}, 3), 7.0f / 3.0f);
  // The sum overflows float16, the average does not.
  EXPECT_EQ(reduceHalf(taccSum, {60000, 60000, 60000}, 3), widen(narrow<Half>(60000)));
}

TEST_P(Semantics, SixteenBitsAreRoundedOnce) {
  // 1 + 2^-11 is a tie that would round back to 1 after each addition; the sum of all is not.
  EXPECT_EQ(reduceHalf(taccSum, {1, 0x1p-11f, 0x1p-11f}), 1 + 0x1p-10f);
  EXPECT_EQ(widen(reduceSixteen<Brain>(taccBfloat16, taccSum, {1, 0x1p-8f, 0x1p-8f})), 1 + 0x1p-7f);
  // Ties go to even, down as well as up.
  EXPECT_EQ(reduceHalf(taccSum, {1, 0x1p-11f, 0}), 1);
  EXPECT_EQ(reduceHalf(taccSum, {1 + 0x1p-10f, 0x1p-11f, 0}), 1 + 0x1p-9f);
  EXPECT_EQ(widen(reduceSixteen<Brain>(taccBfloat16, taccSum, {1 + 0x1p-7f, 0x1p-8f, 0})), 1 + 0x1p-6f);
}

INSTANTIATE_TEST_SUITE_P(AllIsas, Semantics, testing::ValuesIn(availableIsas()), nameOfIsa);

}  // namespace
}  // namespace tacc::test
