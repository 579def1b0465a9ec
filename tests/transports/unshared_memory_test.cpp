// Library memory whose pages come when they are touched, and library memory that becomes its process's own.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "transports/shm/library_memory.hpp"
#include "transports/shm/memory_fence.hpp"

namespace tacc {
namespace {

using test::ChildProcess;

constexpr std::size_t page = 4096;

/// Library memory of a pattern, and a peer's mapping of it.
class Unshared : public testing::Test {
 protected:
  Unshared() {
    data_ = static_cast<std::byte*>(allocateLibraryMemory(bytes, Reserve::onTouch));
    const LibrarySegment segment = *findLibrarySegment(data_, bytes);
    peer_ = peers_.add(0, segment.id, duplicate(segment.fd), segment.bytes) + libraryHeaderBytes;
  }
  ~Unshared() override {
    if (data_ != nullptr) freeLibraryMemory(data_);
  }
  void fill(std::size_t salt) {
    for (std::size_t i = 0; i < bytes; ++i) data_[i] = static_cast<std::byte>(i * 7 + i / page + salt);
  }
  std::size_t countOthers(std::size_t salt) const {
    std::size_t others = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      others += data_[i] != static_cast<std::byte>(i * 7 + i / page + salt) ? 1 : 0;
    return others;
  }

  static constexpr std::size_t bytes = 100 * page;
  std::byte* data_ = nullptr;
  std::byte* peer_ = nullptr;
  MappedSegments peers_{1};
};

TEST_F(Unshared, takesPagesWhenTheyAreTouched) {
  const LibrarySegment segment = *findLibrarySegment(data_, bytes);
  const auto committed = [&] {
    struct stat status {};
    EXPECT_EQ(::fstat(segment.fd, &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  };
  EXPECT_LE(committed(), 2 * page);
  data_[50 * page] = std::byte{1};
  EXPECT_EQ(peer_[50 * page], std::byte{1});
  if (committed() > 8 * page) GTEST_SKIP() << "this system gives shared memory in huge pages";
  fill(0);
  EXPECT_GE(committed(), bytes);
}

TEST_F(Unshared, isReachedByPeersUntilThen) {
  fill(0);
  peer_[3] = std::byte{0x77};
  EXPECT_EQ(data_[3], std::byte{0x77});
  fill(0);
  unshareLibraryMemory(data_);
  EXPECT_EQ(countOthers(0), 0u) << "contents stay";
  EXPECT_FALSE(findLibrarySegment(data_, bytes));
  EXPECT_FALSE(findLibrarySegment(data_ + 5 * page, 1));
  EXPECT_TRUE(segmentIsFreed(peer_ - libraryHeaderBytes)) << "peers drop it";
  fill(9);
  EXPECT_EQ(peer_[0], std::byte{0}) << "what is stored now is for nobody else";
  unshareLibraryMemory(data_);
  EXPECT_EQ(countOthers(9), 0u);
}

TEST_F(Unshared, isNotUnitedAndNotFenced) {
  fill(0);
  ASSERT_EQ(fenceLibraryMemory(data_ + 3 * page, 5 * page + 100), "");  // it has pieces before, and others had
  unshareLibraryMemory(data_);
  EXPECT_FALSE(uniteLibraryMemory(data_, bytes));
  EXPECT_EQ(fenceLibraryMemory(data_, bytes), "");
  EXPECT_FALSE(findLibrarySegment(data_ + page, 1));
  EXPECT_EQ(countOthers(0), 0u);
}

TEST_F(Unshared, isCopiedForChildren) {
  fill(1);
  unshareLibraryMemory(data_);
  std::atomic<int>* const told = reinterpret_cast<std::atomic<int>*>(allocateLibraryMemory(page));
  const auto wait = [&](int stage) {
    while (told->load() < stage) std::this_thread::yield();
  };
  ChildProcess child([&] {
    wait(1);
    const bool isAsItWas = countOthers(1) == 0;  // what the parent stores since is not seen
    fill(3);
    told->store(2);
    wait(3);
    return isAsItWas && countOthers(3) == 0;
  });
  fill(2);
  told->store(1);
  wait(2);
  EXPECT_EQ(countOthers(2), 0u) << "what the child stores is not seen";
  freeLibraryMemory(std::exchange(data_, nullptr));
  told->store(3);
  EXPECT_EQ(child.wait(), 0);
  freeLibraryMemory(told);
}

/// Also of pages that neither has touched since.
TEST_F(Unshared, leavesChildrenTheirCopiesWhenItIsFreed) {
  fill(1);
  unshareLibraryMemory(data_);
  std::atomic<int>* const told = reinterpret_cast<std::atomic<int>*>(allocateLibraryMemory(page));
  ChildProcess child([&] {
    while (told->load() == 0) std::this_thread::yield();
    return countOthers(1) == 0;
  });
  freeLibraryMemory(std::exchange(data_, nullptr));
  told->store(1);
  EXPECT_EQ(child.wait(), 0);
  freeLibraryMemory(told);
}

TEST_F(Unshared, losesNoStore) {
  for (int round = 0; round < 30; ++round) {
    auto* const memory = static_cast<std::byte*>(allocateLibraryMemory(16 * page, Reserve::onTouch));
    std::atomic<bool> stop = false;
    std::atomic<int> running = 0;
    std::atomic<std::uint32_t> lost = 0;
    const auto work = [&](std::byte* place) {
      auto* const word = reinterpret_cast<volatile std::uint32_t*>(place);
      std::uint32_t value = 0, wrong = 0;
      *word = 0;
      ++running;
      while (!stop) {
        wrong += *word != value ? 1 : 0;
        *word = ++value;
      }
      lost += wrong + (*word != value ? 1 : 0);
    };
    std::thread one([&] { work(memory + 64); }), other([&] { work(memory + 15 * page); });
    while (running < 2) std::this_thread::yield();
    unshareLibraryMemory(memory);
    stop = true;
    one.join();
    other.join();
    freeLibraryMemory(memory);
    ASSERT_EQ(lost, 0u);
  }
}

TEST_F(Unshared, isRefusedWhileACallHasItsOutputThere) {
  fill(0);
  OutputUse use;
  use.begin(data_ + 50 * page, page);
  EXPECT_THROW(unshareLibraryMemory(data_), Error);
  EXPECT_TRUE(findLibrarySegment(data_, bytes));
  peer_[50 * page] = std::byte{0x55};
  EXPECT_EQ(data_[50 * page], std::byte{0x55});
  use.end();
  unshareLibraryMemory(data_);
  EXPECT_FALSE(findLibrarySegment(data_, bytes));
}

TEST_F(Unshared, isLibraryMemoryFromItsStart) {
  std::vector<std::byte> other(10 * page);
  EXPECT_THROW(unshareLibraryMemory(other.data()), Error);
  EXPECT_THROW(unshareLibraryMemory(data_ + page), Error);
  EXPECT_THROW(unshareLibraryMemory(nullptr), Error);
  ASSERT_TRUE(adoptMemory(other.data(), other.size()));
  const auto inner = reinterpret_cast<std::uintptr_t>(other.data() + page - 1) / page * page;
  EXPECT_THROW(unshareLibraryMemory(reinterpret_cast<void*>(inner)), Error);
  releaseAdopted(other.data());
  ChildProcess child([&] {
    EXPECT_THROW(unshareLibraryMemory(data_), Error);
    return !HasFailure() && findLibrarySegment(data_, bytes).has_value();
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace tacc
