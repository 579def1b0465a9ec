// Threads that the library starts are none of the program's: no signal of the program's is handled in one.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

std::set<std::string> threadsOfProcess() {
  std::set<std::string> numbers;
  DIR* const folder = ::opendir("/proc/self/task");
  while (const dirent* const one = ::readdir(folder))
    if (one->d_name[0] != '.') numbers.insert(one->d_name);
  ::closedir(folder);
  return numbers;
}

/// The signals that a thread blocks, a bit for each; all of them where it has just ended.
std::uint64_t blockedIn(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line == "Threads:\t0") break;  // the kernel has taken its signals away, and shows none as blocked
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return ~std::uint64_t{0};
}

constexpr std::uint64_t bitsOf(std::initializer_list<int> numbers) {
  std::uint64_t bits = 0;
  for (const int number : numbers) bits |= std::uint64_t{1} << (number - 1);
  return bits;
}

constexpr std::uint64_t all = ~std::uint64_t{0};
constexpr std::uint64_t faults = bitsOf({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS});
/// Which nobody can block: two of the kernel's, and two that the C library keeps to itself.
constexpr std::uint64_t unblocked = bitsOf({SIGKILL, SIGSTOP, 32, 33});

/// Every thread that is not of `before` leaves the program's signals alone, but takes its own faults. How many there
/// are.
std::size_t expectQuiet(const std::set<std::string>& before, const std::string& what) {
  std::size_t seen = 0;
  for (const std::string& thread : threadsOfProcess()) {
    if (before.contains(thread)) continue;
    ++seen;
    std::uint64_t blocked = blockedIn(thread);
    // A thread that is being made blocks all for a moment.
    for (int look = 0; look < 1000 && (blocked & faults) != 0 && blocked != all; ++look) {
      ::usleep(1000);
      blocked = blockedIn(thread);
    }
    EXPECT_EQ(blocked | faults | unblocked, all) << what;
    if (blocked != all) {
      EXPECT_EQ(blocked & faults, 0u) << what;
    }
  }
  return seen;
}

TEST(HiddenThreads, LeaveSignalsToTheProgram) {
  Team team(1, [](const taccUniqueId& id, int, Report&) {
    std::mt19937 draw(20261129);
    sigset_t own;
    std::atomic<std::size_t> seenInGroups{0};  // some have ended before another one looks
    for (int round = 0; round < 12; ++round) {
      // A mask of the program's own, which must be the same afterwards.
      sigemptyset(&own);
      for (int signal = 1; signal < 32; ++signal)
        if (signal != SIGKILL && signal != SIGSTOP && draw() % 4 == 0) sigaddset(&own, signal);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&own, fault);
      ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &own, nullptr), 0);
      const std::set<std::string> before = threadsOfProcess();
      switch (draw() % 3) {
        case 0: {
          std::vector<taccStream_t> streams(1 + draw() % 4);
          for (taccStream_t& stream : streams) ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
          EXPECT_EQ(expectQuiet(before, "streams"), streams.size());
          for (taccStream_t stream : streams) EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
          break;
        }
        case 1: {
          taccConfig_t config = configOf(30, 30);
          config.blocking = 0;
          taccUniqueId another = id;
          ASSERT_EQ(taccGetUniqueId(&another), taccSuccess);
          taccComm_t comm = nullptr;
          ASSERT_EQ(taccCommInitRankConfig(&comm, 2, another, 0, &config), taccInProgress);  // the other never comes
          EXPECT_EQ(expectQuiet(before, "a joining"), 1u);
          EXPECT_EQ(taccCommAbort(comm), taccSuccess);
          break;
        }
        default: {  // a group's calls on several communicators, each in a thread, of which one looks
          struct Look {
            std::set<std::string> before;
            std::atomic<std::size_t>& seen;
          } look{before, seenInGroups};
          look.before.insert(std::to_string(::getpid()));
          std::vector<taccComm_t> comms(2);
          std::vector<taccComm_t> others(2);
          ASSERT_EQ(taccCommInitAll(comms.data(), 2, nullptr), taccSuccess);
          ASSERT_EQ(taccCommInitAll(others.data(), 2, nullptr), taccSuccess);
          std::vector<taccRedOp_t> operators(4);
          const auto add = [](void* accumulated, const void* next, std::size_t count, taccDataType_t, void* context) {
            if (auto* const mine = static_cast<Look*>(context); mine != nullptr)
              mine->seen += expectQuiet(mine->before, "calls of a group");
            for (std::size_t i = 0; i < count; ++i)
              static_cast<int*>(accumulated)[i] += static_cast<const int*>(next)[i];
          };
          std::vector<int> sums(4, 1);
          ASSERT_EQ(taccGroupStart(), taccSuccess);
          for (std::size_t rank = 0; rank < 2; ++rank) {
            ASSERT_EQ(taccRedOpCreateUser(&operators[rank], add, &look, 1, comms[rank]), taccSuccess);
            ASSERT_EQ(taccRedOpCreateUser(&operators[2 + rank], add, nullptr, 1, others[rank]), taccSuccess);
            EXPECT_EQ(taccAllReduce(&sums[rank], &sums[rank], 1, taccInt32, operators[rank], comms[rank], nullptr),
                      taccSuccess);
            EXPECT_EQ(taccAllReduce(&sums[2 + rank], &sums[2 + rank], 1, taccInt32, operators[2 + rank], others[rank],
                                    nullptr),
                      taccSuccess);
          }
          EXPECT_EQ(taccGroupEnd(), taccSuccess);
          EXPECT_EQ(sums, std::vector<int>(4, 2));
          for (std::size_t rank = 0; rank < 2; ++rank) {
            EXPECT_EQ(taccCommDestroy(comms[rank]), taccSuccess);
            EXPECT_EQ(taccCommDestroy(others[rank]), taccSuccess);
          }
        }
      }
      sigset_t after;
      ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
      for (int signal = 1; signal < 32; ++signal) EXPECT_EQ(sigismember(&own, signal), sigismember(&after, signal));
    }
    EXPECT_GT(seenInGroups, 0u);
  });
  team.join();
}

}  // namespace
}  // namespace tacc::test
