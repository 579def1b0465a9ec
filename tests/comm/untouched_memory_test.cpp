// Memory that a call has no need to touch: it may be protected, and what is there stays in the cache.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

#include "rank_harness.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t pageBytes = 4096;
constexpr int calls = 20;  // so many that every way to move data is tried

class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }
  void fill(int value) const { std::memset(data_, value, bytes_); }
  void protect(std::size_t begin, std::size_t bytes, int protection) const {
    ASSERT_EQ(::mprotect(data_ + begin, bytes, protection), 0);
  }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

class UntouchedMemory : public testing::TestWithParam<RankKind> {};

TEST_P(UntouchedMemory, theRootOfABroadcastOnlyReads) {
  for (const std::size_t bytes : {pageBytes, 16 * pageBytes, 100 * pageBytes}) {
    runRanks(GetParam(), 3, [&](taccComm_t comm, int rank) {
      const Pages buffer(bytes);
      buffer.fill(rank + 1);
      if (rank == 1) buffer.protect(0, bytes, PROT_READ);
      for (int i = 0; i < calls; ++i) expectSuccess(taccBcast(buffer.data(), bytes, taccInt8, 1, comm, nullptr), comm);
      for (const std::byte b : std::span(buffer.data(), bytes)) ASSERT_EQ(b, std::byte{2}) << bytes;
    });
  }
}

/// In place, nobody needs the root's own block.
TEST_P(UntouchedMemory, theRootOfAScatterKeepsItsBlock) {
  for (const std::size_t block : {pageBytes, 16 * pageBytes, 100 * pageBytes}) {
    runRanks(GetParam(), 3, [&](taccComm_t comm, int rank) {
      const Pages all(3 * block), own(block);
      all.fill(rank + 1);
      std::byte* receive = own.data();
      if (rank == 1) {
        receive = all.data() + block;
        all.protect(block, block, PROT_NONE);
      }
      for (int i = 0; i < calls; ++i)
        expectSuccess(taccScatter(all.data(), receive, block, taccInt8, 1, comm, nullptr), comm);
      if (rank == 1) return;
      for (const std::byte b : std::span(receive, block)) ASSERT_EQ(b, std::byte{2}) << block;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, UntouchedMemory, testing::Values(RankKind::processes, RankKind::threads),
                         [](const auto& suite) {
                           return suite.param == RankKind::processes ? "processes" : "threads";
                         });

}  // namespace
}  // namespace tacc::test
