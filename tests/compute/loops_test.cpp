// Logical and bitwise operations, 16-bit integers, complex numbers and pairs on every instruction set against plain
// loops, with equal bits; and jobs that go through copies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "compute/reduce/kernel_table.hpp"
#include "core/types.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t maxCount = 3001;

template <class T>
struct Pair {
  T value;
  std::int32_t index;
};

/// Sources of drawn values, reduced by `kernel` into one or two destinations, the first of which may be a source.
template <class T>
void check(const ReduceKernel& kernel, const std::function<T(std::mt19937_64&)>& draw,
           const std::function<T(T, T)>& combine, const std::function<bool(T, T)>& isSame, std::size_t shift) {
  std::mt19937_64 random(3);
  for (const int sources : {1, 2, 3, 17})
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{64}, maxCount}) {
      std::vector<std::vector<std::byte>> memory;
      std::vector<const void*> from;
      std::vector<T> expected(count);
      for (int s = 0; s < sources; ++s) {
        std::vector<std::byte> source(count * sizeof(T) + shift + 1);
        for (std::size_t i = 0; i < count; ++i) {
          const T value = draw(random);
          std::memcpy(source.data() + shift + i * sizeof(T), &value, sizeof value);
          expected[i] = s == 0 ? value : combine(expected[i], value);
        }
        memory.push_back(std::move(source));
        from.push_back(memory.back().data() + shift);
      }
      std::vector<std::byte> other(count * sizeof(T) + shift + 1, std::byte{0x5a});
      void* const to[] = {memory[0].data() + shift, other.data() + shift};
      kernel({to, 2, from.data(), sources, count});
      for (const void* destination : to)
        for (std::size_t i = 0; i < count; ++i) {
          T found;
          std::memcpy(static_cast<void*>(&found), static_cast<const std::byte*>(destination) + i * sizeof(T),
                      sizeof found);
          ASSERT_TRUE(isSame(found, expected[i])) << sources << " sources, count " << count << ", element " << i;
        }
      ASSERT_EQ(other.back(), std::byte{0x5a});
    }
}

/// The kernel of this instruction set, on aligned memory, and through copies on memory that is not.
template <class T>
void checkBoth(const KernelTable& table, taccDataType_t type, taccRedOp_t op,
               const std::function<T(std::mt19937_64&)>& draw, const std::function<T(T, T)>& combine,
               const std::function<bool(T, T)>& isSame) {
  ASSERT_NE(table.reduce[type][op], nullptr);
  for (const std::size_t shift : {0, 1}) {
    SCOPED_TRACE(fmt::format("{} {} {} shift {}", table.isa, nameOf(type), nameOf(op), shift));
    check<T>({table.reduce[type][op], type}, draw, combine, isSame, shift);
  }
}

template <class T>
void checkIntegers(const KernelTable& table, taccDataType_t type) {
  const auto draw = [](std::mt19937_64& random) { return static_cast<T>(random() % 3 == 0 ? 0 : random()); };
  const auto isSame = [](T a, T b) { return a == b; };
  const auto one = [&](taccRedOp_t op, const std::function<T(T, T)>& combine) {
    checkBoth<T>(table, type, op, draw, combine, isSame);
  };
  // One source is copied as it is, so a truth is what it was.
  one(taccLogicalAnd, [](T a, T b) { return static_cast<T>(a != 0 && b != 0); });
  one(taccLogicalOr, [](T a, T b) { return static_cast<T>(a != 0 || b != 0); });
  one(taccLogicalXor, [](T a, T b) { return static_cast<T>((a != 0) != (b != 0)); });
  if (type == taccBool) return;
  one(taccBitAnd, [](T a, T b) { return static_cast<T>(a & b); });
  one(taccBitOr, [](T a, T b) { return static_cast<T>(a | b); });
  one(taccBitXor, [](T a, T b) { return static_cast<T>(a ^ b); });
  if (sizeof(T) != 2) return;
  one(taccSum, [](T a, T b) { return static_cast<T>(a + b); });
  one(taccProd, [](T a, T b) { return static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b)); });
  one(taccMax, [](T a, T b) { return std::max(a, b); });
  one(taccMin, [](T a, T b) { return std::min(a, b); });
}

template <class T>
void checkComplex(const KernelTable& table, taccDataType_t type) {
  using C = std::complex<T>;
  const auto draw = [](std::mt19937_64& random) {
    std::uniform_real_distribution<T> any(T(-1.5), T(1.5));
    return C(any(random), any(random));
  };
  const auto isSame = [](C a, C b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  checkBoth<C>(
      table, type, taccSum, draw, [](C a, C b) { return a + b; }, isSame);
  checkBoth<C>(
      table, type, taccProd, draw,
      [](C a, C b) {
        // Rounded one by one: no compiler may make one operation of two here.
        const volatile T rr = a.real() * b.real(), ii = a.imag() * b.imag();
        const volatile T ri = a.real() * b.imag(), ir = a.imag() * b.real();
        return C(rr - ii, ri + ir);
      },
      isSame);
}

template <class T>
void checkPairs(const KernelTable& table, taccDataType_t type) {
  using P = Pair<T>;
  const auto draw = [](std::mt19937_64& random) {
    P pair{};
    pair.value = static_cast<T>(static_cast<int>(random() % 9) - 4);
    pair.index = static_cast<std::int32_t>(random() % 1000) - 500;
    return pair;
  };
  const auto isSame = [](P a, P b) { return a.value == b.value && a.index == b.index; };
  checkBoth<P>(
      table, type, taccMinLoc, draw,
      [](P a, P b) { return b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a; }, isSame);
  checkBoth<P>(
      table, type, taccMaxLoc, draw,
      [](P a, P b) { return a.value < b.value || (b.value == a.value && b.index < a.index) ? b : a; }, isSame);
}

TEST(Loops, everyInstructionSetAgreesWithPlainLoops) {
  for (const Isa& isa : availableIsas()) {
    const KernelTable table = makeKernelTable(isa);
    checkIntegers<std::uint8_t>(table, taccBool);
    checkIntegers<std::int8_t>(table, taccInt8);
    checkIntegers<std::uint8_t>(table, taccUint8);
    checkIntegers<std::int16_t>(table, taccInt16);
    checkIntegers<std::uint16_t>(table, taccUint16);
    checkIntegers<std::int32_t>(table, taccInt32);
    checkIntegers<std::uint32_t>(table, taccUint32);
    checkIntegers<std::int64_t>(table, taccInt64);
    checkIntegers<std::uint64_t>(table, taccUint64);
    checkComplex<float>(table, taccComplex64);
    checkComplex<double>(table, taccComplex128);
    checkPairs<float>(table, taccFloatInt);
    checkPairs<double>(table, taccDoubleInt);
    checkPairs<std::int64_t>(table, taccLongInt);
    checkPairs<std::int32_t>(table, taccIntInt);
    checkPairs<std::int16_t>(table, taccShortInt);
    if (HasFatalFailure()) return;
  }
}

TEST(Loops, everyTypeHasItsOperations) {
  const KernelTable table = makeKernelTable(chooseIsa());
  for (int type = 0; type < taccNumTypes; ++type)
    for (int op = 0; op < taccNumOps; ++op) {
      const auto asType = static_cast<taccDataType_t>(type);
      const auto asOp = static_cast<taccRedOp_t>(op);
      EXPECT_EQ(table.reduce[type][op] != nullptr, hasOperation(asType, asOp)) << nameOf(asType) << " " << nameOf(asOp);
    }
}

TEST(Loops, unalignedNumbersAreReducedAsOthers) {
  for (const Isa& isa : availableIsas()) {
    const KernelTable table = makeKernelTable(isa);
    const auto draw = [](std::mt19937_64& random) { return static_cast<float>(random() % 1000); };
    check<float>(
        {table.reduce[taccFloat32][taccSum], taccFloat32}, draw, [](float a, float b) { return a + b; },
        [](float a, float b) { return a == b; }, 3);
  }
}

}  // namespace
}  // namespace tacc::test
