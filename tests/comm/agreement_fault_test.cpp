// Ranks that are killed or stopped at any message of an agreement: all that get a decision get the same, and those that
// live do get one.
//
// AGREEMENT_ROUNDS: how many faults are drawn of each kind (default 40; 12 with TACC_TEST_QUICK).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/recovery/survivor_rendezvous.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

constexpr int mostRanks = 8;
const InetAddress loopback(InetAddress::V4{127, 0, 0, 1});

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// What the processes of a round share.
struct Board {
  struct Row {
    SurvivorPlace place;
    std::atomic<int> stage;  // 1: listens, 2: ended with a decision, 3: with an error
    std::atomic<int> events;
    unsigned long members;  // a bit each
    taccUniqueId id;
    char message[400];
    double end;
  };
  std::atomic<int> placed;
  std::atomic<double> struck;
  std::atomic<bool> isOver;  // until then who has ended lives on, as it would in a program
  Row rows[mostRanks];
};

enum class Fault { none, kill, stop };

struct Round {
  int ranks;
  bool overTcp;
  int victim;
  int event;  // of the victim, counted from 1, at which it happens
  Fault fault;
  double seconds;         // for which ranks wait
  double continuesAfter;  // a stopped one
  bool mayFail = false;   // survivors may run out of time, as on a machine that stood still meanwhile

  /// The victim goes on when time is nearly over: a rank that then follows it may come too late for the decision.
  bool isClose() const { return std::abs(continuesAfter - seconds) < 2.5; }
};

void runRank(const Round& round, int rank, Board& board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Board::Row& row = board.rows[rank];
  SurvivorRendezvous rendezvous(rank, round.overTcp ? &loopback : nullptr);
  row.place = rendezvous.place();
  ++board.placed;
  while (board.placed < round.ranks) std::this_thread::yield();
  std::vector<SurvivorPlace> places;
  for (int other = 0; other < round.ranks; ++other) places.push_back(board.rows[other].place);
  Secret secret{};
  rendezvous.setPlaces(std::move(places), secret);
  rendezvous.observe([&](std::string_view) {
    if (++row.events != round.event || rank != round.victim || round.fault == Fault::none) return;
    board.struck = now();
    ::raise(round.fault == Fault::kill ? SIGKILL : SIGSTOP);
  });
  try {
    const Decision decision = rendezvous.agree(
        {AgreementPurpose::shrink, ~0U, std::vector<bool>(static_cast<std::size_t>(round.ranks)), round.seconds});
    for (int other = 0; other < round.ranks; ++other)
      if (decision.members[static_cast<std::size_t>(other)]) row.members |= 1UL << other;
    row.id = decision.id;
    row.end = now();
    row.stage = 2;
  } catch (const Error& error) {
    std::strncpy(row.message, error.what(), sizeof row.message - 1);
    row.end = now();
    row.stage = 3;
  }
  while (!board.isOver) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

struct Summary {
  int decided = 0, lost = 0;
  int failed = 0;  // not counting the victim
  int victimEvents = 0;
  double slowest = 0;  // seconds from the fault to the last decision of a rank that lives
};

/// Runs it, and checks that all decisions are one.
Summary run(const Round& round, const std::string& what) {
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(shared, MAP_FAILED);
  Board& board = *new (shared) Board{};
  std::vector<pid_t> children;
  for (int rank = 0; rank < round.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      runRank(round, rank, board);
      _exit(0);
    }
    children.push_back(child);
  }
  const pid_t victim = children[static_cast<std::size_t>(round.victim)];
  const double start = now();
  Summary summary;
  std::vector<bool> isOver(children.size());
  for (std::size_t left = children.size(); left > 0;) {
    std::size_t ended = 0;
    for (std::size_t rank = 0; rank < children.size(); ++rank)
      if (isOver[rank] || board.rows[rank].stage >= 2) ++ended;
    if (ended == children.size()) board.isOver = true;
    if (board.struck > 0 && round.fault == Fault::stop && now() - board.struck > round.continuesAfter)
      ::kill(victim, SIGCONT);
    for (std::size_t rank = 0; rank < children.size(); ++rank)
      if (!isOver[rank] && waitpid(children[rank], nullptr, WNOHANG) > 0) {
        isOver[rank] = true;
        --left;
      }
    if (now() - start > round.seconds + round.continuesAfter + 20) {
      ADD_FAILURE() << what << ": it hangs";
      for (const pid_t child : children) ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Board::Row* first = nullptr;
  for (int rank = 0; rank < round.ranks; ++rank) {
    const Board::Row& row = board.rows[rank];
    if (row.stage == 2) {
      ++summary.decided;
      if (rank != round.victim && board.struck > 0) summary.slowest = std::max(summary.slowest, row.end - board.struck);
      if (first == nullptr) first = &row;
      EXPECT_EQ(row.members, first->members) << what << ", rank " << rank;
      EXPECT_EQ(std::memcmp(&row.id, &first->id, sizeof row.id), 0) << what << ", rank " << rank;
      EXPECT_NE(row.members >> rank & 1UL, 0UL) << what << ", rank " << rank;
    } else if (row.stage == 3) {
      if (rank == round.victim) continue;
      ++summary.failed;
      if (!round.mayFail && !round.isClose()) ADD_FAILURE() << what << ": rank " << rank << ": " << row.message;
    } else {
      ++summary.lost;
    }
  }
  summary.victimEvents = board.rows[round.victim].events;
  munmap(shared, sizeof(Board));
  return summary;
}

int roundsWanted() {
  if (const char* text = std::getenv("AGREEMENT_ROUNDS")) return std::atoi(text);
  return std::getenv("TACC_TEST_QUICK") != nullptr ? 12 : 40;
}

class AgreementFaults : public testing::TestWithParam<bool> {};

TEST_P(AgreementFaults, everyMessageAtWhichTheLeaderIsKilled) {
  for (const int ranks : {2, 4}) {
    int events = 0, unreached = 0;
    for (int event = 1;; ++event) {
      const Round round{ranks, GetParam(), 0, event, Fault::kill, 30, 0};
      const Summary summary = run(round, fmt::format("{} ranks, the leader's event {}", ranks, event));
      if (HasFailure()) return;
      if (summary.lost == 0) {
        // It did not come so far. On a busy machine it may also have come late, and followed another.
        if (++unreached == 3) break;
        --event;
        continue;
      }
      unreached = 0;
      EXPECT_LT(summary.slowest, 5);
      events = event;
    }
    EXPECT_GE(events, 8);
  }
}

TEST_P(AgreementFaults, whoeverIsKilledAtAnyMessage) {
  std::mt19937 random(20261123);
  double slowest = 0;
  for (int i = 0; i < roundsWanted(); ++i) {
    const int ranks = std::uniform_int_distribution(2, 6)(random);
    const Round round{ranks,
                      GetParam(),
                      std::uniform_int_distribution(0, ranks - 1)(random),
                      std::uniform_int_distribution(1, 40)(random),
                      Fault::kill,
                      30,
                      0};
    const Summary summary =
        run(round, fmt::format("round {}: {} ranks, rank {} at event {}", i, ranks, round.victim, round.event));
    slowest = std::max(slowest, summary.slowest);
    if (HasFailure()) return;
  }
  RecordProperty("slowest", fmt::format("{:.3f}", slowest));
}

/// It goes on before the others have given it up, or long after.
TEST_P(AgreementFaults, whoeverIsStoppedAtAnyMessageAndGoesOn) {
  std::mt19937 random(11232026);
  for (int i = 0; i < roundsWanted() / 4; ++i) {
    const int ranks = std::uniform_int_distribution(3, 6)(random);
    Round round{ranks,
                GetParam(),
                std::uniform_int_distribution(0, ranks - 1)(random),
                std::uniform_int_distribution(1, 20)(random),
                Fault::stop,
                6,
                std::uniform_real_distribution(0.01, 5.0)(random),
                true};
    const std::string what = fmt::format("round {}: {} ranks, rank {} at event {} for {} s", i, ranks, round.victim,
                                         round.event, round.continuesAfter);
    if (run(round, what).failed > 0 && !round.isClose()) {
      round.seconds *= 4;  // which tells whether the machine was busy
      round.mayFail = false;
      (void)run(round, what + ", with more time");
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AgreementFaults, testing::Bool(), [](const testing::TestParamInfo<bool>& kind) {
  return std::string(kind.param ? "Tcp" : "Unix");
});

}  // namespace
}  // namespace tacc
