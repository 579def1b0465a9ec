#include "transports/shm/library_memory.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "core/error.hpp"
#include "support/child_process.hpp"

namespace tacc {
namespace {

using test::ChildProcess;

struct Free {
  void operator()(std::byte* pointer) const { freeLibraryMemory(pointer); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(std::size_t bytes) { return Memory(static_cast<std::byte*>(allocateLibraryMemory(bytes))); }

std::size_t committedBytes(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(LibraryMemory, IsZeroedAlignedAndFound) {
  const Memory memory = allocate(10'000);
  std::byte* start = memory.get();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % 4096, 0u);
  EXPECT_TRUE(std::all_of(start, start + 10'000, [](std::byte b) { return b == std::byte{0}; }));

  const std::optional<LibrarySegment> segment = findLibrarySegment(start, 10'000);
  ASSERT_TRUE(segment);
  EXPECT_NE(segment->id, 0u);
  EXPECT_EQ(segment->base + libraryHeaderBytes, start);
  EXPECT_EQ(segment->bytes, libraryHeaderBytes + 12288);
  EXPECT_EQ(findLibrarySegment(start + 5000, 100)->id, segment->id);
  EXPECT_TRUE(findLibrarySegment(start + 12288, 0));
  EXPECT_FALSE(findLibrarySegment(start, 12289));
  EXPECT_FALSE(findLibrarySegment(start + 1, ~std::size_t{0}));
  EXPECT_FALSE(findLibrarySegment(start - 1, 1));
  int local = 0;
  EXPECT_FALSE(findLibrarySegment(&local, sizeof local));
  EXPECT_FALSE(findLibrarySegment(nullptr, 0));
}

TEST(LibraryMemory, ZeroBytesGiveUniquePointers) {
  const Memory first = allocate(0);
  const Memory second = allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
}

TEST(LibraryMemory, FindsTheRightOneOfMany) {
  std::vector<Memory> all;
  for (std::size_t i = 0; i < 50; ++i) all.push_back(allocate(4096 * (1 + i % 3)));
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto segment = findLibrarySegment(all[i].get(), 4096 * (1 + i % 3));
    ASSERT_TRUE(segment);
    EXPECT_EQ(segment->base + libraryHeaderBytes, all[i].get());
    ids.push_back(segment->id);
  }
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST(LibraryMemory, FreeingReturnsThePagesAlthoughAPeerMapsThem) {
  constexpr std::size_t bytes = 4 << 20;
  Memory memory = allocate(bytes);
  const LibrarySegment segment = *findLibrarySegment(memory.get(), bytes);
  std::memset(memory.get(), 7, bytes);

  MappedSegments peers(3);
  const FileDescriptor watch = duplicate(segment.fd);
  std::byte* mapped = peers.add(2, segment.id, duplicate(segment.fd), segment.bytes);
  EXPECT_EQ(mapped[libraryHeaderBytes + bytes - 1], std::byte{7});
  EXPECT_EQ(peers.find(2, segment.id), mapped);
  EXPECT_EQ(peers.find(1, segment.id), nullptr);
  EXPECT_EQ(peers.add(2, segment.id, duplicate(segment.fd), segment.bytes), mapped);
  EXPECT_FALSE(segmentIsFreed(mapped));
  peers.dropFreed();
  EXPECT_EQ(peers.find(2, segment.id), mapped);
  EXPECT_GE(committedBytes(watch.get()), bytes);

  const std::byte* old = memory.get();
  memory.reset();
  EXPECT_FALSE(findLibrarySegment(old, 1));
  EXPECT_TRUE(segmentIsFreed(mapped));
  EXPECT_LT(committedBytes(watch.get()), bytes / 4);
  peers.dropFreed();
  EXPECT_EQ(peers.find(2, segment.id), nullptr);
}

TEST(LibraryMemory, FreeingWhatIsNotOursIsAnError) {
  int local = 0;
  EXPECT_THROW(freeLibraryMemory(&local), Error);
  Memory memory = allocate(8192);
  EXPECT_THROW(freeLibraryMemory(memory.get() + 4096), Error);
  std::byte* pointer = memory.release();
  freeLibraryMemory(pointer);
  EXPECT_THROW(freeLibraryMemory(pointer), Error);
}

TEST(LibraryMemory, ImpossibleSizesAreErrors) {
  EXPECT_THROW(allocateLibraryMemory(~std::size_t{0}), Error);
  EXPECT_THROW(allocateLibraryMemory(std::size_t{1} << 50), Error);
}

TEST(LibraryMemory, AWrongIdIsRefused) {
  const Memory memory = allocate(4096);
  const LibrarySegment segment = *findLibrarySegment(memory.get(), 4096);
  MappedSegments peers(1);
  EXPECT_THROW(peers.add(0, segment.id + 1, duplicate(segment.fd), segment.bytes), Error);
  EXPECT_THROW(peers.add(0, segment.id, duplicate(segment.fd), segment.bytes + 4096), Error);
  EXPECT_EQ(peers.find(0, segment.id), nullptr);
}

TEST(LibraryMemory, ThreadsAllocateFindAndFree) {
  const Memory kept = allocate(4096);
  const std::uint64_t keptId = findLibrarySegment(kept.get(), 4096)->id;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t bytes = 4096 * (1 + (t + i) % 4);
        Memory memory = allocate(bytes);
        memory.get()[bytes - 1] = std::byte{1};
        const auto found = findLibrarySegment(memory.get(), bytes);
        if (!found || found->base + libraryHeaderBytes != memory.get()) ++wrong;
        const std::byte* old = memory.get();
        const std::uint64_t oldId = found ? found->id : 0;
        memory.reset();
        const auto after = findLibrarySegment(old, 1);  // another thread may have got the same address
        if (after && after->id == oldId) ++wrong;
        const auto other = findLibrarySegment(kept.get(), 1);
        if (!other || other->id != keptId) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LibraryMemory, LeaksNoDescriptorAndNoMapping) {
  const auto countMappings = [] {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; (c = std::fgetc(maps)) != EOF;) lines += c == '\n' ? 1 : 0;
    std::fclose(maps);
    return lines;
  };
  allocate(4096).reset();
  const int descriptors = test::countOpenDescriptors();
  const int mappings = countMappings();
  for (int i = 0; i < 100; ++i) {
    const Memory memory = allocate(1 << 16);
    const LibrarySegment segment = *findLibrarySegment(memory.get(), 1);
    MappedSegments peers(1);
    peers.add(0, segment.id, duplicate(segment.fd), segment.bytes);
  }
  EXPECT_EQ(test::countOpenDescriptors(), descriptors);
  // A leak is a mapping a turn at least. The heap of the test may grow by a few, and a sanitizer's shadow memory by
  // some.
  EXPECT_LT(countMappings(), mappings + 50);
}

}  // namespace
}  // namespace tacc
