#include "transports/library_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "transports/adoption.hpp"

namespace tacc {
namespace {

constexpr std::uint64_t headerMagic = 0x7acc6c69626d656dull;

/// First page of a segment, read by the peers.
struct Header {
  std::uint64_t magic;
  std::uint64_t id;
  std::atomic<std::uint32_t> freed;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(Header) <= libraryHeaderBytes);

/// What findLibrarySegment looks at: all segments by address. A table never changes; each change publishes a new one.
struct Table {
  std::vector<LibrarySegment> segments;
};

/// What the registry owns of a segment.
struct Owned {
  SharedMemory memory;  // maps all of the segment; of adopted memory only the header page
  LibrarySegment segment;
  std::byte* adopted = nullptr;  // the buffer as it was named to adoptMemory
  int adoptions = 0;             // calls of adoptMemory not yet undone
};

struct Registry {
  std::mutex mutex;
  std::map<const std::byte*, Owned> owned;  // by the first user byte
  std::shared_ptr<const Table> table;
};

/// Never destroyed: user memory may be freed in any destructor of the program.
Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

/// Counts the tables published.
constinit std::atomic<std::uint64_t> generation{0};

/// Only under the registry's mutex.
void publish(Registry& all) {
  auto table = std::make_shared<Table>();
  table->segments.reserve(all.owned.size());
  for (const auto& [start, owned] : all.owned) table->segments.push_back(owned.segment);
  all.table = std::move(table);
  generation.fetch_add(1, std::memory_order_release);
}

std::uint64_t drawId() {
  std::uint64_t id = 0;
  while (id == 0) {
    if (::getrandom(&id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) failErrno("no random number for a segment");
  }
  return id;
}

std::uint64_t writeHeader(std::byte* page) {
  Header* header = new (page) Header{headerMagic, drawId(), {0}};
  return header->id;
}

const Header* headerOf(const std::byte* page) noexcept { return std::launder(reinterpret_cast<const Header*>(page)); }

/// Tells the peers, then gives the pages back whoever still maps them.
void release(Owned& owned) {
  std::launder(reinterpret_cast<Header*>(owned.memory.data()))->freed.store(1, std::memory_order_release);
  // Without hole punching the pages go when the last peer drops its mapping.
  (void)::fallocate(owned.segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, libraryHeaderBytes,
                    static_cast<off_t>(owned.segment.bytes - libraryHeaderBytes));
}

}  // namespace

void* allocateLibraryMemory(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) / 2) {
    fail(taccSystemError, "library memory of {} bytes is not possible", bytes);
  }
  const std::size_t pages = std::max<std::size_t>(1, (bytes + 4095) / 4096);
  const std::size_t whole = libraryHeaderBytes + pages * 4096;
  Owned owned;
  owned.memory = SharedMemory::create(whole, "library memory");
  std::byte* base = owned.memory.data();
  owned.segment = {writeHeader(base), base, whole, owned.memory.fd()};
  std::byte* user = base + libraryHeaderBytes;

  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  all.owned.emplace(user, std::move(owned));
  publish(all);
  return user;
}

void freeLibraryMemory(void* pointer) {
  Registry& all = registry();
  Owned owned;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = all.owned.find(static_cast<std::byte*>(pointer));
    if (found == all.owned.end() || found->second.adoptions > 0) {
      fail(taccInvalidArgument, "{} is not memory from taccMemAlloc (or was freed before)", pointer);
    }
    owned = std::move(found->second);
    all.owned.erase(found);
    publish(all);
  }
  release(owned);
}

std::optional<LibrarySegment> findLibrarySegment(const void* pointer, std::size_t bytes) {
  struct Cache {
    std::uint64_t generation = 0;
    std::shared_ptr<const Table> table;
  };
  static thread_local Cache cache;
  const std::uint64_t current = generation.load(std::memory_order_acquire);
  if (current == 0) return std::nullopt;
  if (cache.generation != current) {
    Registry& all = registry();
    const std::lock_guard guard(all.mutex);
    cache.table = all.table;
    cache.generation = generation.load(std::memory_order_relaxed);
  }
  const std::vector<LibrarySegment>& segments = cache.table->segments;
  const auto start = reinterpret_cast<std::uintptr_t>(pointer);
  // The first segment that begins above the pointer; the one before it may hold it.
  const auto above = std::upper_bound(
      segments.begin(), segments.end(), start, [](std::uintptr_t address, const LibrarySegment& segment) {
        return address < reinterpret_cast<std::uintptr_t>(segment.base) + libraryHeaderBytes;
      });
  if (above == segments.begin()) return std::nullopt;
  const LibrarySegment& segment = *std::prev(above);
  const std::uintptr_t offset = start - reinterpret_cast<std::uintptr_t>(segment.base);
  if (offset > segment.bytes || bytes > segment.bytes - offset) return std::nullopt;
  return segment;
}

bool adoptMemory(void* buffer, std::size_t bytes) {
  // One at a time: the look at the memory map must still be true when the pages are replaced.
  static std::mutex adopting;
  const std::lock_guard alone(adopting);
  Registry& all = registry();
  const Pages pages = wholePagesIn(buffer, bytes);
  if (pages.bytes == 0) return false;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = all.owned.find(pages.start);
    if (found != all.owned.end() && found->second.adopted == buffer &&
        found->second.segment.bytes == libraryHeaderBytes + pages.bytes) {
      ++found->second.adoptions;
      return true;
    }
  }
  if (!isPlainPrivateMemory(pages)) return false;

  Owned owned;
  owned.memory = replaceByShared(pages, libraryHeaderBytes);
  owned.segment = {writeHeader(owned.memory.data()), pages.start - libraryHeaderBytes, libraryHeaderBytes + pages.bytes,
                   owned.memory.fd()};
  owned.adopted = static_cast<std::byte*>(buffer);
  owned.adoptions = 1;
  const std::lock_guard guard(all.mutex);
  all.owned.emplace(pages.start, std::move(owned));
  publish(all);
  return true;
}

void releaseAdopted(void* buffer) {
  Registry& all = registry();
  Owned owned;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = std::ranges::find_if(all.owned, [&](const auto& entry) {
      return entry.second.adoptions > 0 && entry.second.adopted == static_cast<std::byte*>(buffer);
    });
    if (found == all.owned.end()) fail(taccInvalidArgument, "{} is no adopted buffer", buffer);
    if (--found->second.adoptions > 0) return;
    owned = std::move(found->second);
    all.owned.erase(found);
    publish(all);
  }
  replaceByPrivate({owned.segment.base + libraryHeaderBytes, owned.segment.bytes - libraryHeaderBytes});
  release(owned);
}

bool segmentIsFreed(const std::byte* mappedHeader) noexcept {
  return headerOf(mappedHeader)->freed.load(std::memory_order_acquire) != 0;
}

std::byte* MappedSegments::add(int rank, std::uint64_t id, FileDescriptor fd, std::size_t bytes) {
  if (std::byte* known = find(rank, id)) return known;
  if (bytes <= libraryHeaderBytes) {
    fail(taccInternalError, "library segment {:#x} of rank {}: {} bytes are too few", id, rank, bytes);
  }
  SharedMemory memory = SharedMemory::map(std::move(fd), bytes, fmt::format("library memory of rank {}", rank));
  memory.closeFd();
  const Header* header = headerOf(memory.data());
  if (header->magic != headerMagic || header->id != id) {
    fail(taccInternalError, "library segment {:#x} of rank {}: its header names {:#x}", id, rank, header->id);
  }
  std::byte* data = memory.data();
  segments_[static_cast<std::size_t>(rank)].push_back({id, std::move(memory)});
  return data;
}

void MappedSegments::dropFreed() noexcept {
  for (std::vector<Mapped>& segments : segments_) {
    std::erase_if(segments, [](const Mapped& mapped) { return segmentIsFreed(mapped.memory.data()); });
  }
}

}  // namespace tacc
