#include "transports/shm/library_memory.hpp"

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

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/per_thread.hpp"
#include "core/undying.hpp"
#include "transports/shm/adoption.hpp"
#include "transports/shm/library_registry.hpp"

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

/// Counts the tables published.
constinit std::atomic<std::uint64_t> generation{0};

std::uint64_t drawId() {
  std::uint64_t id = 0;
  while (id == 0) {
    if (::getrandom(&id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) failErrno("no random number for a segment");
  }
  return id;
}

const Header* headerOf(const std::byte* page) noexcept { return std::launder(reinterpret_cast<const Header*>(page)); }

/// Takes what `found` is out of the registry.
LibraryAllocation take(LibraryRegistry& all, std::map<const std::byte*, LibraryAllocation>::iterator found) {
  LibraryAllocation gone = std::move(found->second);
  all.owned.erase(found);
  publishLibraryMemory(all);
  return gone;
}

}  // namespace

LibraryRegistry& libraryRegistry() {
  static Undying<LibraryRegistry> only;
  return only.get();
}

/// Sequentially consistent: an OutputUse that a fence does not see has begun after the table that the fence made.
void publishLibraryMemory(LibraryRegistry& all) {
  auto table = std::make_shared<LibraryTable>();
  int split = 0;
  for (const auto& [start, owned] : all.owned) {
    table->pieces.insert(table->pieces.end(), owned.pieces.begin(), owned.pieces.end());
    split += owned.isSplit() ? 1 : 0;
  }
  all.split.store(split, std::memory_order_relaxed);
  all.table = std::move(table);
  generation.fetch_add(1, std::memory_order_seq_cst);
}

std::uint64_t writeLibraryHeader(std::byte* page) {
  Header* header = new (page) Header{headerMagic, drawId(), {0}};
  return header->id;
}

void withdrawLibraryFile(LibraryFile& file) noexcept {
  std::launder(reinterpret_cast<Header*>(file.memory.data()))->freed.store(1, std::memory_order_release);
}

void releaseLibraryFile(LibraryFile& file) noexcept {
  withdrawLibraryFile(file);
  // Without hole punching the pages go when the last peer drops its mapping.
  (void)::fallocate(file.segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, libraryHeaderBytes,
                    static_cast<off_t>(file.segment.bytes - libraryHeaderBytes));
}

void* allocateLibraryMemory(std::size_t bytes, Reserve reserve) {
  if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) / 2) {
    fail(taccSystemError, "library memory of {} bytes is not possible", bytes);
  }
  const std::size_t pages = std::max<std::size_t>(1, (bytes + 4095) / 4096);
  const std::size_t whole = libraryHeaderBytes + pages * 4096;
  SharedMemory memory = SharedMemory::create(whole, "library memory", reserve);
  std::byte* base = memory.data();
  const LibrarySegment segment{writeLibraryHeader(base), base, whole, memory.fd()};
  shareWithChildren(memory.fd());  // as the memory is
  LibraryAllocation made;
  made.begin = base + libraryHeaderBytes;
  made.end = base + whole;
  made.usedEnd = made.begin + bytes;
  made.pieces.push_back({made.begin, made.end, segment});
  made.files.push_back({std::move(memory), segment});
  std::byte* const user = made.begin;

  LibraryRegistry& all = libraryRegistry();
  const std::lock_guard guard(all.mutex);
  all.owned.emplace(user, std::move(made));
  publishLibraryMemory(all);
  return user;
}

void freeLibraryMemory(void* pointer) {
  LibraryRegistry& all = libraryRegistry();
  LibraryAllocation gone;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = all.owned.find(static_cast<std::byte*>(pointer));
    if (found == all.owned.end() || found->second.adoptions > 0) {
      fail(taccInvalidArgument, "{} is not memory from taccMemAlloc (or was freed before)", pointer);
    }
    if (found->second.process != processGeneration()) {
      fail(taccInvalidUsage,
           "{} was allocated before this process was forked: it is shared with the parent, which frees it", pointer);
    }
    gone = take(all, found);
  }
  if (gone.isUnshared) return;  // the pages may be those of children too
  for (LibraryFile& file : gone.files) releaseLibraryFile(file);
}

std::optional<LibrarySegment> findLibrarySegment(const void* pointer, std::size_t bytes) {
  struct Cache {
    std::uint64_t generation = 0;
    std::shared_ptr<const LibraryTable> table;
  };
  const std::uint64_t current = generation.load(std::memory_order_seq_cst);
  if (current == 0) return std::nullopt;
  static PerThread<Cache> caches;
  Cache& cache = caches.get();
  if (cache.generation != current) {
    LibraryRegistry& all = libraryRegistry();
    const std::lock_guard guard(all.mutex);
    cache.table = all.table;
    cache.generation = generation.load(std::memory_order_relaxed);
  }
  const std::vector<LibraryPiece>& pieces = cache.table->pieces;
  const auto start = reinterpret_cast<std::uintptr_t>(pointer);
  // The first piece that begins above the pointer; the one before it may hold it.
  const auto above =
      std::upper_bound(pieces.begin(), pieces.end(), start, [](std::uintptr_t address, const LibraryPiece& piece) {
        return address < reinterpret_cast<std::uintptr_t>(piece.begin);
      });
  if (above == pieces.begin()) return std::nullopt;
  const LibraryPiece& piece = *std::prev(above);
  const auto end = reinterpret_cast<std::uintptr_t>(piece.end);
  if (start > end || bytes > end - start) return std::nullopt;
  return piece.segment;
}

bool adoptMemory(void* buffer, std::size_t bytes) {
  // One at a time: the look at the memory map must still be true when the pages are replaced.
  static ForkMutex adopting;
  const std::lock_guard alone(adopting);
  LibraryRegistry& all = libraryRegistry();
  const Pages pages = wholePagesIn(buffer, bytes);
  if (pages.bytes == 0) return false;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = all.owned.find(pages.start);
    if (found != all.owned.end() && found->second.adopted == buffer && found->second.end == pages.start + pages.bytes) {
      ++found->second.adoptions;
      return true;
    }
  }
  if (!isPlainPrivateMemory(pages)) return false;

  SharedMemory header = replaceByShared(pages, libraryHeaderBytes);
  const LibrarySegment segment{writeLibraryHeader(header.data()), pages.start - libraryHeaderBytes,
                               libraryHeaderBytes + pages.bytes, header.fd()};
  shareWithChildren(header.fd());
  LibraryAllocation made;
  made.begin = pages.start;
  made.end = made.usedEnd = pages.start + pages.bytes;
  made.pieces.push_back({made.begin, made.end, segment});
  made.files.push_back({std::move(header), segment});
  made.adopted = static_cast<std::byte*>(buffer);
  made.adoptions = 1;
  const std::lock_guard guard(all.mutex);
  all.owned.emplace(pages.start, std::move(made));
  publishLibraryMemory(all);
  return true;
}

void releaseAdopted(void* buffer) {
  LibraryRegistry& all = libraryRegistry();
  LibraryAllocation gone;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = std::ranges::find_if(all.owned, [&](const auto& entry) {
      return entry.second.adoptions > 0 && entry.second.adopted == static_cast<std::byte*>(buffer);
    });
    if (found == all.owned.end()) fail(taccInvalidArgument, "{} is no adopted buffer", buffer);
    if (--found->second.adoptions > 0) return;
    gone = take(all, found);
  }
  replaceByPrivate({gone.begin, static_cast<std::size_t>(gone.end - gone.begin)});
  for (LibraryFile& file : gone.files) releaseLibraryFile(file);
}

bool segmentIsFreed(const std::byte* mappedHeader) noexcept {
  return headerOf(mappedHeader)->freed.load(std::memory_order_acquire) != 0;
}

std::byte* MappedSegments::add(int rank, std::uint64_t id, FileDescriptor fd, std::size_t bytes) {
  if (std::byte* known = find(rank, id)) return known;
  if (bytes <= libraryHeaderBytes) {
    fail(taccInternalError, "library segment {:#x} of rank {}: {} bytes are too few", id, rank, bytes);
  }
  SharedMemory memory = SharedMemory::map(std::move(fd), bytes, "the library memory of another rank");
  memory.closeFd();
  memory.keepFromChildren();
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
