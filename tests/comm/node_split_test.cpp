// Communicators that are split off one of a single host: they share what it has, are its equals in all else, and end
// with no other one.
//
// SPLIT_ROUNDS: how many programs and how many faults of each kind are drawn (default 6; 2 with TACC_TEST_QUICK).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rank_harness.hpp"
#include "shrink_team.hpp"
#include "support/child_process.hpp"

namespace tacc::test {
namespace {

int rounds() {
  const char* const given = std::getenv("SPLIT_ROUNDS");
  return given != nullptr ? std::atoi(given) : isQuick() ? 2 : 6;
}

taccComm_t split(taccComm_t comm, int color, int key) {
  taccComm_t part = nullptr;
  EXPECT_EQ(taccCommSplit(comm, color, key, &part, nullptr), taccSuccess) << taccGetLastError(comm);
  return part;
}

/// A communicator, and who is in it by the numbers of the first one.
struct Part {
  taccComm_t comm;
  std::vector<int> members;
};

/// Sums of `count` floats that only these members can make, and a broadcast.
void expectWorks(const Part& part, int self, std::size_t count) {
  std::vector<float> own(count, static_cast<float>(1 << self)), sum(count);
  ASSERT_EQ(taccAllReduce(own.data(), sum.data(), count, taccFloat32, taccSum, part.comm, nullptr), taccSuccess)
      << taccGetLastError(part.comm);
  float expected = 0;
  for (const int member : part.members) expected += static_cast<float>(1 << member);
  EXPECT_EQ(std::ranges::count(sum, expected), static_cast<std::ptrdiff_t>(count)) << sum.front();
  int first = self;
  ASSERT_EQ(taccBcast(&first, 1, taccInt32, 0, part.comm, nullptr), taccSuccess) << taccGetLastError(part.comm);
  EXPECT_EQ(first, part.members.front());
  const auto place = std::ranges::find(part.members, self) - part.members.begin();
  const auto all = static_cast<std::ptrdiff_t>(part.members.size());
  if (all < 2) return;
  const int next = static_cast<int>((place + 1) % all), previous = static_cast<int>((place + all - 1) % all);
  std::vector<float> got(count);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccSend(own.data(), count, taccFloat32, next, part.comm, nullptr), taccSuccess);
  ASSERT_EQ(taccRecv(got.data(), count, taccFloat32, previous, part.comm, nullptr), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(part.comm);
  EXPECT_EQ(got.back(), static_cast<float>(1 << part.members[static_cast<std::size_t>(previous)]));
}

/// Draws what all ranks do alike: splits of whatever there is, sums on any, and ends of any, parents before children.
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
  for (int round = 0; round < rounds(); ++round) {
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
    ::unsetenv("TACC_TUNE_FILE");
    part = split(comm, 0, 0);
    expectWorks({part, {0, 1}}, rank, 1000);
    EXPECT_EQ(taccCommDestroy(part), taccSuccess);
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

/// What a rank does in a test of faults: joins, splits twice, ends some communicators, and calls on the part until that
/// fails.
struct Faulty {
  bool losesParent;  // before the fault
  std::size_t count;
};

void runFaulty(const Faulty& way, int ranks, const taccUniqueId& id, int rank, Report& report,
               const taccConfig_t& config) {
  taccComm_t const whole = joinTeam(id, ranks, rank, config);
  ASSERT_NE(whole, nullptr);
  taccComm_t const first = split(whole, 0, -rank), second = split(first, 0, rank);
  ASSERT_NE(second, nullptr);
  if (way.losesParent) {
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    EXPECT_EQ(taccCommDestroy(first), taccSuccess);
  }
  std::vector<float> numbers(way.count, 1), sums(way.count);
  const auto call = [&](taccComm_t comm) {
    return taccAllReduce(numbers.data(), sums.data(), way.count, taccFloat32, taccSum, comm, nullptr);
  };
  EXPECT_EQ(call(second), taccSuccess);
  report.start = now();
  report.stage = 1;
  while ((report.result = call(second)) == taccSuccess) {
  }
  report.end = now();
  report.setMessage(taccGetLastError(second));
  if (!way.losesParent) {
    report.later = call(whole);
    EXPECT_NE(std::strstr(taccGetLastError(whole), "rank"), nullptr);
    EXPECT_EQ(taccCommDestroy(first), taccSuccess);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
  }
  EXPECT_EQ(taccCommDestroy(second), taccSuccess);
  report.stage = 2;
}

TEST(NodeSplitFaults, ARankThatIsKilledEndsAllWithItsName) {
  std::mt19937 random(27);
  for (int round = 0; round < rounds(); ++round) {
    const int ranks = 2 + round % 3, victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const Faulty way{round % 2 == 1, round % 3 == 0 ? std::size_t{1} : std::size_t{200000}};
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim) + " of " +
                 std::to_string(ranks));
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      runFaulty(way, ranks, id, rank, report, configOf(20, 20));
    });
    team.awaitStage(1);
    nap(0.001 * static_cast<double>(random() % 40));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    // The part of a part has the order of the whole again.
    const std::string name = "rank " + std::to_string(victim);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const Report& report = team.report(rank);
      EXPECT_EQ(report.stage, 2);
      EXPECT_EQ(report.result, taccRemoteError) << report.message;
      EXPECT_NE(std::strstr(report.message, name.c_str()), nullptr) << report.message;
      EXPECT_LT(report.end - killed, 5);
      if (!way.losesParent) {
        EXPECT_EQ(report.later, taccRemoteError);
      }
    }
    if (HasFailure()) return;
  }
}

TEST(NodeSplitFaults, ARankThatIsStoppedIsNamed) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    runFaulty({true, 100}, 3, id, rank, report, configOf(20, 1));
  });
  team.awaitStage(1);
  nap(0.02);
  team.signal(1, SIGSTOP);
  team.join(1);
  for (const int rank : {0, 2}) {
    const Report& report = team.report(rank);
    EXPECT_TRUE(report.result == taccTimeout || report.result == taccRemoteError) << report.message;
    EXPECT_NE(std::strstr(report.message, "rank 1"), nullptr) << report.message;
    EXPECT_NE(std::strstr(report.message, "stopped"), nullptr) << report.message;
  }
  team.signal(1, SIGCONT);
}

TEST(NodeSplitFaults, ARankThatDiesWhileOthersSplitIsNamedOnAll) {
  std::mt19937 random(272);
  for (int round = 0; round < 2 * rounds(); ++round) {
    const int ranks = 2 + round % 3, victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim) + " of " +
                 std::to_string(ranks));
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t const whole = joinTeam(id, ranks, rank, configOf(20, 20));
      ASSERT_NE(whole, nullptr);
      report.stage = 1;
      for (int i = 0; report.result == taccSuccess; ++i) {
        taccComm_t part = nullptr;
        report.result = taccCommSplit(whole, i % 3 == 0 ? rank % 2 : 0, rank, &part, nullptr);
        if (part != nullptr) {
          EXPECT_EQ(taccCommDestroy(part), taccSuccess);
        }
      }
      report.end = now();
      report.setMessage(taccGetLastError(whole));
      EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      report.stage = 2;
    });
    team.awaitStage(1);
    nap(1e-6 * static_cast<double>(random() % 30000));
    const double killed = now();
    team.signal(victim, SIGKILL);
    team.join(victim);
    const std::string name = "rank " + std::to_string(victim);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const Report& report = team.report(rank);
      EXPECT_EQ(report.stage, 2);
      EXPECT_EQ(report.result, taccRemoteError) << report.message;
      EXPECT_NE(std::strstr(report.message, name.c_str()), nullptr) << report.message;
      EXPECT_LT(report.end - killed, 5);
    }
    if (HasFailure()) return;
  }
}

TEST(NodeSplitFaults, WhoLeavesAPartIsMissedThereAndNowhereElse) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const whole = joinTeam(id, 3, rank, configOf(20, 20));
    ASSERT_NE(whole, nullptr);
    taccComm_t const part = split(whole, 0, rank), other = split(whole, 0, -rank);
    if (rank == 2) {
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    } else {
      int number = 1;
      report.result = taccAllReduce(&number, &number, 1, taccInt32, taccSum, part, nullptr);
      report.setMessage(taccGetLastError(part));
      EXPECT_EQ(report.result, taccRemoteError);
      EXPECT_NE(std::strstr(report.message, "rank 2"), nullptr) << report.message;
      EXPECT_NE(std::strstr(report.message, "no longer in the communicator"), nullptr) << report.message;
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    }
    expectWorks({other, {2, 1, 0}}, rank, 5000);
    expectWorks({whole, {0, 1, 2}}, rank, 5000);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    expectWorks({other, {2, 1, 0}}, rank, 100);
    EXPECT_EQ(taccCommDestroy(other), taccSuccess);
    report.stage = 2;
  });
  team.join();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(team.report(rank).stage, 2);
}

TEST(NodeSplitFaults, AbortOfAPartEndsThatPartAlone) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const whole = joinTeam(id, 3, rank, configOf(20, 20));
    ASSERT_NE(whole, nullptr);
    taccComm_t const part = split(whole, 0, rank), partOfIt = split(part, 0, rank);
    if (rank == 1) {
      EXPECT_EQ(taccCommAbort(part), taccSuccess);
    } else {
      int number = 1;
      EXPECT_EQ(taccAllReduce(&number, &number, 1, taccInt32, taccSum, part, nullptr), taccRemoteError);
      EXPECT_NE(std::strstr(taccGetLastError(part), "rank 1"), nullptr) << taccGetLastError(part);
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    }
    expectWorks({partOfIt, {0, 1, 2}}, rank, 50000);
    expectWorks({whole, {0, 1, 2}}, rank, 50000);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    EXPECT_EQ(taccCommDestroy(partOfIt), taccSuccess);
    report.stage = 2;
  });
  team.join();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(team.report(rank).stage, 2);
}

/// A death, then agree and shrink of a part whose parent has gone or not: all that live are together.
TEST(NodeSplitFaults, APartShrinksAndAgreesAfterADeath) {
  std::mt19937 random(2727);
  for (int round = 0; round < 2 * rounds(); ++round) {
    const int ranks = 2 + round % 4, victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const bool losesParent = round % 2 == 0;
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(victim) + " of " +
                 std::to_string(ranks));
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      taccComm_t const whole = joinTeam(id, ranks, rank, configOf(20, 20));
      ASSERT_NE(whole, nullptr);
      taccComm_t const part = split(whole, 0, rank);
      ASSERT_NE(part, nullptr);
      if (losesParent) {
        EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      }
      int flags = ~(1 << rank);
      EXPECT_EQ(taccCommAgree(part, &flags), taccSuccess) << taccGetLastError(part);
      EXPECT_EQ(flags, ~((1 << ranks) - 1));
      report.stage = 1;
      int number = 1;
      while (taccAllReduce(&number, &number, 1, taccInt32, taccSum, part, nullptr) == taccSuccess) {
      }
      flags = 7;
      EXPECT_EQ(taccCommAgree(part, &flags), taccRemoteError);
      EXPECT_EQ(flags, 7);
      EXPECT_NE(std::strstr(taccGetLastError(part), std::to_string(victim).c_str()), nullptr);
      shrinkAndMeet(part, rank, {}, report);
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
      if (!losesParent) {
        EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
      }
      report.stage = 2;
    });
    team.awaitStage(1);
    nap(0.001 * static_cast<double>(random() % 20));
    team.signal(victim, SIGKILL);
    team.join(victim);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const Report& report = team.report(rank);
      EXPECT_EQ(report.stage, 2);
      EXPECT_EQ(report.result, taccSuccess) << report.message;
      EXPECT_EQ(report.value, ((1 << ranks) - 1) & ~(1 << victim));
    }
    expectTogether(team, "shrink of a part");
    if (HasFailure()) return;
  }
}

/// Also where a rank is stopped before its place is open: it is waited for, left out, and told when it goes on.
TEST(NodeSplitFaults, WhoIsStoppedIsLeftOutOfAPartAndTold) {
  const auto makePart = [](const taccUniqueId& id, int rank) {
    taccComm_t const whole = joinTeam(id, 3, rank, configOf(4, 1));
    taccComm_t const part = split(whole, 0, rank);
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
    return part;
  };
  for (const int victim : {0, 2}) {
    const std::string told = expectStoppedRankLeftOut(victim, makePart);
    EXPECT_NE(told.find("without it"), std::string::npos) << told;
  }
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
