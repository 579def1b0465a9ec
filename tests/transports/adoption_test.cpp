// adoptMemory and releaseAdopted: ordinary memory becomes library memory in place, and private again.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "transports/shm/library_memory.hpp"

namespace tacc {
namespace {

using test::ChildProcess;

/// A mapping of whole pages for one test.
class Mapping {
 public:
  Mapping(std::size_t bytes, int protection, int flags)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(::mmap(nullptr, bytes, protection, flags | MAP_ANONYMOUS, -1, 0))) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data_, bytes_); }
  std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

/// First whole page and the whole pages of a buffer.
std::pair<std::byte*, std::size_t> interiorOf(std::byte* data, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (start + 4095) / 4096 * 4096;
  return {data + (first - start), (start + bytes) / 4096 * 4096 - first};
}

class AdoptionTest : public testing::TestWithParam<std::size_t> {};

TEST_P(AdoptionTest, KeepsContentsBothWaysAndIsShared) {
  std::vector<std::uint32_t> numbers(GetParam() / 4);
  std::iota(numbers.begin(), numbers.end(), 1u);
  const std::vector<std::uint32_t> copy = numbers;
  auto* bytes = reinterpret_cast<std::byte*>(numbers.data());
  const auto [interior, interiorBytes] = interiorOf(bytes, GetParam());

  ASSERT_TRUE(adoptMemory(bytes, GetParam()));
  EXPECT_EQ(numbers, copy);
  const auto segment = findLibrarySegment(interior, interiorBytes);
  ASSERT_TRUE(segment);
  EXPECT_FALSE(findLibrarySegment(interior - 1, 2));
  EXPECT_FALSE(findLibrarySegment(interior, interiorBytes + 1));

  // Another mapping of the segment reads and writes the same memory at the same offset.
  MappedSegments peers(1);
  std::byte* mapped = peers.add(0, segment->id, duplicate(segment->fd), segment->bytes);
  EXPECT_EQ(std::memcmp(mapped + (interior - segment->base), interior, interiorBytes), 0);
  mapped[interior - segment->base] = std::byte{0xee};
  EXPECT_EQ(*interior, std::byte{0xee});
  // And so does another process.
  ChildProcess child([&, last = interior + interiorBytes - 1] {
    *last = std::byte{0xdd};
    return true;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(interior[interiorBytes - 1], std::byte{0xdd});

  std::vector<std::uint32_t> expected = numbers;
  releaseAdopted(bytes);
  EXPECT_EQ(numbers, expected);
  EXPECT_FALSE(findLibrarySegment(interior, 1));
  EXPECT_TRUE(segmentIsFreed(mapped));
  mapped[interior - segment->base] = std::byte{0x11};
  EXPECT_EQ(*interior, std::byte{0xee});
  ChildProcess another([&] {
    *interior = std::byte{0};
    return true;
  });
  another.wait();
  EXPECT_EQ(*interior, std::byte{0xee});
}
INSTANTIATE_TEST_SUITE_P(Sizes, AdoptionTest, testing::Values(3 * 4096, 200'000, 1 << 20, (5 << 20) + 4096 + 12));

TEST(Adoption, IsCounted) {
  std::vector<std::byte> buffer(100'000);
  ASSERT_TRUE(adoptMemory(buffer.data(), buffer.size()));
  const auto id = findLibrarySegment(buffer.data() + 50'000, 1)->id;
  ASSERT_TRUE(adoptMemory(buffer.data(), buffer.size()));
  releaseAdopted(buffer.data());
  EXPECT_EQ(findLibrarySegment(buffer.data() + 50'000, 1)->id, id);
  releaseAdopted(buffer.data());
  EXPECT_FALSE(findLibrarySegment(buffer.data() + 50'000, 1));
  EXPECT_THROW(releaseAdopted(buffer.data()), Error);
}

TEST(Adoption, RefusesWhatIsNotPlainPrivateMemory) {
  const Mapping shared(16384, PROT_READ | PROT_WRITE, MAP_SHARED);
  EXPECT_FALSE(adoptMemory(shared.data(), 16384));
  const Mapping readOnly(16384, PROT_READ, MAP_PRIVATE);
  EXPECT_FALSE(adoptMemory(readOnly.data(), 16384));
  const Mapping partlyReadOnly(16384, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  ::mprotect(partlyReadOnly.data() + 8192, 4096, PROT_READ);
  EXPECT_FALSE(adoptMemory(partlyReadOnly.data(), 16384));
  EXPECT_TRUE(adoptMemory(partlyReadOnly.data(), 8192));
  releaseAdopted(partlyReadOnly.data());
  // By address: AddressSanitizer may keep local arrays elsewhere.
  auto* onStack = static_cast<std::byte*>(__builtin_frame_address(0)) - 32768;
  EXPECT_FALSE(adoptMemory(onStack, 16384));
  static std::byte inTheProgram[16384] = {std::byte{1}};
  EXPECT_FALSE(adoptMemory(inTheProgram, 8192));
  std::byte* library = static_cast<std::byte*>(allocateLibraryMemory(16384));
  EXPECT_FALSE(adoptMemory(library, 16384));
  EXPECT_THROW(releaseAdopted(library), Error);
  freeLibraryMemory(library);
  const Mapping hole(16384, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  ::munmap(hole.data() + 4096, 4096);
  EXPECT_FALSE(adoptMemory(hole.data(), 16384));
  EXPECT_FALSE(adoptMemory(nullptr, 16384));
}

TEST(Adoption, RefusesLessThanAPage) {
  const Mapping mapping(16384, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  EXPECT_FALSE(adoptMemory(mapping.data() + 1, 4096));
  EXPECT_FALSE(adoptMemory(mapping.data(), 0));
  EXPECT_TRUE(adoptMemory(mapping.data(), 4096));
  EXPECT_THROW(freeLibraryMemory(mapping.data()), Error);
  releaseAdopted(mapping.data());
}

TEST(Adoption, LeaksNothing) {
  std::vector<std::byte> buffer(1 << 20);
  adoptMemory(buffer.data(), buffer.size());
  releaseAdopted(buffer.data());
  const int before = test::countOpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(adoptMemory(buffer.data(), buffer.size()));
    releaseAdopted(buffer.data());
  }
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

}  // namespace
}  // namespace tacc
