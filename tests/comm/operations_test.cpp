// Operations and types beside those of real numbers, unaligned buffers, and reductions of the program, on real ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "algorithms/plan.hpp"
#include "core/types.hpp"
#include "rank_harness.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

template <class T>
using Combine = std::function<T(T, T)>;

/// What `collective` leaves on `rank`, from all ranks' inputs; empty: nothing.
template <class T>
std::vector<T> expectedOf(Collective collective, int rank, const std::vector<std::vector<T>>& inputs,
                          const Combine<T>& combine) {
  const bool isExclusive = collective == Collective::exscan;
  const std::size_t behind =
      !isPrefix(collective) ? inputs.size() : static_cast<std::size_t>(rank + (isExclusive ? 0 : 1));
  if (behind == 0) return {};
  std::vector<T> sum = inputs[0];
  for (std::size_t from = 1; from < behind; ++from)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = combine(sum[i], inputs[from][i]);
  return sum;
}

taccResult_t run(Collective collective, const void* send, void* receive, std::size_t count, taccDataType_t type,
                 taccRedOp_t op, taccComm_t comm) {
  if (collective == Collective::scan) return taccScan(send, receive, count, type, op, comm, nullptr);
  if (collective == Collective::exscan) return taccExscan(send, receive, count, type, op, comm, nullptr);
  return taccAllReduce(send, receive, count, type, op, comm, nullptr);
}

/// All collectives that reduce to every rank, at several lengths, the buffers `shift` bytes off.
template <class T, class Draw, class Same>
void check(taccComm_t comm, int rank, int ranks, taccDataType_t type, taccRedOp_t op, const Draw& draw,
           const Combine<T>& combine, const Same& isSame) {
  static_assert(sizeof(T) <= maxElementBytes);
  ASSERT_EQ(sizeof(T), sizeOf(type));
  // An operator of the program has a number of its own on each rank.
  std::mt19937 random(static_cast<unsigned>(type * 31 + (op < taccNumOps ? op : taccNumOps)));
  for (const Collective collective : {Collective::allReduce, Collective::scan, Collective::exscan})
    for (const std::size_t count : {std::size_t{1}, std::size_t{13}, std::size_t{3001}, std::size_t{70001}}) {
      std::vector<std::vector<T>> inputs(static_cast<std::size_t>(ranks), std::vector<T>(count));
      for (auto& input : inputs)
        for (T& value : input) value = draw(random);
      // One rank, or none, has buffers that are not aligned.
      const std::size_t shift = static_cast<int>(random() % static_cast<unsigned>(2 * ranks)) == rank ? 1 : 0;
      std::vector<std::byte> send(count * sizeof(T) + 1), receive(count * sizeof(T) + 1);
      std::memcpy(send.data() + shift, inputs[static_cast<std::size_t>(rank)].data(), count * sizeof(T));
      ASSERT_EQ(run(collective, send.data() + shift, receive.data() + shift, count, type, op, comm), taccSuccess)
          << taccGetLastError(comm);
      const std::vector<T> wanted = expectedOf<T>(collective, rank, inputs, combine);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        T found;
        std::memcpy(static_cast<void*>(&found), receive.data() + shift + i * sizeof(T), sizeof(T));
        ASSERT_TRUE(isSame(found, wanted[i])) << nameOf(collective) << " " << nameOf(type) << " " << nameOf(op)
                                              << " count " << count << " element " << i << " rank " << rank;
      }
    }
}

template <class T>
bool isEqual(T a, T b) {
  return a == b;
}

template <class T>
void checkIntegers(taccComm_t comm, int rank, int ranks, taccDataType_t type) {
  const auto draw = [](std::mt19937& random) { return static_cast<T>(random() % 3 == 0 ? 0 : random()); };
  const auto one = [&](taccRedOp_t op, const Combine<T>& combine) {
    check<T>(comm, rank, ranks, type, op, draw, combine, isEqual<T>);
  };
  one(taccLogicalAnd, [](T a, T b) { return static_cast<T>(a != 0 && b != 0); });
  one(taccLogicalOr, [](T a, T b) { return static_cast<T>(a != 0 || b != 0); });
  one(taccLogicalXor, [](T a, T b) { return static_cast<T>((a != 0) != (b != 0)); });
  if (type == taccBool) return;
  one(taccBitAnd, [](T a, T b) { return static_cast<T>(a & b); });
  one(taccBitOr, [](T a, T b) { return static_cast<T>(a | b); });
  one(taccBitXor, [](T a, T b) { return static_cast<T>(a ^ b); });
  one(taccSum, [](T a, T b) { return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); });
  one(taccProd, [](T a, T b) { return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); });
  one(taccMax, [](T a, T b) { return std::max(a, b); });
  one(taccMin, [](T a, T b) { return std::min(a, b); });
}

template <class T>
void checkComplex(taccComm_t comm, int rank, int ranks, taccDataType_t type) {
  using C = std::complex<T>;
  // Small whole numbers: exact in any order.
  const auto draw = [](std::mt19937& random) {
    return C(static_cast<T>(random() % 3) - 1, static_cast<T>(random() % 3) - 1);
  };
  check<C>(
      comm, rank, ranks, type, taccSum, draw, [](C a, C b) { return a + b; }, isEqual<C>);
  check<C>(
      comm, rank, ranks, type, taccProd, draw,
      [](C a, C b) { return C(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()); },
      isEqual<C>);
}

template <class T>
struct Pair {
  T value;
  std::int32_t index;
};

template <class T>
void checkPairs(taccComm_t comm, int rank, int ranks, taccDataType_t type) {
  using P = Pair<T>;
  const auto draw = [](std::mt19937& random) {
    P pair{};
    pair.value = static_cast<T>(static_cast<int>(random() % 7) - 3);
    pair.index = static_cast<std::int32_t>(random() % 100);
    return pair;
  };
  const auto isSame = [](P a, P b) { return a.value == b.value && a.index == b.index; };
  check<P>(
      comm, rank, ranks, type, taccMinLoc, draw,
      [](P a, P b) { return b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a; }, isSame);
  check<P>(
      comm, rank, ranks, type, taccMaxLoc, draw,
      [](P a, P b) { return a.value < b.value || (b.value == a.value && b.index < a.index) ? b : a; }, isSame);
}

void checkEverything(taccComm_t comm, int rank, int ranks) {
  checkIntegers<std::uint8_t>(comm, rank, ranks, taccBool);
  checkIntegers<std::int8_t>(comm, rank, ranks, taccInt8);
  checkIntegers<std::uint8_t>(comm, rank, ranks, taccUint8);
  checkIntegers<std::int16_t>(comm, rank, ranks, taccInt16);
  checkIntegers<std::uint16_t>(comm, rank, ranks, taccUint16);
  checkIntegers<std::int32_t>(comm, rank, ranks, taccInt32);
  checkIntegers<std::uint32_t>(comm, rank, ranks, taccUint32);
  checkIntegers<std::int64_t>(comm, rank, ranks, taccInt64);
  checkIntegers<std::uint64_t>(comm, rank, ranks, taccUint64);
  checkComplex<float>(comm, rank, ranks, taccComplex64);
  checkComplex<double>(comm, rank, ranks, taccComplex128);
  checkPairs<float>(comm, rank, ranks, taccFloatInt);
  checkPairs<double>(comm, rank, ranks, taccDoubleInt);
  checkPairs<std::int64_t>(comm, rank, ranks, taccLongInt);
  checkPairs<std::int32_t>(comm, rank, ranks, taccIntInt);
  checkPairs<std::int16_t>(comm, rank, ranks, taccShortInt);
}

/// x -> a x + b over numbers modulo 2^32: putting one after the other is associative and does not commute.
struct Affine {
  std::uint32_t a, b;
};
Affine compose(Affine first, Affine then) { return {first.a * then.a, first.b * then.a + then.b}; }

struct Counted {
  int calls = 0;
};

void composeAll(void* accumulated, const void* next, size_t count, taccDataType_t datatype, void* context) {
  EXPECT_EQ(datatype, taccUint64);
  ++static_cast<Counted*>(context)->calls;
  for (std::size_t i = 0; i < count; ++i) {
    Affine first{}, then{};
    std::memcpy(&first, static_cast<std::byte*>(accumulated) + i * sizeof(Affine), sizeof(Affine));
    std::memcpy(&then, static_cast<const std::byte*>(next) + i * sizeof(Affine), sizeof(Affine));
    first = compose(first, then);
    std::memcpy(static_cast<std::byte*>(accumulated) + i * sizeof(Affine), &first, sizeof(Affine));
  }
}

void checkUserReduction(taccComm_t comm, int rank, int ranks) {
  Counted counted;
  taccRedOp_t op = taccSum;
  ASSERT_EQ(taccRedOpCreateUser(&op, composeAll, &counted, 0, comm), taccSuccess) << taccGetLastError(comm);
  const auto draw = [](std::mt19937& random) {
    const Affine drawn{static_cast<std::uint32_t>(random()) | 1U, static_cast<std::uint32_t>(random())};
    std::uint64_t bits = 0;
    std::memcpy(&bits, &drawn, sizeof bits);
    return bits;
  };
  const auto combine = [](std::uint64_t x, std::uint64_t y) {
    Affine first{}, then{};
    std::memcpy(&first, &x, sizeof first);
    std::memcpy(&then, &y, sizeof then);
    first = compose(first, then);
    std::memcpy(&x, &first, sizeof x);
    return x;
  };
  check<std::uint64_t>(comm, rank, ranks, taccUint64, op, draw, combine, isEqual<std::uint64_t>);
  if (ranks > 1) {
    EXPECT_GT(counted.calls, 0);
  }
  EXPECT_EQ(taccRedOpDestroy(op, comm), taccSuccess);
}

class Operations : public testing::TestWithParam<int> {};

TEST_P(Operations, everyTypeAndOperation) {
  runRanks(RankKind::processes, GetParam(), [](taccComm_t comm, int rank) { checkEverything(comm, rank, GetParam()); });
}

TEST_P(Operations, reductionsOfTheProgramInTheOrderOfTheRanks) {
  runRanks(RankKind::processes, GetParam(),
           [](taccComm_t comm, int rank) { checkUserReduction(comm, rank, GetParam()); });
  runRanks(RankKind::threads, GetParam(),
           [](taccComm_t comm, int rank) { checkUserReduction(comm, rank, GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Operations, testing::Values(1, 2, 3, 5),
                         [](const auto& suite) { return std::to_string(suite.param); });

TEST(ScanOnOneHost, ofManyRanks) {
  runRanks(RankKind::threads, 11, [](taccComm_t comm, int rank) { checkUserReduction(comm, rank, 11); });
}

class HostOperations : public HostRanksTest {};

TEST_P(HostOperations, everyTypeAndOperation) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    checkPairs<double>(comm, rank, ranks(), taccDoubleInt);
    checkComplex<double>(comm, rank, ranks(), taccComplex128);
    checkIntegers<std::int16_t>(comm, rank, ranks(), taccInt16);
    checkIntegers<std::uint8_t>(comm, rank, ranks(), taccBool);
    checkUserReduction(comm, rank, ranks());
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, HostOperations, usualLayouts(), layoutName);

}  // namespace
}  // namespace tacc::test
