// A piece of library memory that a communicator keeps for its own use: other ranks of the host reach it directly.
#pragma once

#include <cstddef>
#include <utility>

#include "transports/shm/library_memory.hpp"

namespace tacc {

class LibraryWindow {
 public:
  LibraryWindow() = default;
  LibraryWindow(const LibraryWindow&) = delete;
  LibraryWindow& operator=(const LibraryWindow&) = delete;
  ~LibraryWindow() { free(); }

  /// At least that much; what was in it is lost when it grows.
  std::byte* atLeast(std::size_t bytes) {
    if (bytes <= bytes_) return base_;
    free();
    base_ = static_cast<std::byte*>(allocateLibraryMemory(bytes));
    bytes_ = bytes;
    return base_;
  }

 private:
  void free() noexcept {
    bytes_ = 0;
    if (std::byte* const old = std::exchange(base_, nullptr)) freeLibraryMemory(old);
  }

  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tacc
