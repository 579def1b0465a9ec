// Short calls that are as the last one of their collective are not checked anew: what is wrong must be found all the
// same, and what differs only a little from the last one must not be taken for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rank_harness.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

constexpr int ranks = 3;

struct ShortCallsOf : testing::TestWithParam<RankKind> {};

/// One element for a broadcast, or a block of some elements of each rank for an allgather, drawn alike on all ranks.
struct Drawn {
  int collective;  // 0: allreduce, 1: broadcast, 2: allgather, 3: reduce, 4: scatter
  std::size_t count;
  taccDataType_t type;  // of four or of eight bytes
  taccRedOp_t op;
  int root;
  bool inPlace;
};

Drawn draw(std::mt19937& random) {
  const auto below = [&](unsigned n) { return random() % n; };
  return {static_cast<int>(below(5)),
          1 + below(2),
          below(2) != 0 ? taccInt32 : taccInt64,
          below(2) != 0 ? taccSum : taccMax,
          static_cast<int>(below(ranks)),
          below(4) == 0};
}

template <class T>
T given(int call, int rank, std::size_t i) {
  return static_cast<T>(call * 7 + rank * 100 + static_cast<int>(i));
}

template <class T>
void runDrawn(const Drawn& drawn, int call, taccComm_t comm, int rank) {
  const std::size_t n = drawn.count, all = n * ranks, mine = static_cast<std::size_t>(rank) * n;
  const bool isRoot = rank == drawn.root;
  std::vector<T> send(all), receive(all, T{-1});
  for (std::size_t i = 0; i < all; ++i) send[i] = given<T>(call, rank, i);
  const auto reduced = [&](std::size_t i) {
    T result = given<T>(call, 0, i);
    for (int r = 1; r < ranks; ++r)
      result = drawn.op == taccSum ? static_cast<T>(result + given<T>(call, r, i)) : given<T>(call, r, i);
    return result;
  };
  taccResult_t result = taccSuccess;
  std::vector<T>& to = drawn.inPlace ? send : receive;
  switch (drawn.collective) {
    case 0:
      result = taccAllReduce(send.data(), to.data(), n, drawn.type, drawn.op, comm, nullptr);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(to[i], reduced(i)) << "allreduce " << call;
      break;
    case 1:
      result = taccBcast(send.data(), n, drawn.type, drawn.root, comm, nullptr);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(send[i], given<T>(call, drawn.root, i)) << "broadcast " << call;
      break;
    case 2: {
      T* const own = drawn.inPlace ? receive.data() + mine : send.data();
      for (std::size_t i = 0; i < n; ++i) own[i] = given<T>(call, rank, i);
      result = taccAllGather(own, receive.data(), n, drawn.type, comm, nullptr);
      for (int r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < n; ++i)
          EXPECT_EQ(receive[static_cast<std::size_t>(r) * n + i], given<T>(call, r, i)) << "allgather " << call;
      break;
    }
    case 3:
      result =
          taccReduce(send.data(), isRoot ? to.data() : nullptr, n, drawn.type, drawn.op, drawn.root, comm, nullptr);
      for (std::size_t i = 0; isRoot && i < n; ++i) EXPECT_EQ(to[i], reduced(i)) << "reduce " << call;
      break;
    default:
      result = taccScatter(isRoot ? send.data() : nullptr, receive.data(), n, drawn.type, drawn.root, comm, nullptr);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_EQ(receive[i], given<T>(call, drawn.root, mine + i)) << "scatter " << call;
  }
  expectSuccess(result, comm);
}

TEST_P(ShortCallsOf, DrawnOnesThatAreNearlyAlikeAreRight) {
  runRanks(GetParam(), ranks, [](taccComm_t comm, int rank) {
    std::mt19937 random(4711);
    Drawn last = draw(random);
    for (int call = 0; call < 1500; ++call) {
      if (random() % 2 == 0) last = draw(random);
      if (last.type == taccInt32)
        runDrawn<std::int32_t>(last, call, comm, rank);
      else
        runDrawn<std::int64_t>(last, call, comm, rank);
      if (testing::Test::HasFailure()) return;
    }
  });
}

/// A call that is wrong is refused before and after one that is right and differs in this alone.
TEST_P(ShortCallsOf, WrongOnesAreRefusedAfterRightOnes) {
  runRanks(GetParam(), ranks, [](taccComm_t comm, int) {
    std::array<std::int32_t, 4 * ranks> a{}, b{};
    const auto reduce = [&](const void* send, void* receive, std::size_t count, taccDataType_t type, taccRedOp_t op) {
      return taccAllReduce(send, receive, count, type, op, comm, nullptr);
    };
    const auto right = [&] { return reduce(a.data(), b.data(), 2, taccInt32, taccSum); };
    // Of no exscan before, and of nothing: nothing is known of one.
    expectSuccess(taccExscan(nullptr, nullptr, 0, taccInt8, taccSum, comm, nullptr), comm);
    struct Wrong {
      std::function<taccResult_t()> call;
      const char* says;
    };
    const Wrong wrong[] = {
        // Of no collective before: nothing is known of one.
        {[&] { return taccScan(a.data(), b.data(), SIZE_MAX, taccInt8, taccSum, comm, nullptr); }, "too large"},
        {[&] { return reduce(nullptr, b.data(), 2, taccInt32, taccSum); }, "sendbuff is NULL"},
        {[&] { return reduce(a.data(), nullptr, 2, taccInt32, taccSum); }, "recvbuff is NULL"},
        {[&] { return reduce(a.data(), a.data() + 1, 2, taccInt32, taccSum); }, "overlap"},
        {[&] { return reduce(a.data() + 1, a.data(), 2, taccInt32, taccSum); }, "overlap"},
        {[&] { return reduce(a.data(), b.data(), SIZE_MAX, taccInt32, taccSum); }, "too large"},
        {[&] { return reduce(a.data(), b.data(), SIZE_MAX, taccInt8, taccSum); }, "too large"},
        {[&] { return reduce(a.data(), b.data(), 2, static_cast<taccDataType_t>(taccNumTypes), taccSum); }, "datatype"},
        {[&] { return reduce(a.data(), b.data(), 2, taccInt32, static_cast<taccRedOp_t>(taccNumOps + 1)); }, "op"},
        {[&] { return taccBcast(a.data(), 2, taccInt32, ranks, comm, nullptr); }, "root"},
        {[&] { return taccBcast(a.data(), 2, taccInt32, INT_MIN, comm, nullptr); }, "root"},
        {[&] { return taccAllGather(b.data() + 1, b.data(), 2, taccInt32, comm, nullptr); }, "overlap"},
    };
    for (int round = 0; round < 3; ++round)
      for (const Wrong& one : wrong) {
        EXPECT_EQ(one.call(), taccInvalidArgument) << one.says;
        EXPECT_THAT(taccGetLastError(comm), HasSubstr(one.says));
        expectSuccess(right(), comm);
        expectSuccess(right(), comm);
        expectSuccess(taccBcast(a.data(), 2, taccInt32, 1, comm, nullptr), comm);
        expectSuccess(taccAllGather(a.data(), b.data(), 2, taccInt32, comm, nullptr), comm);
      }
  });
}

TEST_P(ShortCallsOf, DifferentOnesAreTold) {
  runRanks(GetParam(), 2, [](taccComm_t comm, int rank) {
    std::array<float, 4> a{}, b{};
    for (int call = 0; call < 3; ++call)
      expectSuccess(taccAllReduce(a.data(), b.data(), 2, taccFloat32, taccSum, comm, nullptr), comm);
    EXPECT_NE(taccAllReduce(a.data(), b.data(), rank == 0 ? 2 : 3, taccFloat32, taccSum, comm, nullptr), taccSuccess);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("must make the same calls"));
  });
}

/// What is said of the choice holds for calls that are made again.
TEST(ShortCalls, AreAsForcedWheneverTheyAreMade) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.algorithm = "ring";
  runRanks(
      RankKind::processes, ranks,
      [](taccComm_t comm, int rank) {
        std::array<float, 8> a{}, b{};
        a.fill(static_cast<float>(rank));
        for (int call = 0; call < 3; ++call) {
          expectSuccess(taccAllReduce(a.data(), b.data(), a.size(), taccFloat32, taccSum, comm, nullptr), comm);
          EXPECT_STREQ(taccCommLastAlgorithm(comm), "ring");
          EXPECT_EQ(b[7], 3);
        }
      },
      config);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShortCallsOf, testing::Values(RankKind::processes, RankKind::threads),
                         [](const auto& suite) {
                           return std::string(suite.param == RankKind::threads ? "threads" : "processes");
                         });

}  // namespace
}  // namespace tacc::test
