#include "transports/shm/adoption.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "transports/shm/pages.hpp"

namespace tacc {
namespace {

/// What replaceByPrivate copies at a time: stays in a cache.
constexpr std::size_t bounceBytes = std::size_t{256} << 10;

std::uintptr_t addressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool overlapsOwnStack(const Pages& pages) {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return true;
  void* stack = nullptr;
  std::size_t bytes = 0;
  const bool known = ::pthread_attr_getstack(&attributes, &stack, &bytes) == 0;
  ::pthread_attr_destroy(&attributes);
  return !known ||
         (addressOf(pages.start) < addressOf(stack) + bytes && addressOf(stack) < addressOf(pages.start) + pages.bytes);
}

/// Names that the kernel gives to anonymous memory.
bool isAnonymousName(std::string_view name) { return name.empty() || name == "[heap]" || name.starts_with("[anon:"); }

}  // namespace

Pages wholePagesIn(void* buffer, std::size_t bytes) noexcept {
  const std::uintptr_t start = (addressOf(buffer) + pageBytes - 1) / pageBytes * pageBytes;
  const std::uintptr_t end = (addressOf(buffer) + bytes) / pageBytes * pageBytes;
  if (buffer == nullptr || end <= start) return {};
  return {static_cast<std::byte*>(buffer) + (start - addressOf(buffer)), end - start};
}

bool isPlainPrivateMemory(const Pages& pages) {
  if (overlapsOwnStack(pages)) return false;
  std::ifstream maps("/proc/thread-self/maps");     // as the process's first thread may have ended
  std::uintptr_t covered = addressOf(pages.start);  // all before it is plain
  const std::uintptr_t end = covered + pages.bytes;
  for (std::string line; covered < end && std::getline(maps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    char access[5] = {};
    unsigned long inode = 0;
    int nameAt = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*x %*x:%*x %lu %n", &from, &to, access, &inode, &nameAt) != 4)
      return false;
    if (to <= covered) continue;
    const std::string_view name = std::string_view(line).substr(std::min<std::size_t>(nameAt, line.size()));
    const bool plain = std::string_view(access) == "rw-p" && inode == 0 && isAnonymousName(name);
    if (from > covered || !plain) return false;
    covered = to;
  }
  return covered >= end;
}

SharedMemory replaceByShared(const Pages& pages, std::size_t headerBytes) {
  SharedMemory whole = SharedMemory::create(headerBytes + pages.bytes, "adopted memory");
  SharedMemory header = SharedMemory::map(duplicate(whole.fd()), headerBytes, "adopted memory");
  std::memcpy(whole.data() + headerBytes, pages.start, pages.bytes);
  // One call exchanges the old pages for the new: there is no moment without memory at these addresses.
  if (::mmap(pages.start, pages.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, whole.fd(),
             static_cast<off_t>(headerBytes)) == MAP_FAILED) {
    failErrno("cannot adopt {} bytes at {}", pages.bytes, static_cast<void*>(pages.start));
  }
#ifdef MADV_POPULATE_WRITE
  (void)::madvise(pages.start, pages.bytes, MADV_POPULATE_WRITE);  // saves the page faults; the pages are there
#endif
  return header;
}

void replaceByPrivate(const Pages& pages) {
  const auto bounce = std::make_unique<std::byte[]>(bounceBytes);
  for (std::size_t done = 0; done < pages.bytes;) {
    const std::size_t piece = std::min(bounceBytes, pages.bytes - done);
    std::byte* place = pages.start + done;
    std::memcpy(bounce.get(), place, piece);
    if (::mmap(place, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
      failErrno("cannot give back {} adopted bytes at {}", piece, static_cast<void*>(place));
    }
    std::memcpy(place, bounce.get(), piece);
    done += piece;
  }
}

}  // namespace tacc
