// fenceLibraryMemory and uniteLibraryMemory: late writers lose their way into memory, its owner keeps all of it.
#include "transports/shm/memory_fence.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "transports/shm/library_memory.hpp"

namespace tacc {
namespace {

constexpr std::size_t page = 4096;

/// Library memory of whole pages, filled with a pattern, and a peer's mapping of it as it was at first.
class Fenced : public testing::Test {
 protected:
  explicit Fenced(std::size_t bytes = 64 * page) { make(bytes); }
  ~Fenced() override { freeLibraryMemory(data_); }

  void make(std::size_t bytes) {
    if (data_ != nullptr) freeLibraryMemory(data_);
    bytes_ = bytes;
    data_ = static_cast<std::byte*>(allocateLibraryMemory(bytes));
    fill();
    const LibrarySegment segment = *findLibrarySegment(data_, bytes);
    id_ = segment.id;
    file_ = duplicate(segment.fd);
    late_ = peers_.add(0, id_, duplicate(segment.fd), segment.bytes) + libraryHeaderBytes;
  }
  static std::byte patternOf(std::size_t i) { return static_cast<std::byte>(i * 7 + i / page); }
  void fill() {
    for (std::size_t i = 0; i < bytes_; ++i) data_[i] = patternOf(i);
  }
  std::size_t countChanged() const {
    std::size_t changed = 0;
    for (std::size_t i = 0; i < bytes_; ++i) changed += data_[i] != patternOf(i) ? 1 : 0;
    return changed;
  }
  /// What a late rank does.
  void writeLate(std::size_t begin, std::size_t end) { std::memset(late_ + begin, 0xee, end - begin); }
  std::size_t committedBytes() const {
    struct stat status {};
    EXPECT_EQ(::fstat(file_.get(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t id_ = 0;
  FileDescriptor file_;  // the first one
  MappedSegments peers_{1};
  std::byte* late_ = nullptr;
};

TEST_F(Fenced, keepsItsContentsAndLateWritersOut) {
  EXPECT_EQ(fenceLibraryMemory(data_, bytes_), "");
  EXPECT_EQ(countChanged(), 0u);
  writeLate(0, bytes_);
  EXPECT_EQ(countChanged(), 0u);
}

TEST_F(Fenced, asAWholeIsANewSegmentAndTheOldOneIsFreed) {
  ASSERT_EQ(fenceLibraryMemory(data_, bytes_), "");
  const auto segment = findLibrarySegment(data_, bytes_);
  ASSERT_TRUE(segment);
  EXPECT_NE(segment->id, id_);
  EXPECT_TRUE(segmentIsFreed(late_ - libraryHeaderBytes));
  EXPECT_LE(committedBytes(), page);
  // A peer that maps the new one reaches the memory, at the same offsets.
  std::byte* mapped = peers_.add(0, segment->id, duplicate(segment->fd), segment->bytes);
  EXPECT_EQ(std::memcmp(mapped + (data_ - segment->base), data_, bytes_), 0);
  mapped[data_ - segment->base + 5 * static_cast<std::ptrdiff_t>(page)] = std::byte{0x55};
  EXPECT_EQ(data_[5 * page], std::byte{0x55});
}

TEST_F(Fenced, isFencedAgainAndAgain) {
  const int descriptors = test::countOpenDescriptors();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(fenceLibraryMemory(data_, bytes_), "");
  EXPECT_LE(test::countOpenDescriptors(), descriptors);  // the first file's is closed, the last's is open
  EXPECT_EQ(countChanged(), 0u);
  EXPECT_TRUE(findLibrarySegment(data_, bytes_));
}

TEST_F(Fenced, isFencedInAnyPart) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    make(1 + random() % (40 * page));
    for (int part = 0; part < 3; ++part) {
      // Boundaries of pages are as likely as others.
      const auto drawPlace = [&] {
        const std::size_t place = random() % (bytes_ + 1);
        return random() % 2 == 0 ? place / page * page : place;
      };
      const auto [begin, end] = std::minmax({drawPlace(), drawPlace()});
      SCOPED_TRACE(fmt::format("round {}: bytes {} to {} of {}", round, begin, end, bytes_));
      ASSERT_EQ(fenceLibraryMemory(data_ + begin, end - begin), "");
      ASSERT_EQ(countChanged(), 0u);
      writeLate(begin, end);
      ASSERT_EQ(countChanged(), 0u);
      fill();
      // United, all that is in whole pages is one segment again.
      const std::size_t first = (begin + page - 1) / page * page;
      const std::size_t last = end == bytes_ ? bytes_ : end / page * page;
      if (first < last) {
        ASSERT_TRUE(findLibrarySegment(data_ + first, last - first));
      }
      if (random() % 2 == 0) {
        ASSERT_TRUE(findLibrarySegment(data_, bytes_) || uniteLibraryMemory(data_, bytes_));
        ASSERT_TRUE(findLibrarySegment(data_, bytes_));
      }
      ASSERT_EQ(countChanged(), 0u);
    }
  }
}

TEST_F(Fenced, leavesTheRestToItsPeers) {
  ASSERT_EQ(fenceLibraryMemory(data_ + 4 * page, 8 * page), "");
  EXPECT_EQ(findLibrarySegment(data_, 4 * page)->id, id_);
  EXPECT_EQ(findLibrarySegment(data_ + 12 * page, bytes_ - 12 * page)->id, id_);
  EXPECT_FALSE(findLibrarySegment(data_, 4 * page + 1));
  EXPECT_FALSE(segmentIsFreed(late_ - libraryHeaderBytes));
  late_[page] = std::byte{0x11};
  late_[12 * page] = std::byte{0x22};
  EXPECT_EQ(data_[page], std::byte{0x11});
  EXPECT_EQ(data_[12 * page], std::byte{0x22});
}

TEST_F(Fenced, givesTheOldPagesBack) {
  make(80 << 20);
  const std::size_t before = committedBytes();
  ASSERT_EQ(fenceLibraryMemory(data_, 64 << 20), "");
  EXPECT_LE(committedBytes(), before - (64 << 20));
}

/// Threads of this process store into what shares a page with the output meanwhile. None of their stores is lost.
TEST_F(Fenced, losesNoStoreToTheSamePage) {
  for (int round = 0; round < 50; ++round) {
    make(8 * page);
    constexpr std::size_t begin = page + 100, end = 6 * page - 100;
    std::atomic<bool> stop = false;
    std::atomic<int> running = 0;
    const auto work = [&](std::byte* place) {
      std::uint32_t value = 0, lost = 0;
      auto* word = reinterpret_cast<volatile std::uint32_t*>(place);
      *word = 0;
      ++running;
      while (!stop) {
        lost += *word != value ? 1 : 0;
        *word = ++value;
      }
      return lost + (*word != value ? 1 : 0);
    };
    std::atomic<std::uint32_t> lost = 0;
    std::thread before([&] { lost += work(data_ + page + 16); });
    std::thread after([&] { lost += work(data_ + 6 * page - 16); });
    while (running < 2) std::this_thread::yield();
    EXPECT_EQ(fenceLibraryMemory(data_ + begin, end - begin), "");
    stop = true;
    before.join();
    after.join();
    ASSERT_EQ(lost, 0u);
  }
}

TEST_F(Fenced, waitsForACallWithItsOutputOnTheSamePage) {
  OutputUse other;
  other.begin(data_ + 6 * page - 50, 2 * page);
  const std::string open = fenceLibraryMemory(data_ + page, 5 * page - 100, 0.05);
  EXPECT_NE(open.find("a call of another communicator has used"), std::string::npos) << open;
  EXPECT_TRUE(findLibrarySegment(data_ + 6 * page - 50, 2 * page)) << "its page stays where it is";
  writeLate(page, 5 * page);
  EXPECT_EQ(countChanged(), 0u) << "whole pages are fenced all the same";

  std::thread ends([&] { other.end(); });
  EXPECT_EQ(fenceLibraryMemory(data_ + page, 5 * page - 100, 60), "");
  ends.join();
  writeLate(page, 6 * page - 100);
  EXPECT_EQ(countChanged(), 0u);
}

TEST_F(Fenced, doesNotWaitForCallsElsewhere) {
  OutputUse before, after;
  before.begin(data_, page);
  after.begin(data_ + 6 * page, page);
  EXPECT_EQ(fenceLibraryMemory(data_ + page, 5 * page, 0), "");
}

TEST_F(Fenced, saysWhatItCouldNotDo) {
  make(4 << 20);
  test::ChildProcess child([&] {
    const rlimit least{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_FSIZE, &least) != 0) return false;
    const std::string open = fenceLibraryMemory(data_, bytes_);
    EXPECT_THAT(open, testing::HasSubstr("some of the 4194304 bytes at"));
    EXPECT_THAT(open, testing::HasSubstr("raise ulimit -f"));
    EXPECT_EQ(countChanged(), 0u);
    EXPECT_EQ(findLibrarySegment(data_, bytes_)->id, id_) << "it is used as before";
    return !HasFailure();
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(Fenced, canBeFreedInAnyState) {
  for (const std::size_t bytes : {page, 10 * page, 10 * page + 5}) {
    make(64 * page);
    ASSERT_EQ(fenceLibraryMemory(data_ + 3, bytes), "");
  }
  std::byte* const gone = data_;
  data_ = static_cast<std::byte*>(allocateLibraryMemory(page));
  freeLibraryMemory(gone);
  EXPECT_FALSE(findLibrarySegment(gone, 1));
  EXPECT_THROW(freeLibraryMemory(gone), Error);
  EXPECT_EQ(::msync(gone, 64 * page, MS_ASYNC), -1) << "it is still mapped";
}

TEST(Fence, ofAdoptedMemoryIsUndoneWithIt) {
  std::vector<std::byte> buffer(100 * page);
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<std::byte>(i * 13);
  const std::vector<std::byte> copy = buffer;
  const int descriptors = test::countOpenDescriptors();
  ASSERT_TRUE(adoptMemory(buffer.data(), buffer.size()));
  std::byte* const inside = buffer.data() + 30 * page + 77;
  const LibrarySegment segment = *findLibrarySegment(inside, page);
  MappedSegments peers(1);
  std::byte* const late = peers.add(0, segment.id, duplicate(segment.fd), segment.bytes) + (inside - segment.base);
  EXPECT_EQ(fenceLibraryMemory(inside, 20 * page), "");
  std::memset(late, 0xee, 20 * page);
  EXPECT_EQ(buffer, copy);
  releaseAdopted(buffer.data());
  std::memset(late, 0xdd, 20 * page);
  EXPECT_EQ(buffer, copy);
  EXPECT_EQ(test::countOpenDescriptors(), descriptors);
  EXPECT_FALSE(findLibrarySegment(inside, 1));
}

TEST(Fence, ofOtherMemoryIsNothing) {
  std::vector<std::byte> buffer(10 * page);
  EXPECT_EQ(fenceLibraryMemory(buffer.data(), buffer.size()), "");
  EXPECT_FALSE(uniteLibraryMemory(buffer.data(), buffer.size()));
  EXPECT_FALSE(uniteLibraryMemory(nullptr, 0));
}

}  // namespace
}  // namespace tacc
