// The heap of library memory that a program's large blocks come from, against a simple account of them.
#include "shared_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {
namespace {

using test::ChildProcess;

SharedHeap& heap() {
  static const bool isOpen = [] {
    sharedHeap().open(SharedHeap::Child::copies);
    return true;
  }();
  static_cast<void>(isOpen);
  return sharedHeap();
}

/// Blocks as a program has them: each is full of a number of its own, so one that overlaps another, or has lost what
/// was in it, is found.
class Program {
 public:
  /// `isAlone`: otherwise there may be no block, as during a fork, and who has freed one may find it with another
  /// thread.
  explicit Program(unsigned seed, bool isAlone = true) : random_(seed), isAlone_(isAlone) {}
  ~Program() {
    for (const auto& [block, of] : blocks_) EXPECT_TRUE(heap().free(block));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void step() {
    switch (draw(5)) {
      case 0:
      case 1:
        allocate();
        break;
      case 2:
        resize();
        break;
      default:
        if (blocks_.size() > 12 || draw(2) == 0) freeOne();
    }
  }
  void checkAll() const {
    for (const auto& [block, of] : blocks_) check(block, of);
  }
  /// As a forked child does: what it stores is its own.
  void scribble() {
    for (const auto& [block, of] : blocks_) std::memset(block, 0xcc, of.bytes);
  }

 private:
  struct Block {
    std::size_t bytes;
    unsigned char number;
  };
  std::size_t draw(std::size_t below) { return random_() % below; }
  std::size_t drawBytes() {
    // From a page to some MiB, often about the same.
    const std::size_t magnitude = 12 + draw(11);
    return (std::size_t{1} << magnitude) + draw(std::size_t{1} << magnitude) * draw(2);
  }
  static void check(const unsigned char* block, const Block& of) {
    for (std::size_t i = 0; i < of.bytes; i += i + 64 < of.bytes ? 61 : 1)
      ASSERT_EQ(block[i], of.number) << "byte " << i << " of " << of.bytes;
  }
  void keep(void* memory, std::size_t bytes) {
    auto* const block = static_cast<unsigned char*>(memory);
    const auto number = static_cast<unsigned char>(1 + draw(200));
    std::memset(block, number, bytes);
    blocks_[block] = {bytes, number};
  }
  void allocate() {
    const std::size_t bytes = drawBytes(), alignment = std::size_t{1} << draw(17);
    if (draw(3) == 0) {
      auto* const block = static_cast<unsigned char*>(heap().allocateZeroed(bytes));
      if (block == nullptr && !isAlone_) return;
      ASSERT_NE(block, nullptr);
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], 0) << "byte " << i << " of " << bytes;
      keep(block, bytes);
      return;
    }
    void* const block = heap().allocate(bytes, alignment, draw(2) * 3 * bytes);
    if (block == nullptr && !isAlone_) return;
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    ASSERT_TRUE(heap().holds(block));
    ASSERT_GE(heap().sizeOf(block), bytes);
    keep(block, bytes);
  }
  void resize() {
    if (blocks_.empty()) return;
    const auto found = std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(draw(blocks_.size())));
    const std::size_t bytes = drawBytes(), before = heap().sizeOf(found->first);
    const bool isDone = heap().resize(found->first, bytes);
    ASSERT_TRUE(isDone || bytes > before);
    ASSERT_GE(heap().sizeOf(found->first), isDone ? bytes : before);
    const std::size_t kept = isDone ? std::min(bytes, found->second.bytes) : found->second.bytes;
    check(found->first, {kept, found->second.number});
    keep(found->first, isDone ? bytes : found->second.bytes);
  }
  void freeOne() {
    if (blocks_.empty()) return;
    const auto found = std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(draw(blocks_.size())));
    check(found->first, found->second);
    ASSERT_TRUE(heap().free(found->first));
    if (isAlone_) {
      ASSERT_FALSE(heap().free(found->first)) << "twice";
    }
    blocks_.erase(found);
  }

  std::mt19937 random_;
  bool isAlone_;
  std::map<unsigned char*, Block> blocks_;
};

TEST(SharedHeap, KeepsBlocksApart) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    Program program(seed);
    for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) program.step();
    program.checkAll();
  }
}

TEST(SharedHeap, ServesThreads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      Program program(100 + t, false);
      for (int i = 0; i < 300; ++i) program.step();
      program.checkAll();
    });
  for (std::thread& thread : threads) thread.join();
}

/// Children have copies of the blocks, and the parent goes on with those that it has and with new ones.
TEST(SharedHeap, IsCopiedForChildren) {
  Program before(1);
  for (int i = 0; i < 60; ++i) before.step();
  for (int fork = 0; fork < 4; ++fork) {
    std::array<int, 2> told{};
    ASSERT_EQ(::pipe(told.data()), 0);
    ChildProcess child([&] {
      ::close(told[1]);
      char go = 0;
      const bool isTold = ::read(told[0], &go, 1) == 1;
      before.checkAll();
      before.scribble();
      return isTold && !testing::Test::HasFailure() && heap().allocate(100'000, 64, 0) == nullptr;
    });
    Program after(10 + static_cast<unsigned>(fork));
    for (int i = 0; i < 60; ++i) before.step(), after.step();
    ASSERT_EQ(::write(told[1], "x", 1), 1);
    EXPECT_EQ(child.wait(), 0);
    before.checkAll();
    after.checkAll();
    for (const int end : told) ::close(end);
  }
}

/// While other threads allocate and free.
TEST(SharedHeap, IsForkedAmongThreads) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (unsigned round = 0; !stop; ++round) {
        Program program(1000 * t + round, false);
        for (int i = 0; i < 20; ++i) program.step();
      }
    });
  Program own(7, false);  // which children write over, and the parent still has
  for (int i = 0; i < 15; ++i) {
    for (int step = 0; step < 4; ++step) own.step();
    ChildProcess child([&] {
      own.checkAll();
      own.scribble();
      return !testing::Test::HasFailure();
    });
    EXPECT_EQ(child.wait(), 0);
    own.checkAll();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedHeap, GivesPagesBack) {
  const auto shared = [] {
    std::ifstream file("/proc/self/smaps_rollup");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("Pss_Shmem:")) return std::stoul(line.substr(10)) << 10;
    return ~0ul;
  };
  const std::size_t before = shared();
  if (before == ~0ul) GTEST_SKIP() << "this system does not tell how much memory is shared";
  for (int i = 0; i < 20; ++i) {
    std::vector<void*> blocks;
    for (int b = 0; b < 4; ++b) blocks.push_back(heap().allocate(std::size_t{16} << 20, 64, 0));
    for (void* const block : blocks) std::memset(block, 1, std::size_t{16} << 20);
    for (void* const block : blocks) EXPECT_TRUE(heap().free(block));
  }
  EXPECT_LE(shared(), before + (std::size_t{66} << 20));
}

TEST(SharedHeap, RefusesWhatCannotBe) {
  EXPECT_EQ(heap().allocate(0, 64, 0), nullptr);
  EXPECT_EQ(heap().allocate(SIZE_MAX, 64, 0), nullptr);
  EXPECT_EQ(heap().allocate(SIZE_MAX / 2, 64, 0), nullptr);
  EXPECT_EQ(heap().allocate(100'000, std::size_t{1} << 60, 0), nullptr);
  int other = 0;
  EXPECT_FALSE(heap().holds(&other));
  EXPECT_FALSE(heap().free(&other));
  EXPECT_EQ(heap().sizeOf(&other), 0u);
  EXPECT_FALSE(heap().resize(&other, 8));
  auto* const block = static_cast<char*>(heap().allocate(100'000, 64, 0));
  EXPECT_FALSE(heap().free(block + 64)) << "no block begins there";
  EXPECT_EQ(heap().sizeOf(block + 4096), 0u);
  EXPECT_TRUE(heap().free(block));
}

/// Two ranks, of which the second comes late to an allreduce in a stream. The first forks while it waits in it: then
/// the region is shared with that child, and with no later one.
TEST(SharedHeap, IsCopiedAgainWhenACallHasEnded) {
  taccUniqueId id;
  ASSERT_EQ(taccGetUniqueId(&id), taccSuccess);
  constexpr std::size_t count = 50'000;
  const auto takePart = [&](int rank) {
    taccComm_t comm = nullptr;
    taccStream_t stream = nullptr;
    auto* const sums = static_cast<int*>(heap().allocate(count * sizeof(int), 64, 0));
    if (sums == nullptr || taccCommInitRank(&comm, 2, id, rank) != taccSuccess ||
        taccStreamCreate(&stream) != taccSuccess)
      return false;
    const auto areRight = [&] { return std::all_of(sums, sums + count, [](int sum) { return sum == 3; }); };
    const std::vector<int> own(count, rank + 1);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_EQ(taccAllReduce(own.data(), sums, count, taccInt32, taccSum, comm, stream), taccSuccess);
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ(ChildProcess([] { return true; }).wait(), 0);
    }
    EXPECT_EQ(taccStreamSynchronize(stream), taccSuccess);
    EXPECT_TRUE(areRight());
    ChildProcess later([&] {
      std::memset(sums, 0x55, count * sizeof(int));
      return true;
    });
    EXPECT_EQ(later.wait(), 0);
    EXPECT_TRUE(areRight()) << "a child writes into its parent's memory";
    EXPECT_TRUE(heap().free(sums));
    EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    return !testing::Test::HasFailure();
  };
  ChildProcess other([&] {
    sharedHeap().open(SharedHeap::Child::copies);  // as a rank of its own has it
    return takePart(1);
  });
  EXPECT_TRUE(takePart(0));
  EXPECT_EQ(other.wait(), 0);
}

/// Where devices may have pinned pages, forks change nothing for the parent and its peers.
TEST(SharedHeap, IsNotThereInChildrenBesideDevices) {
  ChildProcess process([] {
    sharedHeap().open(SharedHeap::Child::nothing);
    auto* const block = static_cast<char*>(sharedHeap().allocate(std::size_t{300} << 20, 64, 0));
    std::strcpy(block, "here");
    ChildProcess child([&] {
      block[0] = 'x';
      return true;
    });
    const bool isRight = child.wait() == -SIGSEGV && std::strcmp(block, "here") == 0;
    return isRight && sharedHeap().allocate(100'000, 64, 0) != nullptr && sharedHeap().free(block);
  });
  EXPECT_EQ(process.wait(), 0);
}

/// Blocks that outlive it are freed as others.
TEST(SharedHeapClosed, GivesNone) {
  void* const block = heap().allocate(100'000, 64, 0);
  heap().close();
  EXPECT_EQ(heap().allocate(100'000, 64, 0), nullptr);
  EXPECT_TRUE(heap().free(block));
}

}  // namespace
}  // namespace tacc::mpi
