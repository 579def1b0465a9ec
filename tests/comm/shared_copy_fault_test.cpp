// Private memory after a failure, where both ends of a call copy through the kernel, or one gives it to pipes: a rank
// that is stopped or killed at any moment writes into nobody's memory, and gives no result that is not whole.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fault_team.hpp"
#include "support/settings.hpp"

namespace tacc::test {
namespace {

constexpr int ranks = 2;
constexpr double patience = 60;  // s; of the test itself
enum Stage { ended = 2, ready = 5, calling = 7, refilled = 10, released = 20 };

enum class Kind { broadcast, gather, scatter };

struct Round {
  Kind kind;
  int root, victim, signal;
  std::size_t bytes;  // of a block
  double stopAfter;   // s
  bool usesPipes;
};

std::string describe(const Round& round) {
  constexpr const char* kinds[] = {"broadcast", "gather", "scatter"};
  return std::string(kinds[static_cast<int>(round.kind)]) + " from or to " + std::to_string(round.root) + " of " +
         std::to_string(round.bytes) + " bytes, signal " + std::to_string(round.signal) + " to " +
         std::to_string(round.victim) + " after " + std::to_string(round.stopAfter) + " s" +
         (round.usesPipes ? ", through pipes" : "");
}

Round draw(std::mt19937& random) {
  Round round{};
  round.kind = static_cast<Kind>(random() % 3);
  round.root = static_cast<int>(random() % 2);
  round.victim = static_cast<int>(random() % 2);
  round.signal = random() % 4 == 0 ? SIGKILL : SIGSTOP;
  round.bytes = (std::size_t{128} << 10) + 4 * (random() % (std::size_t{1} << 20));
  round.stopAfter = std::uniform_real_distribution<double>(0, 0.02)(random);
  round.usesPipes = random() % 2 == 0;
  return round;
}

std::span<std::uint32_t> map(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::uint32_t*>(memory), bytes / 4};
}

taccResult_t call(const Round& round, std::span<std::uint32_t> send, std::span<std::uint32_t> receive,
                  taccComm_t comm) {
  const std::size_t count = round.bytes / 4;
  switch (round.kind) {
    case Kind::broadcast:
      return taccBroadcast(send.data(), receive.data(), count, taccUint32, round.root, comm, nullptr);
    case Kind::gather:
      return taccGather(send.data(), receive.data(), count, taccUint32, round.root, comm, nullptr);
    case Kind::scatter:
      return taccScatter(send.data(), receive.data(), count, taccUint32, round.root, comm, nullptr);
  }
  return taccInternalError;
}

constexpr std::uint32_t refilledWord = 0xabcdef01;

/// Each rank gives its number and one, but a scatter's root one for each block.
std::size_t countWrong(const Round& round, std::span<const std::uint32_t> receive, int rank) {
  const std::size_t count = round.bytes / 4;
  if (round.kind == Kind::gather && rank != round.root) return 0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < (round.kind == Kind::gather ? ranks : 1) * count; ++i)
    wrong += receive[i] != (round.kind == Kind::gather ? i / count + 1 : static_cast<std::size_t>(round.root) + 1);
  return wrong;
}

void awaitStage(const Report& report, int stage) {
  const double deadline = now() + patience;
  while (report.stage < stage && report.stage != ended && now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_GE(report.stage, stage);
}

void runRank(const Round& round, const taccUniqueId& id, int rank, Report& report) {
  taccComm_t comm = joinTeam(id, ranks, rank, configOf(60, 1));
  if (comm == nullptr) return;
  const std::span<std::uint32_t> send = map(ranks * round.bytes), receive = map(ranks * round.bytes);
  std::ranges::fill(send, static_cast<std::uint32_t>(rank + 1));
  report.stage = ready;
  ASSERT_EQ(call(round, send, receive, comm), taccSuccess) << taccGetLastError(comm);
  report.stage = calling;
  std::size_t wrong = 0;
  while ((report.result = call(round, send, receive, comm)) == taccSuccess) {
    wrong += countWrong(round, receive, rank);
    std::ranges::fill(receive, 0U);
  }
  EXPECT_EQ(wrong, 0u) << "of calls that succeeded";
  report.setMessage(taccGetLastError(comm));
  std::ranges::fill(receive, refilledWord);
  std::ranges::fill(send, refilledWord);
  report.stage = refilled;
  awaitStage(report, released);
  if (std::string(report.message).find("may still write") != std::string::npos) {
    // Only who was stopped in the middle of it could.
    EXPECT_TRUE(round.signal == SIGSTOP && rank != round.victim) << report.message;
    const bool gives = round.kind == Kind::gather ? round.victim != round.root : round.victim == round.root;
    EXPECT_TRUE(gives) << report.message;
    return;
  }
  EXPECT_TRUE(std::ranges::all_of(receive, [](std::uint32_t w) { return w == refilledWord; })) << report.message;
  EXPECT_TRUE(std::ranges::all_of(send, [](std::uint32_t w) { return w == refilledWord; })) << report.message;
}

TEST(SharedCopyFault, nobodyWritesIntoMemoryWhoseCallHasFailed) {
  ::setenv("TACC_SPIN", "2000", 1);  // who waits helps for so long
  const auto seed = numberFrom("TACC_TEST_SEED", 20261129U);
  std::printf("TACC_TEST_SEED=%u\n", seed);
  std::mt19937 random(seed);
  const std::size_t rounds = numberFrom<std::size_t>("TACC_TEST_FENCE_ROUNDS", isQuick() ? 4 : 12);
  for (std::size_t i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    const Round round = draw(random);
    SCOPED_TRACE("round " + std::to_string(i) + ": " + describe(round));
    ::setenv("TACC_CMA", round.usesPipes ? "pipes" : "on", 1);
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) { runRank(round, id, rank, report); });
    for (int rank = 0; rank < ranks; ++rank) ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(rank), calling));
    std::this_thread::sleep_for(std::chrono::duration<double>(round.stopAfter));
    team.signal(round.victim, round.signal);
    const int other = 1 - round.victim;
    ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(other), refilled));
    EXPECT_NE(team.report(other).result, taccSuccess);
    if (round.signal == SIGSTOP) {
      team.signal(round.victim, SIGCONT);
      ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(round.victim), refilled));
      EXPECT_NE(team.report(round.victim).result, taccSuccess);
    }
    for (int rank = 0; rank < ranks; ++rank) team.report(rank).stage = released;
    team.join(round.signal == SIGKILL ? round.victim : -1, patience);
  }
  ::unsetenv("TACC_CMA");
  ::unsetenv("TACC_SPIN");
}

}  // namespace
}  // namespace tacc::test
