// Buffers of more bytes than an int counts, and what each place of them must hold.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "draws.hpp"

namespace tacc::test {

/// Zeros, of which only those that are touched take memory.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) complain("no " + std::to_string(bytes) + " bytes of address space");
    at_ = static_cast<std::int64_t*>(at);
    madvise(at_, bytes_, MADV_HUGEPAGE);  // most of the time of touching so much is that of its pages' faults
  }
  ~Pages() { munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::int64_t* data() { return at_; }
  /// They are zeros again, and take no memory.
  void forget() { madvise(at_, bytes_, MADV_DONTNEED); }

 private:
  std::int64_t* at_;
  std::size_t bytes_;
};

/// What `rank` has at a place of its buffer.
inline std::int64_t valueOf(int rank, std::size_t at) {
  return static_cast<std::int64_t>((at * 0x9e3779b9 + 77) * (static_cast<std::size_t>(rank) + 1));
}

inline void fill(std::int64_t* to, std::size_t count, int rank, std::size_t first = 0) {
  for (std::size_t i = 0; i < count; ++i) to[i] = valueOf(rank, first + i);
}

inline void expect(const std::int64_t* found, std::size_t count, int rank, std::size_t first, const std::string& what) {
  for (std::size_t i = 0; i < count; ++i)
    if (found[i] != valueOf(rank, first + i))
      complain(what + ": place " + std::to_string(i) + " of " + std::to_string(count) + " is " +
               std::to_string(found[i]) + " and not " + std::to_string(valueOf(rank, first + i)));
}

}  // namespace tacc::test
