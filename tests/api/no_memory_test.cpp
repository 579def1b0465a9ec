// Calls of a thread that the process has no memory left for: errors, and never the end of the process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "support/child_process.hpp"
#include "tacc/tacc.h"

namespace tacc::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool hasOtherAllocator = true;
#else
constexpr bool hasOtherAllocator = false;
#endif

/// Nothing can be allocated any more, by any thread: not even what glibc notes of a thread.
void takeAllMemory() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit now{pages * 4096, pages * 4096};
  ::setrlimit(RLIMIT_AS, &now);
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{1} << 12, std::size_t{64}, std::size_t{1}})
    while (std::malloc(bytes) != nullptr) {
    }
}

/// Whether `calls` returns true in a thread that has called nothing before and has no memory.
bool holdsWithoutMemory(const std::function<bool(taccComm_t)>& calls) {
  ChildProcess child([&] {
    taccComm_t comm = nullptr;
    taccUniqueId id;
    if (taccGetUniqueId(&id) != taccSuccess || taccCommInitRank(&comm, 1, id, 0) != taccSuccess) return false;
    std::atomic<int> turn{0};
    bool holds = false;
    std::thread thread([&] {
      while (turn == 0) std::this_thread::yield();
      takeAllMemory();
      holds = calls(comm);
      turn = 2;
      for (;;) std::this_thread::yield();  // it has no memory to end with
    });
    turn = 1;
    while (turn != 2) std::this_thread::yield();
    ::_exit(holds ? 0 : 1);
  });
  return child.wait() == 0;
}

class NoMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (hasOtherAllocator) GTEST_SKIP() << "a sanitizer's allocator ends the process where malloc() returns null";
  }
};

TEST_F(NoMemory, anErrorHasItsText) {
  EXPECT_TRUE(holdsWithoutMemory([](taccComm_t) {
    return taccAllReduce(nullptr, nullptr, 1, taccInt32, taccSum, nullptr, nullptr) != taccSuccess &&
           std::strcmp(taccGetLastError(nullptr), "out of memory") == 0;
  }));
}

TEST_F(NoMemory, anErrorOfACommunicatorHasItsText) {
  EXPECT_TRUE(holdsWithoutMemory([](taccComm_t comm) {
    return taccAllReduce(nullptr, nullptr, 1, taccInt32, taccSum, comm, nullptr) != taccSuccess &&
           std::strcmp(taccGetLastError(comm), "out of memory") == 0;
  }));
}

TEST_F(NoMemory, aGroupSaysThatItsCallsAreLost) {
  EXPECT_TRUE(holdsWithoutMemory([](taccComm_t comm) {
    int number = 1;
    return taccGroupStart() == taccSuccess &&
           taccAllReduce(&number, &number, 1, taccInt32, taccSum, comm, nullptr) != taccSuccess &&
           taccGroupEnd() != taccSuccess && std::strcmp(taccGetLastError(nullptr), "out of memory") == 0 &&
           taccGroupEnd() != taccSuccess;
  }));
}

}  // namespace
}  // namespace tacc::test
