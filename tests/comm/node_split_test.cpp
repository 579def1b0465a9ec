// Communicators that are split off one of a single host: they share what it has, are its equals in all else, and end
// with no other one. Faults are in node_split_fault_test.cpp.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fault_team.hpp"
#include "node_split_parts.hpp"
#include "rank_harness.hpp"
#include "support/child_process.hpp"

namespace tacc::test {
namespace {

/// Ranks of a part, in any order, and the communicator that they make among themselves, null for others.
Part drawGroup(const Part& from, int self, std::mt19937& random) {
  std::vector<int> order;
  for (std::size_t i = 0; i < from.members.size(); ++i) order.push_back(static_cast<int>(i));
  std::ranges::shuffle(order, random);
  order.resize(1 + random() % order.size());
  Part group{nullptr, {}};
  for (const int place : order) group.members.push_back(from.members[static_cast<std::size_t>(place)]);
  if (from.comm != nullptr && std::ranges::find(group.members, self) != group.members.end())
    group.comm = createGroup(from.comm, order);
  return group;
}

/// Draws what all ranks do alike: splits of whatever there is, groups of some of its ranks, sums on any, and ends of
/// any, parents before children.
void runDrawnProgram(taccComm_t whole, int self, int ranks, unsigned seed) {
  constexpr int steps = 60;
  constexpr std::size_t lengths[] = {1, 100, 4000, 300000};
  // The same draws on all ranks: what is not a rank's own is kept without a communicator.
  std::mt19937 random(seed);
  const auto draw = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  std::vector<int> everybody;
  for (int rank = 0; rank < ranks; ++rank) everybody.push_back(rank);
  std::vector<Part> parts{{whole, everybody}};
  const auto drawPart = [&]() -> std::size_t {
    return static_cast<std::size_t>(draw(static_cast<int>(parts.size()) - 1));
  };
  for (int step = 0; step < steps; ++step) {
    const int what = draw(9);
    const std::size_t at = drawPart();
    const Part from = parts[at];
    if (what < 3) {
      std::vector<int> colors, keys;
      for (std::size_t i = 0; i < from.members.size(); ++i) {
        colors.push_back(draw(2) - (draw(3) == 0 ? 3 : 0));
        keys.push_back(draw(3));
      }
      const auto own = std::ranges::find(from.members, self) - from.members.begin();
      const bool isIn = from.comm != nullptr;
      const int color = isIn ? std::max(colors[static_cast<std::size_t>(own)], TACC_SPLIT_NOCOLOR) : TACC_SPLIT_NOCOLOR;
      taccComm_t made = isIn ? split(from.comm, color, keys[static_cast<std::size_t>(own)]) : nullptr;
      EXPECT_EQ(made != nullptr, color >= 0);
      for (int one = 0; one <= 2; ++one) {
        std::vector<std::size_t> chosen;
        for (std::size_t i = 0; i < from.members.size(); ++i)
          if (colors[i] == one) chosen.push_back(i);
        std::ranges::stable_sort(chosen, {}, [&](std::size_t i) { return keys[i]; });
        if (chosen.empty()) continue;
        Part part{isIn && color == one ? made : nullptr, {}};
        for (const std::size_t i : chosen) part.members.push_back(from.members[i]);
        parts.push_back(std::move(part));
      }
    } else if (what < 4 && at != 0) {
      if (from.comm != nullptr) {
        EXPECT_EQ(taccCommDestroy(from.comm), taccSuccess);
      }
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (what < 6) {
      parts.push_back(drawGroup(from, self, random));
    } else {
      const std::size_t count = lengths[draw(3)];
      if (from.comm != nullptr) expectWorks(from, self, count);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  std::ranges::shuffle(parts, random);
  for (const Part& part : parts)
    if (part.comm != nullptr && part.comm != whole) {
      EXPECT_EQ(taccCommDestroy(part.comm), taccSuccess);
    }
}

class NodeSplit : public testing::TestWithParam<RankKind> {};

TEST_P(NodeSplit, PartsOfPartsWorkAndEndInAnyOrder) {
  for (int round = 0; round < splitRounds(); ++round) {
    const unsigned seed = 2026U + static_cast<unsigned>(round);
    const int ranks = 2 + round % 4;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
    runRanks(GetParam(), ranks, [&](taccComm_t comm, int rank) { runDrawnProgram(comm, rank, ranks, seed); });
    if (HasFailure()) return;
  }
}

TEST_P(NodeSplit, DifferentSettingsAreToldToAll) {
  runRanks(GetParam(), 3, [](taccComm_t comm, int rank) {
    if (GetParam() == RankKind::threads) return;  // one thread makes the parts of all
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    if (rank == 1) config.reproducible = 1;
    taccComm_t part = nullptr;
    EXPECT_EQ(taccCommSplit(comm, 0, rank, &part, &config), taccInvalidUsage);
    EXPECT_NE(std::strstr(taccGetLastError(comm), "different settings"), nullptr) << taccGetLastError(comm);
    part = split(comm, 0, rank);
    expectWorks({part, {0, 1, 2}}, rank, 1000);
    EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  });
}

TEST_P(NodeSplit, ATuningFileThatCannotBeReadIsToldToAllAndEndsNothing) {
  if (GetParam() == RankKind::threads) GTEST_SKIP() << "the environment is the process's";
  runRanks(GetParam(), 2, [](taccComm_t comm, int rank) {
    ::setenv("TACC_TUNE_FILE", "/nowhere/tune.toml", 1);
    taccComm_t part = nullptr;
    EXPECT_NE(taccCommSplit(comm, 0, 0, &part, nullptr), taccSuccess);
    EXPECT_NE(std::strstr(taccGetLastError(comm), "/nowhere/tune.toml"), nullptr) << taccGetLastError(comm);
    const int turned[] = {1, 0};
    EXPECT_NE(taccCommCreateGroup(comm, turned, 2, &part, nullptr), taccSuccess);
    EXPECT_NE(std::strstr(taccGetLastError(comm), "/nowhere/tune.toml"), nullptr) << taccGetLastError(comm);
    ::unsetenv("TACC_TUNE_FILE");
    part = split(comm, 0, 0);
    expectWorks({part, {0, 1}}, rank, 1000);
    EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  });
}

/// Groups that overlap, each made while ranks outside of it do something else.
TEST_P(NodeSplit, GroupsAreMadeByTheirRanksAlone) {
  runRanks(GetParam(), 4, [](taccComm_t comm, int rank) {
    std::vector<Part> made;
    for (const std::vector<int>& members : {std::vector{2, 0}, {1, 3}, {3}, {0, 1, 2}, {3, 0}}) {
      if (std::ranges::find(members, rank) == members.end()) continue;
      made.push_back({createGroup(comm, members), members});
      expectWorks(made.back(), rank, 5000);
    }
    expectWorks({comm, {0, 1, 2, 3}}, rank, 100);
    for (const Part& one : made) {
      expectWorks(one, rank, 3);
      EXPECT_EQ(taccCommDestroy(one.comm), taccSuccess);
    }
  });
}

TEST_P(NodeSplit, RanksThatMeanAnotherGroupAreNamed) {
  for (const std::vector<int>& others : {std::vector{0, 2}, {2, 0, 1}, {0, 2, 1}})
    runRanks(GetParam(), 3, [&](taccComm_t comm, int rank) {
      const std::vector<int> all{0, 1, 2};
      const std::vector<int>& members = rank == 2 ? others : all;
      taccComm_t group = nullptr;
      EXPECT_NE(taccCommCreateGroup(comm, members.data(), static_cast<int>(members.size()), &group, nullptr),
                taccSuccess);
      EXPECT_NE(
          std::strstr(taccGetLastError(comm), "of the ranks 0 1 2, and rank 2 one of others, or in another order"),
          nullptr)
          << taccGetLastError(comm);
    });
}

/// What all of them share, and where they have to meet.
TEST_P(NodeSplit, GroupsWithAnotherEnvironmentMeet) {
  if (GetParam() == RankKind::threads) GTEST_SKIP() << "the environment is the process's";
  runRanks(GetParam(), 3, [](taccComm_t comm, int rank) {
    ::setenv("TACC_CHUNK_SIZE", "65536", 1);
    if (rank != 1) {
      const Part group{createGroup(comm, {2, 0}), {2, 0}};
      expectWorks(group, rank, 5000);
      EXPECT_EQ(taccCommDestroy(group.comm), taccSuccess);
    }
    expectWorks({comm, {0, 1, 2}}, rank, 100);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, NodeSplit, testing::Values(RankKind::processes, RankKind::threads),
                         [](const testing::TestParamInfo<RankKind>& kind) {
                           return std::string(kind.param == RankKind::processes ? "Processes" : "Threads");
                         });

TEST(NodeSplitCost, AThousandPartsFitIntoTheUsualLimitOfDescriptors) {
  constexpr int children = 1000;
  Team team(2, [](const taccUniqueId& id, int rank, Report& report) {
    const rlimit limit{1024, 1024};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    taccComm_t const whole = joinTeam(id, 2, rank, configOf(20, 20));
    ASSERT_NE(whole, nullptr);
    const int before = countOpenDescriptors();
    std::vector<taccComm_t> comms;
    const double start = now();
    for (int i = 0; i < children; ++i) {
      if (i % 3 == 2)
        comms.push_back(createGroup(whole, {1, 0}));
      else
        comms.push_back(split(i % 7 == 6 ? comms.back() : whole, 0, i % 2 == 0 ? rank : -rank));
      ASSERT_NE(comms.back(), nullptr) << i;
    }
    report.value = (now() - start) / children;
    EXPECT_EQ(countOpenDescriptors(), before);
    for (const taccComm_t comm : comms) {
      int sum = rank + 1;
      ASSERT_EQ(taccAllReduce(&sum, &sum, 1, taccInt32, taccSum, comm, nullptr), taccSuccess) << taccGetLastError(comm);
      EXPECT_EQ(sum, 3);
    }
    for (const taccComm_t comm : comms) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    EXPECT_EQ(countOpenDescriptors(), before);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    report.stage = 2;
  });
  team.join(-1, 60);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(team.report(rank).stage, 2);
  std::printf("a part of 2 ranks takes %.1f us to make, and no descriptor\n", team.report(0).value * 1e6);
}

/// Threads that compute on the whole and its parts at once, and split them once more meanwhile.
TEST_P(NodeSplit, ManyThreadsUseThemAtOnce) {
  constexpr int parts = 3, calls = 60;
  runRanks(GetParam(), 3, [](taccComm_t comm, int rank) {
    std::vector<Part> all{{comm, {0, 1, 2}}};
    for (int i = 0; i < parts; ++i) all.push_back({split(comm, 0, rank), {0, 1, 2}});
    std::vector<std::thread> threads;
    for (std::size_t one = 0; one < all.size(); ++one)
      threads.emplace_back([&, one] {
        for (int i = 0; i < calls; ++i) {
          expectWorks(all[one], rank, i % 10 == 0 ? std::size_t{100000} : std::size_t{7});
          if (i % 20 != 5) continue;
          const Part made{split(all[one].comm, 0, rank), {0, 1, 2}};
          expectWorks(made, rank, 10);
          EXPECT_EQ(taccCommDestroy(made.comm), taccSuccess);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t one = 1; one < all.size(); ++one) EXPECT_EQ(taccCommDestroy(all[one].comm), taccSuccess);
  });
}

}  // namespace
}  // namespace tacc::test
