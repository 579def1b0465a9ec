// Collectives whose blocks have unequal lengths, with drawn counts and places, against their definition.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithms/registry.hpp"
#include "rank_harness.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

using Counts = std::vector<std::size_t>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Element i of what rank `from` has for rank `to`.
int valueOf(int from, int to, std::size_t i) { return static_cast<int>((at(from) * 31 + at(to) * 17 + i * 7) % 1009); }

/// Blocks one behind the other with drawn gaps and in a drawn order, or without; `elements` with what is around them.
struct Places {
  Counts offsets;
  std::size_t elements = 0;
  bool isDense = false;

  Places(const Counts& counts, std::mt19937& random) : offsets(counts.size()) {
    isDense = random() % 3 == 0;
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!isDense) std::ranges::shuffle(order, random);
    for (const std::size_t b : order) {
      if (!isDense) elements += random() % 5;
      offsets[b] = elements;
      elements += counts[b];
    }
  }
  const std::size_t* displacements() const { return isDense ? nullptr : offsets.data(); }
};

constexpr int untouched = -77;

/// What all ranks draw alike for one round.
struct Round {
  std::vector<Counts> counts;  // [from][to]
  int root;
  bool inPlace;
  taccRedOp_t op;
};

Round drawRound(std::mt19937& random, int ranks) {
  Round round{std::vector<Counts>(at(ranks), Counts(at(ranks))), static_cast<int>(random() % at(ranks)),
              random() % 2 == 0, random() % 2 == 0 ? taccSum : taccMax};
  const std::size_t most = std::vector<std::size_t>{3, 60, 3000, 40000}[random() % 4];
  for (Counts& row : round.counts)
    for (std::size_t& count : row) count = random() % 4 == 0 ? 0 : random() % most;
  if (random() % 12 == 0)
    for (Counts& row : round.counts) std::ranges::fill(row, 0);
  return round;
}

class Blocks {
 public:
  Blocks(taccComm_t comm, int rank, int ranks, unsigned seed) : comm_(comm), rank_(rank), ranks_(ranks), own_(seed) {}

  void run(const Round& round) {
    // Where a rank keeps its blocks is its own business.
    own_.seed(static_cast<unsigned>(own_() + at(rank_)));
    gatherAll(round);
    reduceScatter(round);
    gather(round);
    scatter(round);
    allToAll(round);
  }

 private:
  /// Each gives the same block to all: the first of its row.
  Counts firsts(const Round& round) const {
    Counts counts;
    for (const Counts& row : round.counts) counts.push_back(row[0]);
    return counts;
  }
  std::vector<int> block(int from, int to, std::size_t count) const {
    std::vector<int> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = valueOf(from, to, i);
    return values;
  }
  void expectBlocks(const std::vector<int>& buffer, const Counts& counts, const Places& layout,
                    const std::function<int(int, std::size_t)>& wanted, const char* what) {
    std::vector<int> expected(buffer.size(), untouched);
    for (std::size_t b = 0; b < counts.size(); ++b)
      for (std::size_t i = 0; i < counts[b]; ++i) expected[layout.offsets[b] + i] = wanted(static_cast<int>(b), i);
    ASSERT_EQ(buffer, expected) << what << " on rank " << rank_ << " of " << ranks_ << ", algorithm "
                                << taccCommLastAlgorithm(comm_);
  }

  void gatherAll(const Round& round) {
    const Counts counts = firsts(round);
    const Places layout(counts, own_);
    std::vector<int> receive(layout.elements, untouched), send = block(rank_, 0, counts[at(rank_)]);
    int* from = send.data();
    if (round.inPlace) from = std::ranges::copy(send, receive.data() + layout.offsets[at(rank_)]).out - send.size();
    expectSuccess(
        taccAllGatherV(from, receive.data(), counts.data(), layout.displacements(), taccInt32, comm_, nullptr), comm_);
    expectBlocks(
        receive, counts, layout, [](int b, std::size_t i) { return valueOf(b, 0, i); }, "allgatherv");
  }

  void reduceScatter(const Round& round) {
    const Counts counts = firsts(round);
    const Places layout(counts, own_);
    std::vector<int> send(layout.elements, untouched), receive(counts[at(rank_)], untouched);
    for (int to = 0; to < ranks_; ++to)
      std::ranges::copy(block(rank_, to, counts[at(to)]), send.data() + layout.offsets[at(to)]);
    int* const to = round.inPlace ? send.data() + layout.offsets[at(rank_)] : receive.data();
    expectSuccess(
        taccReduceScatterV(send.data(), to, counts.data(), layout.displacements(), taccInt32, round.op, comm_, nullptr),
        comm_);
    for (std::size_t i = 0; i < counts[at(rank_)]; ++i) {
      int wanted = valueOf(0, rank_, i);
      for (int from = 1; from < ranks_; ++from)
        wanted = round.op == taccSum ? wanted + valueOf(from, rank_, i) : std::max(wanted, valueOf(from, rank_, i));
      ASSERT_EQ(to[i], wanted) << "reducescatterv on rank " << rank_ << " of " << ranks_ << " element " << i;
    }
  }

  void gather(const Round& round) {
    const Counts counts = firsts(round);
    const Places layout(counts, own_);
    const bool isRoot = rank_ == round.root;
    std::vector<int> receive(isRoot ? layout.elements : 0, untouched), send = block(rank_, 0, counts[at(rank_)]);
    int* from = send.data();
    if (round.inPlace && isRoot)
      from = std::ranges::copy(send, receive.data() + layout.offsets[at(rank_)]).out - send.size();
    expectSuccess(taccGatherV(from, counts[at(rank_)], receive.data(), isRoot ? counts.data() : nullptr,
                              isRoot ? layout.displacements() : nullptr, taccInt32, round.root, comm_, nullptr),
                  comm_);
    if (isRoot)
      expectBlocks(
          receive, counts, layout, [](int b, std::size_t i) { return valueOf(b, 0, i); }, "gatherv");
  }

  void scatter(const Round& round) {
    const Counts counts = firsts(round);
    const Places layout(counts, own_);
    const bool isRoot = rank_ == round.root;
    std::vector<int> send(isRoot ? layout.elements : 0, untouched), receive(counts[at(rank_)], untouched);
    for (int to = 0; isRoot && to < ranks_; ++to)
      std::ranges::copy(block(rank_, to, counts[at(to)]), send.data() + layout.offsets[at(to)]);
    int* const to = round.inPlace && isRoot ? send.data() + layout.offsets[at(rank_)] : receive.data();
    expectSuccess(taccScatterV(send.data(), isRoot ? counts.data() : nullptr, isRoot ? layout.displacements() : nullptr,
                               to, counts[at(rank_)], taccInt32, round.root, comm_, nullptr),
                  comm_);
    for (std::size_t i = 0; i < counts[at(rank_)]; ++i)
      ASSERT_EQ(to[i], valueOf(round.root, rank_, i)) << "scatterv on rank " << rank_ << " element " << i;
  }

  void allToAll(const Round& round) {
    Counts sent = round.counts[at(rank_)], taken;
    for (const Counts& row : round.counts) taken.push_back(row[at(rank_)]);
    if (round.inPlace) {
      // What two ranks give each other has one length.
      for (int other = 0; other < ranks_; ++other)
        sent[at(other)] = taken[at(other)] = round.counts[at(std::min(rank_, other))][at(std::max(rank_, other))];
    }
    const Places from(sent, own_), to = round.inPlace ? from : Places(taken, own_);
    std::vector<int> send(from.elements, untouched), receive(to.elements, untouched);
    for (int other = 0; other < ranks_; ++other)
      std::ranges::copy(block(rank_, other, sent[at(other)]), send.data() + from.offsets[at(other)]);
    if (round.inPlace) receive = send;
    expectSuccess(taccAllToAllV(round.inPlace ? receive.data() : send.data(), sent.data(), from.displacements(),
                                receive.data(), taken.data(), to.displacements(), taccInt32, comm_, nullptr),
                  comm_);
    expectBlocks(
        receive, taken, to, [this](int b, std::size_t i) { return valueOf(b, rank_, i); }, "alltoallv");
  }

  taccComm_t comm_;
  int rank_, ranks_;
  std::mt19937 own_;
};

void runRounds(taccComm_t comm, int rank, int ranks, int rounds, unsigned seed) {
  std::mt19937 random(seed);
  Blocks blocks(comm, rank, ranks, seed);
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) blocks.run(drawRound(random, ranks));
}

class Unequal : public testing::TestWithParam<std::tuple<RankKind, int>> {};

TEST_P(Unequal, drawnCounts) {
  const auto [kind, ranks] = GetParam();
  runRanks(kind, ranks, [ranks = ranks](taccComm_t comm, int rank) { runRounds(comm, rank, ranks, 40, 7); });
}

TEST_P(Unequal, throughEveryWayToReachMemory) {
  const auto [kind, ranks] = GetParam();
  for (const char* way : {"off", "on", "pipes"}) {
    setenv("TACC_CMA", way, 1);
    setenv("TACC_CHUNK_SIZE", "16K", 1);  // so that blocks go in several chunks
    runRanks(kind, ranks, [ranks = ranks](taccComm_t comm, int rank) { runRounds(comm, rank, ranks, 15, 11); });
    unsetenv("TACC_CMA");
    unsetenv("TACC_CHUNK_SIZE");
  }
}

/// Tables of a call that lie in call lines, beside such that do not fit there: by their data, by a place that 16 bits
/// do not hold, and with data that goes by a plan.
TEST(UnequalTables, shortOnesMeetLongOnes) {
  runRanks(RankKind::processes, 3, [](taccComm_t comm, int rank) {
    for (const std::size_t most : {std::size_t{1}, std::size_t{7}, std::size_t{400}, std::size_t{70'000}}) {
      for (const std::size_t gap : {std::size_t{0}, std::size_t{100'000}}) {
        // Ranks 1 and 2 give each other much, and rank 0 a byte; rank 0's blocks lie apart.
        const auto lengthOf = [&](int from, int to) { return from != to && from + to == 3 ? most : std::size_t{1}; };
        Counts sent, taken, sentPlaces, takenPlaces;
        std::size_t sentBytes = 0, takenBytes = 0;
        for (int other = 0; other < 3; ++other) {
          sent.push_back(lengthOf(rank, other));
          taken.push_back(lengthOf(other, rank));
          sentPlaces.push_back(sentBytes);
          takenPlaces.push_back(takenBytes);
          sentBytes += sent.back() + (rank == 0 ? gap : 0);
          takenBytes += taken.back();
        }
        std::vector<std::int8_t> send(sentBytes), receive(takenBytes);
        for (std::size_t i = 0; i < sentBytes; ++i) send[i] = static_cast<std::int8_t>(rank * 40 + i % 37);
        expectSuccess(taccAllToAllV(send.data(), sent.data(), sentPlaces.data(), receive.data(), taken.data(),
                                    takenPlaces.data(), taccInt8, comm, nullptr),
                      comm);
        for (int from = 0; from < 3; ++from) {
          std::size_t begin = 0;  // of the block, where it was sent
          for (int to = 0; to < rank; ++to) begin += lengthOf(from, to) + (from == 0 ? gap : 0);
          for (std::size_t i = 0; i < taken[at(from)]; ++i)
            ASSERT_EQ(receive[takenPlaces[at(from)] + i], static_cast<std::int8_t>(from * 40 + (begin + i) % 37))
                << "from " << from << " to " << rank << ", " << most << " bytes, gaps of " << gap;
        }
      }
    }
  });
}

/// What is not looked at again where calls repeat each other: lengths, and where blocks are sent from and taken to,
/// change each on some ranks only.
TEST(UnequalTables, callsThatRepeatEachOtherAndThenDoNot) {
  runRanks(RankKind::processes, 3, [](taccComm_t comm, int rank) {
    for (int call = 0; call < 120; ++call) {
      const auto isOdd = [call](int bit) { return (call / 3 >> bit) % 2 == 1; };
      const auto lengthOf = [&](int from, int to) { return from == 1 && to == 2 && isOdd(0) ? 2U : 1U; };
      const std::size_t gap = rank == 2 && isOdd(1) ? 1 : 0, takenGap = rank == 0 && isOdd(2) ? 1 : 0;
      const auto valueAt = [call](int from, int to, std::size_t i) {
        return static_cast<std::int8_t>(call + from * 40 + to * 9 + static_cast<int>(i));
      };
      Counts sent, taken, sentPlaces, takenPlaces;
      std::vector<std::int8_t> send(12), receive(12);
      for (int other = 0; other < 3; ++other) {
        sent.push_back(lengthOf(rank, other));
        taken.push_back(lengthOf(other, rank));
        sentPlaces.push_back(at(other) * (2 + gap));
        takenPlaces.push_back(at(other) * (2 + takenGap));
        for (std::size_t i = 0; i < sent.back(); ++i) send[sentPlaces.back() + i] = valueAt(rank, other, i);
      }
      expectSuccess(taccAllToAllV(send.data(), sent.data(), sentPlaces.data(), receive.data(), taken.data(),
                                  takenPlaces.data(), taccInt8, comm, nullptr),
                    comm);
      for (int from = 0; from < 3; ++from)
        for (std::size_t i = 0; i < taken[at(from)]; ++i)
          ASSERT_EQ(receive[takenPlaces[at(from)] + i], valueAt(from, rank, i)) << call << ", from " << from;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Unequal,
                         testing::Combine(testing::Values(RankKind::processes, RankKind::threads),
                                          testing::Values(1, 2, 3, 4, 7)),
                         [](const auto& suite) {
                           return (std::get<0>(suite.param) == RankKind::processes ? "processes" : "threads") +
                                  std::to_string(std::get<1>(suite.param));
                         });

/// Every rank ends with an error, and some of them says `text`.
void expectMismatch(int ranks, const std::string& text, const std::function<taccResult_t(taccComm_t, int)>& call) {
  runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
    EXPECT_EQ(call(comm, rank), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), testing::HasSubstr(text));
  });
}

TEST(UnequalMismatch, namesBothRanksAndCounts) {
  std::vector<int> from(100), to(100);
  const auto counts = [](std::size_t a, std::size_t b, std::size_t c) { return Counts{a, b, c}; };
  expectMismatch(3, "allgatherv differ: rank 1 gives 4 elements to rank 2, which expects 5",
                 [&](taccComm_t comm, int rank) {
                   const Counts mine = counts(1, rank == 2 ? 5 : 4, 3);
                   return taccAllGatherV(from.data(), to.data(), mine.data(), nullptr, taccInt32, comm, nullptr);
                 });
  expectMismatch(3, "alltoallv differ: rank 1 gives 2 elements to rank 0, which expects 3",
                 [&](taccComm_t comm, int rank) {
                   const Counts sent = counts(2, 2, 2), taken = counts(2, rank == 0 ? 3 : 2, 2);
                   return taccAllToAllV(from.data(), sent.data(), nullptr, to.data(), taken.data(), nullptr, taccInt32,
                                        comm, nullptr);
                 });
  expectMismatch(
      3, "reducescatterv differ: rank 1 reduces 9 elements for rank 0, which takes 8", [&](taccComm_t comm, int rank) {
        const Counts mine = counts(rank == 1 ? 9 : 8, 2, 2);
        return taccReduceScatterV(from.data(), to.data(), mine.data(), nullptr, taccInt32, taccSum, comm, nullptr);
      });
}

/// Of a call that not all ranks wait in: `finder` ends with an error that says `text`, and nobody goes on.
void expectMismatchAt(int finder, const std::string& text, const std::function<taccResult_t(taccComm_t, int)>& call) {
  runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
    taccResult_t result = call(comm, rank);
    if (rank == finder) {
      EXPECT_EQ(result, taccInvalidUsage);
      EXPECT_THAT(taccGetLastError(comm), testing::HasSubstr(text));
    }
    if (result == taccSuccess) result = taccBarrier(comm, nullptr);
    EXPECT_NE(result, taccSuccess);
    EXPECT_THAT(taccGetLastError(comm), testing::HasSubstr(text));
  });
}

TEST(UnequalMismatch, isFoundWhereItIsWaitedFor) {
  // Short blocks, and such that all ranks meet for.
  for (const std::size_t unit : {std::size_t{1}, std::size_t{20'000}}) {
    std::vector<int> from(20 * unit), to(20 * unit);
    const Counts few{6 * unit, 2 * unit, 3 * unit}, some{0, 2 * unit, 3 * unit};
    expectMismatchAt(
        1, fmt::format("gatherv differ: rank 0 gives {} elements to rank 1, which expects {}", 7 * unit, 6 * unit),
        [&](taccComm_t comm, int rank) {
          const std::size_t own = rank == 0 ? 7 * unit : few[at(rank)];
          return taccGatherV(from.data(), own, to.data(), few.data(), nullptr, taccInt32, 1, comm, nullptr);
        });
    expectMismatchAt(
        1, fmt::format("gatherv differ: rank 1 gives {} elements to rank 1, which expects {}", unit, 2 * unit),
        [&](taccComm_t comm, int rank) {
          const std::size_t own = rank == 1 ? unit : few[at(rank)];
          return taccGatherV(from.data(), own, to.data(), few.data(), nullptr, taccInt32, 1, comm, nullptr);
        });
    for (const int finder : {0, 2})
      expectMismatchAt(finder,
                       fmt::format("scatterv differ: rank 2 gives {} elements to rank {}, which expects {}",
                                   some[at(finder)], finder, some[at(finder)] + 1),
                       [&](taccComm_t comm, int rank) {
                         const std::size_t own = some[at(rank)] + (rank == finder ? 1 : 0);
                         return taccScatterV(from.data(), some.data(), nullptr, to.data(), own, taccInt32, 2, comm,
                                             nullptr);
                       });
  }
}

TEST(UnequalMismatch, isFoundBehindCallsThatRepeatEachOther) {
  std::vector<int> from(100), to(100);
  expectMismatch(2, "allgatherv differ: rank 1 gives 2 elements to rank 0, which expects 1",
                 [&](taccComm_t comm, int rank) {
                   taccResult_t result = taccSuccess;
                   for (int call = 0; call < 5 && result == taccSuccess; ++call) {
                     const Counts mine{1, rank == 1 && call == 4 ? 2U : 1U};
                     result = taccAllGatherV(from.data(), to.data(), mine.data(), nullptr, taccInt32, comm, nullptr);
                   }
                   return result;
                 });
}

TEST(UnequalMismatch, anotherCollectiveIsNamed) {
  std::vector<int> from(100), to(100);
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    const Counts counts{3, 3};
    const taccResult_t result =
        rank == 0 ? taccAllGatherV(from.data(), to.data(), counts.data(), nullptr, taccInt32, comm, nullptr)
                  : taccAllGather(from.data(), to.data(), 3, taccInt32, comm, nullptr);
    EXPECT_NE(result, taccSuccess);
    EXPECT_THAT(taccGetLastError(comm), testing::HasSubstr("allgatherv(int32)"));
  });
}

class UnequalHosts : public HostRanksTest {};

TEST_P(UnequalHosts, drawnCounts) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) { runRounds(comm, rank, ranks(), 25, 5); });
}

TEST_P(UnequalHosts, mismatchesNameBothRanksAndCounts) {
  const VirtualCluster& cluster = fourHosts();
  for (const bool toAll : {false, true})
    runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
      std::vector<int> from(1000), to(1000);
      Counts sent(at(ranks()), 2), taken(at(ranks()), 2);
      if (rank == ranks() - 1) taken[0] = 3;
      const taccResult_t result =
          toAll ? taccAllToAllV(from.data(), sent.data(), nullptr, to.data(), taken.data(), nullptr, taccInt32, comm,
                                nullptr)
                : taccAllGatherV(from.data(), to.data(), taken.data(), nullptr, taccInt32, comm, nullptr);
      // Others may have been through before they hear of it.
      if (rank != ranks() - 1) return;
      EXPECT_EQ(result, taccInvalidUsage);
      EXPECT_THAT(taccGetLastError(comm),
                  testing::AllOf(testing::HasSubstr("3"), testing::HasSubstr("2"), testing::HasSubstr("rank 0"),
                                 testing::HasSubstr("rank " + std::to_string(rank))));
    });
}

/// Of a tree, leaves handle single blocks and others whole stacks: all of them have to find that it does not serve.
TEST_P(UnequalHosts, ranksAgreeWhichAlgorithmsServe) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    std::vector<int> from(100), to(100), all(at(ranks()));
    const Counts counts(at(ranks()), 2);
    for (const bool reduces : {false, true}) {
      std::set<std::string> served;
      for (const Algorithm& algorithm : algorithms()) {
        const std::string name(algorithm.name);
        taccConfig_t config = TACC_CONFIG_INITIALIZER;
        config.algorithm = name.c_str();
        taccComm_t forced = nullptr;
        expectSuccess(taccCommSplit(comm, 0, rank, &forced, &config), comm);
        const taccResult_t result =
            reduces ? taccReduceScatterV(from.data(), to.data(), counts.data(), nullptr, taccInt32, taccSum, forced,
                                         nullptr)
                    : taccAllGatherV(from.data(), to.data(), counts.data(), nullptr, taccInt32, forced, nullptr);
        const int serves = result == taccSuccess;
        expectSuccess(taccAllGather(&serves, all.data(), 1, taccInt32, comm, nullptr), comm);
        EXPECT_EQ(all, std::vector<int>(at(ranks()), serves)) << name << ", reduces " << reduces;
        if (serves != 0) {
          served.insert(name);
          expectSuccess(taccCommDestroy(forced), comm);
        } else {  // its own error, or another rank's
          EXPECT_THAT(taccGetLastError(forced), testing::HasSubstr("does not serve")) << name;
          taccCommAbort(forced);
        }
        ASSERT_FALSE(HasFailure()) << name;
      }
      EXPECT_TRUE(served.contains("ring"));
      EXPECT_NE(served.contains("binomial"), reduces);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, UnequalHosts, usualLayouts(), layoutName);

}  // namespace
}  // namespace tacc::test
