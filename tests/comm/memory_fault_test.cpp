// Memory after a failure: a rank that is stopped inside a call and continues when the others have gone on writes into
// nobody's buffers.
//
// By default a few rounds with little memory. TACC_TEST_FENCE_ROUNDS and TACC_TEST_FENCE_MIB (of each buffer) make it
// more: 200 and 256 take about ten minutes and 2 GiB. TACC_TEST_SEED repeats a run.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fault_team.hpp"
#include "support/settings.hpp"
#include "transports/shm/library_memory.hpp"

namespace tacc::test {
namespace {

constexpr int ranks = 3;
constexpr int victim = 2;
constexpr double patience = 120;  // s; of the test itself
/// How far a rank is, and on `go` and `released` how far the test lets it. `ended` is set by the harness.
enum Stage { ended = 2, ready = 5, go = 6, calling = 7, refilled = 10, released = 20 };

std::size_t bufferBytes() { return numberFrom<std::size_t>("TACC_TEST_FENCE_MIB", isQuick() ? 8 : 32) << 20; }

/// Polls as the harness does: what is waited for is in another process.
void awaitStage(const Report& report, int stage) {
  const double deadline = now() + patience;
  while (report.stage < stage && report.stage != ended && now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_GE(report.stage, stage);
}

enum class Source { library, registered, plain };  // plain: read through the kernel, where that is allowed
enum class Kind { outOfPlace, inPlace, allGather, allToAll };

/// What a round draws.
struct Round {
  Source source;
  Kind kind;
  std::size_t skipped;  // bytes at the beginning of the buffers that the calls leave out; at their end as many
  double stopAfter;     // of the time that a call takes
};

Round draw(std::mt19937& random) {
  Round round;
  round.source = std::array{Source::library, Source::library, Source::registered, Source::plain}[random() % 4];
  round.kind = random() % 2 == 0 ? Kind::outOfPlace : static_cast<Kind>(random() % 4);
  round.skipped = random() % 3 == 0 ? 4 * (1 + random() % 3000) : 0;
  round.stopAfter = std::uniform_real_distribution<double>(0, 3)(random);
  return round;
}

std::string describe(const Round& round) {
  constexpr const char* sources[] = {"library", "registered", "plain"};
  return std::string(sources[static_cast<int>(round.source)]) + " memory, kind " +
         std::to_string(static_cast<int>(round.kind)) + ", " + std::to_string(round.skipped) +
         " bytes left out at each end, stopped after " + std::to_string(round.stopAfter) + " calls";
}

/// A buffer of one rank.
struct Buffer {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  void* handle = nullptr;  // of a registration

  Buffer(Source source, std::size_t size, taccComm_t comm) : bytes(size) {
    if (source == Source::library) {
      void* memory = nullptr;
      EXPECT_EQ(taccMemAlloc(&memory, bytes), taccSuccess) << taccGetLastError(nullptr);
      data = static_cast<std::byte*>(memory);
      return;
    }
    data = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (source == Source::plain) return;
    EXPECT_EQ(taccCommRegister(comm, data, bytes, &handle), taccSuccess) << taccGetLastError(comm);
  }
  std::span<std::uint64_t> words() const { return {reinterpret_cast<std::uint64_t*>(data), bytes / 8}; }
};

taccResult_t call(const Round& round, const Buffer& send, const Buffer& receive, taccComm_t comm, int size) {
  std::byte* const from = send.data + round.skipped;
  std::byte* const to = receive.data + round.skipped;
  const std::size_t count = (receive.bytes - 2 * round.skipped) / sizeof(float);
  const std::size_t block = count / static_cast<std::size_t>(size);
  switch (round.kind) {
    case Kind::outOfPlace:
      return taccAllReduce(from, to, count, taccFloat32, taccSum, comm, nullptr);
    case Kind::inPlace:
      return taccAllReduce(to, to, count, taccFloat32, taccSum, comm, nullptr);
    case Kind::allGather:
      return taccAllGather(from, to, block, taccFloat32, comm, nullptr);
    case Kind::allToAll:
      return taccAllToAll(from, to, block, taccFloat32, comm, nullptr);
  }
  return taccInternalError;
}

std::uint64_t patternOf(int rank, std::size_t word) {
  return (static_cast<std::uint64_t>(rank) + 1) * 0x9E37'79B9'7F4A'7C15ULL ^ word * 0x1000'0001ULL;
}
void refill(const Buffer& buffer, int rank) {
  const auto words = buffer.words();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = patternOf(rank, i);
}
std::size_t countChanged(const Buffer& buffer, int rank) {
  const auto words = buffer.words();
  std::size_t changed = 0;
  for (std::size_t i = 0; i < words.size(); ++i) changed += words[i] != patternOf(rank, i) ? 8 : 0;
  return changed;
}

std::span<float> floatsOf(const Buffer& buffer) { return {reinterpret_cast<float*>(buffer.data), buffer.bytes / 4}; }

/// Looks at one result on every page, where every rank gave its number and one. In place nothing is known beforehand.
std::size_t countWrong(const Round& round, const Buffer& receive) {
  if (round.kind == Kind::inPlace) return 0;
  const std::size_t count = (receive.bytes - 2 * round.skipped) / sizeof(float);
  const auto results = floatsOf(receive).subspan(round.skipped / sizeof(float), count);
  const std::size_t block = count / ranks;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ranks * block; i += 1024)
    wrong += results[i] != (round.kind == Kind::outOfPlace ? 6.F : static_cast<float>(i / block + 1)) ? 1 : 0;
  return wrong;
}

/// Sums on a communicator of the survivors, in the same memory.
void expectRightSums(taccComm_t comm, const Buffer& send, const Buffer& receive, int rank, float factor) {
  const std::size_t count = receive.bytes / sizeof(float);
  auto* const in = reinterpret_cast<float*>(send.data);
  auto* const out = reinterpret_cast<float*>(receive.data);
  for (std::size_t i = 0; i < count; ++i) in[i] = factor * static_cast<float>(rank + 1) + static_cast<float>(i % 64);
  ASSERT_EQ(taccAllReduce(in, out, count, taccFloat32, taccSum, comm, nullptr), taccSuccess) << taccGetLastError(comm);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += out[i] != factor * 3 + 2 * static_cast<float>(i % 64) ? 1 : 0;
  EXPECT_EQ(wrong, 0u) << "of " << count << " sums";
}

bool isReachable(const Buffer& buffer) { return findLibrarySegment(buffer.data, buffer.bytes).has_value(); }

void runRank(const Round& round, const taccUniqueId& id, int rank, Report& report) {
  // Time enough for calls on a loaded machine; they begin together.
  taccComm_t comm = joinTeam(id, ranks, rank, configOf(60, bufferBytes() > 64 << 20 ? 2 : 1));
  if (comm == nullptr) return;
  const taccConfig_t patient = configOf(60, 60);
  taccComm_t pair = nullptr;  // of the survivors, from before the failure
  ASSERT_EQ(taccCommSplit(comm, rank == victim ? TACC_SPLIT_NOCOLOR : 0, rank, &pair, &patient), taccSuccess);
  const Buffer send(round.source, bufferBytes(), comm);
  const Buffer receive(round.source, bufferBytes(), comm);
  if (pair != nullptr) expectRightSums(pair, send, receive, rank, 1);
  std::ranges::fill(floatsOf(send), static_cast<float>(rank + 1));
  std::ranges::fill(floatsOf(receive), 0.F);
  report.stage = ready;
  awaitStage(report, go);
  ASSERT_EQ(call(round, send, receive, comm, ranks), taccSuccess) << taccGetLastError(comm);
  const double start = now();
  ASSERT_EQ(call(round, send, receive, comm, ranks), taccSuccess) << taccGetLastError(comm);
  report.value = now() - start;
  report.stage = calling;
  std::size_t wrong = 0;
  while ((report.result = call(round, send, receive, comm, ranks)) == taccSuccess) wrong += countWrong(round, receive);
  EXPECT_EQ(wrong, 0u) << "results of calls that succeeded";
  report.setMessage(taccGetLastError(comm));
  if (rank == victim) {
    report.stage = refilled;
    return awaitStage(report, released);
  }
  EXPECT_EQ(std::string(report.message).find("may still write"), std::string::npos) << report.message;
  // The memory is this rank's own from now on.
  refill(send, rank);
  refill(receive, rank);
  taccComm_t rest = nullptr;
  ASSERT_EQ(taccCommShrink(comm, &victim, 1, &rest, &patient, 0), taccSuccess) << taccGetLastError(comm);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  report.stage = refilled;
  awaitStage(report, released);
  const std::size_t changed = countChanged(receive, rank) + countChanged(send, rank);
  EXPECT_EQ(changed, 0u) << "bytes of rank " << rank << " after " << report.message;
  report.value = static_cast<double>(changed);
  expectRightSums(rest, send, receive, rank, 2);
  expectRightSums(pair, send, receive, rank, 3);
  if (round.skipped == 0 && round.source != Source::plain) {
    EXPECT_TRUE(isReachable(send));
    EXPECT_TRUE(isReachable(receive));
  }
  EXPECT_EQ(taccCommDestroy(rest), taccSuccess);
  EXPECT_EQ(taccCommDestroy(pair), taccSuccess);
  if (round.source == Source::library) {
    EXPECT_EQ(taccMemFree(send.data), taccSuccess);
    EXPECT_EQ(taccMemFree(receive.data), taccSuccess);
  }
}

/// `change` changes a drawn round.
void runRounds(std::size_t rounds, const std::function<void(Round&)>& change) {
  const auto seed = numberFrom("TACC_TEST_SEED", 20261123U);
  std::printf("TACC_TEST_SEED=%u\n", seed);
  std::mt19937 random(seed);
  std::size_t clean = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    Round round = draw(random);
    change(round);
    SCOPED_TRACE("round " + std::to_string(i) + ": " + describe(round));
    if (testing::Test::HasFailure()) break;  // a child would begin with it
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) { runRank(round, id, rank, report); });
    for (int rank = 0; rank < ranks; ++rank) ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(rank), ready));
    for (int rank = 0; rank < ranks; ++rank) team.report(rank).stage = go;
    for (int rank = 0; rank < ranks; ++rank) ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(rank), calling));
    // The moment is drawn; nothing is waited for.
    std::this_thread::sleep_for(std::chrono::duration<double>(round.stopAfter * team.report(0).value));
    team.signal(victim, SIGSTOP);
    for (const int rank : {0, 1}) ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(rank), refilled));
    team.signal(victim, SIGCONT);
    ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(victim), refilled));
    EXPECT_NE(team.report(victim).result, taccSuccess);
    for (int rank = 0; rank < ranks; ++rank) team.report(rank).stage = released;
    team.join(-1, patience);
    clean += team.report(0).value == 0 && team.report(1).value == 0 ? 1 : 0;
  }
  std::printf("%zu of %zu rounds without a changed byte\n", clean, rounds);
  std::fflush(stdout);
}

TEST(MemoryAfterFailure, isNotWrittenByARankThatWasStopped) {
  runRounds(numberFrom("TACC_TEST_FENCE_ROUNDS", isQuick() ? 3 : 8), [](Round&) {});
}

/// It reads what the others have put in place of what it meant, and must not take it for a result.
TEST(MemoryAfterFailure, isNoResultOfARankThatIsLate) {
  bool isPlain = false;
  runRounds(isQuick() ? 2 : 4, [&](Round& round) {
    round.kind = Kind::allGather;
    round.source = std::exchange(isPlain, !isPlain) ? Source::plain : Source::library;
  });
}

/// The ranks exchange messages, as between hosts: over TCP, or what TACC_TRANSPORT says.
TEST(MemoryAfterFailure, isNotWrittenByMessagesThatComeLate) {
  ASSERT_EQ(setenv("TACC_SHM", "off", 1), 0);
  ASSERT_EQ(setenv("TACC_TRANSPORT", "tcp", 0), 0);
  runRounds(numberFrom("TACC_TEST_FENCE_ROUNDS", isQuick() ? 2 : 4),
            [](Round& round) { round.source = Source::plain; });
  unsetenv("TACC_SHM");
}

/// Sums of two ranks in `values`, again and again, until all say stop. Returns how many were wrong.
std::size_t sumUntil(const std::atomic<bool>& stop, taccComm_t comm, int rank, std::span<float> values) {
  std::size_t wrong = 0;
  for (int turn = 1;; ++turn) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(turn % 100 * (rank + 1) + i % 50);
    EXPECT_EQ(taccAllReduce(values.data(), values.data(), values.size(), taccFloat32, taccSum, comm, nullptr),
              taccSuccess)
        << taccGetLastError(comm);
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += values[i] != static_cast<float>(turn % 100 * 3 + i % 50 * 2) ? 1 : 0;
    int end = stop ? 1 : 0;
    EXPECT_EQ(taccAllReduce(&end, &end, 1, taccInt32, taccMax, comm, nullptr), taccSuccess) << taccGetLastError(comm);
    if (end != 0) return wrong;
  }
}

/// The call that fails and the calls of the survivors' own communicator, in another thread, have outputs in one
/// allocation, and share a page of it.
void runNeighbours(std::size_t bytes, const taccUniqueId& id, int rank, Report& report) {
  const taccConfig_t patient = configOf(60, 60);
  taccComm_t comm = joinTeam(id, ranks, rank, configOf(60, 1));
  if (comm == nullptr) return;
  taccComm_t pair = nullptr;
  ASSERT_EQ(taccCommSplit(comm, rank == victim ? TACC_SPLIT_NOCOLOR : 0, rank, &pair, &patient), taccSuccess);
  const Buffer send(Source::library, 4 << 20, comm);
  const Buffer shared(Source::library, 8 << 20, comm);
  std::atomic<bool> stop = false;
  std::size_t wrong = 0;
  std::thread neighbour([&] {
    if (pair != nullptr) wrong = sumUntil(stop, pair, rank, floatsOf(shared).subspan(bytes / sizeof(float)));
  });
  report.stage = calling;
  while ((report.result = taccAllReduce(send.data, shared.data, bytes / sizeof(float), taccFloat32, taccSum, comm,
                                        nullptr)) == taccSuccess)
    continue;
  report.setMessage(taccGetLastError(comm));
  if (rank != victim) std::memset(shared.data, 0x5a, bytes);
  report.stage = refilled;
  awaitStage(report, released);
  stop = true;
  neighbour.join();
  EXPECT_EQ(wrong, 0u) << "sums of the other communicator";
  if (rank == victim) return;
  EXPECT_EQ(std::count(shared.data, shared.data + bytes, std::byte{0x5a}), static_cast<std::ptrdiff_t>(bytes));
  EXPECT_EQ(taccCommDestroy(pair), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(MemoryAfterFailure, leavesCallsOfAnotherCommunicatorAlone) {
  const auto seed = numberFrom("TACC_TEST_SEED", 20261123U);
  std::mt19937 random(seed);
  for (int round = 0; round < (isQuick() ? 2 : 5); ++round) {
    const std::size_t bytes = (2 << 20) + 4 * (1 + random() % 300'000);
    SCOPED_TRACE(std::to_string(bytes) + " bytes, TACC_TEST_SEED=" + std::to_string(seed));
    Team team(ranks,
              [bytes](const taccUniqueId& id, int rank, Report& report) { runNeighbours(bytes, id, rank, report); });
    for (int rank = 0; rank < ranks; ++rank) ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(rank), calling));
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 50));  // a drawn moment
    team.signal(victim, SIGSTOP);
    for (const int rank : {0, 1}) ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(rank), refilled));
    team.signal(victim, SIGCONT);
    ASSERT_NO_FATAL_FAILURE(awaitStage(team.report(victim), refilled));
    for (int rank = 0; rank < ranks; ++rank) team.report(rank).stage = released;
    team.join(-1, patience);
  }
}

}  // namespace
}  // namespace tacc::test
