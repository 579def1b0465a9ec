// Gathers and scatters of unequal blocks, in which ranks that have given what they have go on: rows of calls that are
// drawn alike on all ranks, short and long blocks in one call, at any pace of the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "rank_harness.hpp"
#include "shared_by_ranks.hpp"
#include "support/settings.hpp"

namespace tacc::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Byte i of what `rank` gives, or is given, in a call.
std::uint8_t valueOf(int call, int rank, std::size_t i) {
  return static_cast<std::uint8_t>(at(call) * 37 + at(rank) * 101 + i * 3 + i / 251);
}

Bytes blockOf(int call, int rank, std::size_t bytes) {
  Bytes block(bytes);
  for (std::size_t i = 0; i < bytes; ++i) block[i] = valueOf(call, rank, i);
  return block;
}

/// Lengths in bytes: none, in a line, at its end, in a post, at the end of one, and longer ones.
std::size_t drawLength(std::mt19937& random) {
  constexpr std::size_t post = 32 * 1024;
  switch (random() % 8) {
    case 0:
      return 0;
    case 1:
      return 1 + random() % 8;
    case 2:
      return 35 + random() % 16;
    case 3:
      return 60 + random() % 2000;
    case 4:
      return random() % post;
    case 5:
      return post - 70 + random() % 80;
    case 6:
      return post + random() % 100'000;
    default:
      return 12;
  }
}

struct Row {
  taccComm_t comm;
  int rank, ranks;

  std::vector<std::size_t> offsetsOf(const std::vector<std::size_t>& lengths, std::size_t gap) const {
    std::vector<std::size_t> offsets(lengths.size());
    std::size_t end = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      offsets[r] = end;
      end += lengths[r] + gap;
    }
    return offsets;
  }

  void gather(int call, int root, const std::vector<std::size_t>& lengths, std::size_t gap) const {
    const Bytes mine = blockOf(call, rank, lengths[at(rank)]);
    const std::vector<std::size_t> offsets = offsetsOf(lengths, gap);
    Bytes all(rank == root ? offsets.back() + lengths.back() : 0, 0xA5);
    expectSuccess(taccGatherV(mine.data(), mine.size(), all.data(), lengths.data(), offsets.data(), taccUint8, root,
                              comm, nullptr),
                  comm);
    if (rank != root) return;
    Bytes expected(all.size(), 0xA5);
    for (int from = 0; from < ranks; ++from)
      for (std::size_t i = 0; i < lengths[at(from)]; ++i) expected[offsets[at(from)] + i] = valueOf(call, from, i);
    ASSERT_EQ(all, expected) << "gatherv " << call << " of " << ranks << " ranks, root " << root;
  }

  void scatter(int call, int root, const std::vector<std::size_t>& lengths, std::size_t gap) const {
    const std::vector<std::size_t> offsets = offsetsOf(lengths, gap);
    Bytes all(rank == root ? offsets.back() + lengths.back() : 0, 0xA5), mine(lengths[at(rank)]);
    for (int to = 0; rank == root && to < ranks; ++to)
      for (std::size_t i = 0; i < lengths[at(to)]; ++i) all[offsets[at(to)] + i] = valueOf(call, to, i);
    expectSuccess(taccScatterV(all.data(), lengths.data(), offsets.data(), mine.data(), mine.size(), taccUint8, root,
                               comm, nullptr),
                  comm);
    all.assign(all.size(), 0);  // what was posted must be a copy
    ASSERT_EQ(mine, blockOf(call, rank, lengths[at(rank)]))
        << "scatterv " << call << " of " << ranks << " ranks, root " << root;
  }

  /// A message of some length to the next rank, as the program may send itself between such calls.
  void pass(int call, std::size_t bytes) const {
    const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    const Bytes mine = blockOf(call, rank, bytes);
    Bytes theirs(bytes);
    expectSuccess(taccGroupStart(), comm);
    expectSuccess(taccSend(mine.data(), bytes, taccUint8, to, comm, nullptr), comm);
    expectSuccess(taccRecv(theirs.data(), bytes, taccUint8, from, comm, nullptr), comm);
    expectSuccess(taccGroupEnd(), comm);
    ASSERT_EQ(theirs, blockOf(call, from, bytes)) << "message " << call;
  }

  void sum(int call, std::size_t count) const {
    std::vector<std::int32_t> values(count, call + rank);
    expectSuccess(taccAllReduce(values.data(), values.data(), count, taccInt32, taccSum, comm, nullptr), comm);
    for (const std::int32_t value : values) ASSERT_EQ(value, ranks * call + ranks * (ranks - 1) / 2) << call;
  }
};

void runDrawnRow(const Row& row, int calls, unsigned seed) {
  std::mt19937 random(seed), own(seed + static_cast<unsigned>(row.rank));
  int root = 0;
  bool isGather = true;
  std::vector<std::size_t> lengths(at(row.ranks));
  for (int call = 0; call < calls && !testing::Test::HasFailure(); ++call) {
    // Now and then another root, another call, other lengths: rows of calls that are alike have ways of their own.
    if (random() % 4 == 0) root = static_cast<int>(random() % at(row.ranks));
    if (random() % 3 == 0) isGather = !isGather;
    if (random() % 2 == 0)
      for (std::size_t& length : lengths) length = drawLength(random);
    else if (random() % 3 == 0)
      lengths.assign(lengths.size(), drawLength(random));
    const std::size_t gap = random() % 3 == 0 ? random() % 100 : 0;
    switch (random() % 12) {
      case 0:
        row.pass(call, drawLength(random));
        break;
      case 1:
        row.sum(call, 1 + random() % 5000);
        break;
      default:
        if (isGather)
          row.gather(call, root, lengths, gap);
        else
          row.scatter(call, root, lengths, gap);
    }
    if (own() % 24 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 500));
  }
}

class UnequalRooted : public testing::TestWithParam<std::tuple<RankKind, int>> {};

TEST_P(UnequalRooted, drawnRowsOfCalls) {
  const auto [kind, ranks] = GetParam();
  for (unsigned seed = 1; seed <= 3 && !HasFailure(); ++seed)
    runRanks(kind, ranks, [ranks = ranks, seed](taccComm_t comm, int rank) {
      runDrawnRow({comm, rank, ranks}, isQuick() ? 60 : 400, seed);
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, UnequalRooted,
                         testing::Combine(testing::Values(RankKind::processes, RankKind::threads),
                                          testing::Values(2, 3, 5)),
                         [](const auto& suite) {
                           return (std::get<0>(suite.param) == RankKind::processes ? "processes" : "threads") +
                                  std::to_string(std::get<1>(suite.param));
                         });

/// A rank that waits until others have returned from a call which it has not made yet.
void expectAhead(bool isGather, std::size_t bytes) {
  constexpr int ranks = 3, root = 1, rounds = 8;
  const SharedByRanks<std::atomic<int>> returned;
  runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
    const Row row{comm, rank, ranks};
    const bool isLate = isGather ? rank == root : rank != root;
    constexpr int others = ranks - 1;
    for (int call = 0; call < rounds; ++call) {
      expectSuccess(taccBarrier(comm, nullptr), comm);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      const int wanted = (call + 1) * (isGather ? others : 1);
      while (isLate && (*returned).load() < wanted && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ASSERT_TRUE(!isLate || (*returned).load() >= wanted) << "nobody goes on, call " << call;
      const std::vector<std::size_t> lengths(ranks, bytes);
      if (isGather)
        row.gather(call, root, lengths, 0);
      else
        row.scatter(call, root, lengths, 0);
      if (!isLate) ++*returned;
    }
  });
}

TEST(UnequalAhead, whoHasGivenItsBlockGoesOn) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, std::size_t{500}, std::size_t{9000}}) {
    expectAhead(true, bytes);
    expectAhead(false, bytes);
  }
}

/// Calls of all collectives in a drawn order, each as the last one of its kind, or with one length more: what is kept
/// of one is not taken for another's.
TEST(UnequalRows, repeatCallsAcrossDifferentOnes) {
  for (const int ranks : {2, 3, 5})
    runRanks(RankKind::processes, ranks, [ranks](taccComm_t comm, int rank) {
      using Counts = std::vector<std::size_t>;
      constexpr std::int8_t untouched = -77;
      std::mt19937 random(7);
      for (int call = 0; call < 400; ++call) {
        const auto what = random() % 5;
        const std::size_t last = random() % 8 == 0 ? 2 : 1;  // what the highest rank gives or takes
        const int root = static_cast<int>(random() % 2);
        const auto valueAt = [call](int from, int to) { return static_cast<std::int8_t>(call + 40 * from + 9 * to); };
        Counts counts(at(ranks), 1), places;
        counts.back() = last;
        for (int r = 0; r < ranks; ++r) places.push_back(at(2 * r));
        const std::size_t own = counts[at(rank)];
        std::vector<std::int8_t> send(at(2 * ranks)), receive(at(2 * ranks), untouched);
        for (int to = 0; to < ranks; ++to) send[at(2 * to)] = send[at(2 * to) + 1] = valueAt(rank, to);
        const auto expectFrom = [&](int from, int to, std::size_t place) {
          ASSERT_EQ(receive[place], valueAt(from, to)) << "call " << call << ", kind " << what << ", from " << from;
        };
        if (what == 0) {
          const Counts ones(at(ranks), rank + 1 == ranks ? last : 1);
          expectSuccess(taccAllToAllV(send.data(), counts.data(), places.data(), receive.data(), ones.data(),
                                      places.data(), taccInt8, comm, nullptr),
                        comm);
          for (int from = 0; from < ranks; ++from) expectFrom(from, rank, at(2 * from));
        } else if (what == 1) {
          expectSuccess(
              taccAllGatherV(send.data(), receive.data(), counts.data(), places.data(), taccInt8, comm, nullptr), comm);
          for (int from = 0; from < ranks; ++from) expectFrom(from, 0, at(2 * from));
        } else if (what == 2) {
          expectSuccess(taccGatherV(send.data(), own, receive.data(), counts.data(), places.data(), taccInt8, root,
                                    comm, nullptr),
                        comm);
          for (int from = 0; from < ranks && rank == root; ++from) expectFrom(from, 0, at(2 * from));
        } else if (what == 3) {
          expectSuccess(taccScatterV(send.data(), counts.data(), places.data(), receive.data(), own, taccInt8, root,
                                     comm, nullptr),
                        comm);
          expectFrom(root, rank, 0);
        } else {
          expectSuccess(taccReduceScatterV(send.data(), receive.data(), counts.data(), places.data(), taccInt8, taccMax,
                                           comm, nullptr),
                        comm);
          std::int8_t most = INT8_MIN;
          for (int from = 0; from < ranks; ++from) most = std::max(most, valueAt(from, rank));
          ASSERT_EQ(receive[0], most) << "call " << call;
        }
      }
    });
}

}  // namespace
}  // namespace tacc::test
