// Buffers that notice when something outside them is touched.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tacc::test {

/// `bytes` at `offset` bytes after a 64-byte boundary, with a pattern around them that must stay.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t bytes, std::size_t offset) : bytes_(bytes), storage_(bytes + 4 * margin, pattern) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    start_ = margin + (64 - address % 64) % 64 + offset;
  }

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(storage_.data() + start_);
  }

  bool isIntact() const {
    const auto isPattern = [](unsigned char byte) { return byte == pattern; };
    const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(start_);
    return std::all_of(storage_.begin(), begin, isPattern) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), storage_.end(), isPattern);
  }

 private:
  static constexpr std::size_t margin = 64;
  static constexpr unsigned char pattern = 0xa5;
  std::size_t bytes_;
  std::vector<unsigned char> storage_;
  std::size_t start_;
};

/// Pages between two pages that may not be touched. A buffer is placed at either end.
class PageBuffer {
 public:
  explicit PageBuffer(std::size_t pages)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), bytes_(pages * page_) {
    void* mapping = mmap(nullptr, bytes_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) std::abort();
    mapping_ = static_cast<unsigned char*>(mapping);
    if (mprotect(mapping_ + page_, bytes_, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~PageBuffer() { munmap(mapping_, bytes_ + 2 * page_); }
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;

  unsigned char* atBegin() { return mapping_ + page_; }
  unsigned char* atEnd(std::size_t bytes) { return mapping_ + page_ + bytes_ - bytes; }
  /// A copy of `count` elements at either end.
  template <class T>
  T* place(const T* elements, std::size_t count, bool isAtEnd) {
    auto* const at = reinterpret_cast<T*>(isAtEnd ? atEnd(count * sizeof(T)) : atBegin());
    std::copy_n(elements, count, at);
    return at;
  }

 private:
  std::size_t page_, bytes_;
  unsigned char* mapping_;
};

}  // namespace tacc::test
