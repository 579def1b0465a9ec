// Exchanging ordinary private memory for shared memory in place, and back. The pages change; addresses and contents
// stay.
#pragma once

#include <cstddef>

#include "transports/shm/shared_memory.hpp"

namespace tacc {

/// Whole pages of this process.
struct Pages {
  std::byte* start = nullptr;
  std::size_t bytes = 0;
};

/// The whole pages inside [buffer, buffer + bytes); none gives bytes == 0.
Pages wholePagesIn(void* buffer, std::size_t bytes) noexcept;

/// Whether all the pages are private, anonymous, readable, writable, not executable and not of the calling thread's
/// stack. Reads /proc/thread-self/maps. Stacks of other threads look like any other memory and cannot be told apart.
bool isPlainPrivateMemory(const Pages& pages);

/// Puts new shared memory with the same contents in the place of the pages. In its file they begin at `headerBytes` (a
/// multiple of the page); the result maps that header. Takes as much memory again while it copies. Throws
/// taccSystemError, and the pages are then as before.
SharedMemory replaceByShared(const Pages& pages, std::size_t headerBytes);

/// Puts private memory with the same contents in the place of the pages. Throws taccSystemError.
void replaceByPrivate(const Pages& pages);

}  // namespace tacc
