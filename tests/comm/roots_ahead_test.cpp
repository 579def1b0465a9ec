// Roots that go on with the next call before the others have come to it: of longer broadcasts and scatters, made again
// and again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "rank_harness.hpp"
#include "shared_by_ranks.hpp"
#include "transports/shm/node_segment.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t elements = 24 * 1024;  // 96 KiB: more than a post holds, several chunks
constexpr int settlingCalls = 400;           // until every way to move data was tried

using Vector = std::vector<std::int32_t>;

std::int32_t valueAt(int call, std::size_t i) { return static_cast<std::int32_t>(i * 7919 + 31 * call); }

void fill(Vector& vector, int call) {
  for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = valueAt(call, i);
}

/// `first`: of the numbers that `vector` holds a part of.
void expectOf(const Vector& vector, int call, std::size_t first = 0) {
  for (std::size_t i = 0; i < vector.size(); ++i) ASSERT_EQ(vector[i], valueAt(call, first + i)) << call << ", " << i;
}

void broadcast(Vector& vector, int root, taccComm_t comm) {
  expectSuccess(taccBcast(vector.data(), vector.size(), taccInt32, root, comm, nullptr), comm);
}

/// What is read through the kernel has to be met for.
class RootsAhead : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TACC_CMA", "off", 1); }
  void TearDown() override { ::unsetenv("TACC_CMA"); }
};

TEST_F(RootsAhead, returnBeforeTheOthersCome) {
  constexpr int rounds = 16;
  constexpr std::chrono::milliseconds patience{250};
  const SharedByRanks<std::atomic<int>> returned;  // rounds that the root is through; new memory holds 0
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    Vector vector(elements);
    for (int call = 0; call < settlingCalls; ++call) broadcast(vector, 0, comm);
    int ahead = 0;
    for (int round = 1; round <= rounds; ++round) {
      if (rank == 0) fill(vector, round);
      expectSuccess(taccBarrier(comm, nullptr), comm);
      const auto end = std::chrono::steady_clock::now() + patience;
      while (rank != 0 && (*returned).load() < round && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ahead += (*returned).load() >= round ? 1 : 0;
      broadcast(vector, 0, comm);
      if (rank == 0) *returned = round;
      expectOf(vector, round);
    }
    // In some rounds they meet, to tell how long the calls took.
    if (rank != 0) {
      EXPECT_GE(ahead, rounds / 4);
    }
  });
}

/// Posts of a few hundred bytes take no more room than they need, so as many calls as there are lines may be ahead.
TEST(RanksAhead, returnFromShortUnequalCallsBeforeTheOthersCome) {
  constexpr int rounds = 12, calls = callSlots - 4;
  constexpr std::chrono::milliseconds patience{250};
  const SharedByRanks<std::atomic<int>> returned;  // rounds that who gives is through; new memory holds 0
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    std::vector<std::int8_t> given(4096), taken(4096);
    int ahead = 0;
    for (int round = 1; round <= rounds; ++round) {
      const bool isGather = round % 2 == 0;
      const auto bytes = static_cast<std::size_t>(40 + 31 * round);
      const int giver = 1, root = isGather ? 0 : 1;
      const std::vector<std::size_t> counts = {bytes, isGather ? bytes : 3}, offsets = {0, bytes};
      expectSuccess(taccBarrier(comm, nullptr), comm);
      const auto end = std::chrono::steady_clock::now() + patience;
      while (rank != giver && (*returned).load() < round && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ahead += (*returned).load() >= round ? 1 : 0;
      for (int call = 0; call < calls; ++call) {
        const auto value = static_cast<std::int8_t>(7 * call + round);
        std::ranges::fill(given, value);
        const taccResult_t result =
            isGather ? taccGatherV(given.data(), bytes, taken.data(), counts.data(), offsets.data(), taccInt8, root,
                                   comm, nullptr)
                     : taccScatterV(given.data(), counts.data(), offsets.data(), taken.data(),
                                    counts[static_cast<std::size_t>(rank)], taccInt8, root, comm, nullptr);
        expectSuccess(result, comm);
        if (rank == giver) continue;
        const auto* const from = taken.data() + (isGather ? bytes : 0);
        ASSERT_TRUE(std::all_of(from, from + bytes, [&](std::int8_t one) { return one == value; })) << call;
      }
      if (rank == giver) *returned = round;
    }
    if (rank == 0) {
      EXPECT_GE(ahead, rounds - 2);
    }
  });
}

/// Slots go round among calls of one kind, and start anew with others. Ranks come late now and then.
TEST_F(RootsAhead, nobodyReadsWhatBelongsToAnotherCall) {
  for (const int ranks : {2, 3, 4}) {
    runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
      const auto isLate = [&](int call) { return (call * 2654435761U >> 24) % 64 == static_cast<unsigned>(rank); };
      const auto all = elements * static_cast<std::size_t>(ranks);
      Vector vector(elements), whole(all), block(elements), sums(elements), longer(3 * elements);
      for (int call = 0; call < 3 * settlingCalls; ++call) {
        if (isLate(call)) std::this_thread::sleep_for(std::chrono::microseconds(300));
        const int root = call < settlingCalls ? 0 : 1, kind = call / 20 % 4;
        if (kind == 0 || kind == 2) {
          Vector& buffer = kind == 0 ? vector : longer;
          if (rank == root) fill(buffer, call);
          broadcast(buffer, root, comm);
          ASSERT_NO_FATAL_FAILURE(expectOf(buffer, call));
        } else if (kind == 1) {
          if (rank == root) fill(whole, call);
          expectSuccess(taccScatter(whole.data(), block.data(), elements, taccInt32, root, comm, nullptr), comm);
          ASSERT_NO_FATAL_FAILURE(expectOf(block, call, elements * static_cast<std::size_t>(rank)));
        } else {
          if (rank == root) fill(vector, call);
          broadcast(vector, root, comm);
          if (call % 5 == 0)
            expectSuccess(taccAllReduce(vector.data(), sums.data(), elements, taccInt32, taccMax, comm, nullptr), comm);
          ASSERT_NO_FATAL_FAILURE(expectOf(call % 5 == 0 ? sums : vector, call));
        }
      }
    });
  }
}

/// What differs is still told, by who finds it, in words for all.
TEST_F(RootsAhead, aCallThatDiffersIsTold) {
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    Vector vector(elements);
    for (int call = 0; call < settlingCalls; ++call) broadcast(vector, 0, comm);
    taccResult_t result = taccSuccess;
    for (int call = 0; call < 20 && result == taccSuccess; ++call)
      result = taccBcast(vector.data(), rank == 0 ? elements : elements / 2, taccInt32, 0, comm, nullptr);
    EXPECT_NE(result, taccSuccess);
    EXPECT_NE(std::string(taccGetLastError(comm)).find("same calls"), std::string::npos) << taccGetLastError(comm);
  });
}

}  // namespace
}  // namespace tacc::test
