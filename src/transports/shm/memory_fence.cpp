#include "transports/shm/memory_fence.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/uncancelled.hpp"
#include "core/undying.hpp"
#include "transports/shm/library_registry.hpp"
#include "transports/shm/pages.hpp"

namespace tacc {
namespace {

/// Moved at a time: so much more memory is needed than before.
constexpr std::size_t movedAtOnce = std::size_t{32} << 20;
constexpr std::chrono::milliseconds fenceLookInterval{1};

struct Span {
  std::byte* begin;
  std::byte* end;
  std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};

struct Uses {
  ForkMutex mutex;
  std::vector<const OutputUse*> all;
};

Uses& uses() {
  static Undying<Uses> only;
  return only.get();
}

/// One fence at a time: the pieces of an allocation change under it alone.
ForkMutex& changing() {
  static Undying<ForkMutex> only;
  return only.get();
}

std::byte* pageOf(std::byte* address) { return address - reinterpret_cast<std::uintptr_t>(address) % pageBytes; }

/// The first page boundary that is not before `address`.
std::byte* pageAfter(std::byte* address) { return pageOf(address + (pageBytes - 1)); }

/// The allocation that holds all of `span`; null: none. Only under the registry's mutex; its place stays.
LibraryAllocation* findAllocation(LibraryRegistry& all, const Span& span) {
  auto above = all.owned.upper_bound(span.begin);
  if (above == all.owned.begin()) return nullptr;
  LibraryAllocation& found = std::prev(above)->second;
  return span.begin >= found.begin && span.end <= found.end ? &found : nullptr;
}

/// Takes `span`, whole pages, out of the pieces. What remains is still sorted.
void cutOut(LibraryAllocation& owned, const Span& span) {
  std::vector<LibraryPiece> rest;
  for (const LibraryPiece& piece : owned.pieces) {
    if (piece.begin < span.begin) rest.push_back({piece.begin, std::min(piece.end, span.begin), piece.segment});
    if (piece.end > span.end) rest.push_back({std::max(piece.begin, span.end), piece.end, piece.segment});
  }
  owned.pieces = std::move(rest);
}

/// Neighbours of one file become one.
void putIn(LibraryAllocation& owned, const LibraryPiece& piece) {
  const auto above = std::ranges::upper_bound(owned.pieces, piece.begin, {}, &LibraryPiece::begin);
  owned.pieces.insert(above, piece);
  std::vector<LibraryPiece> merged;
  for (const LibraryPiece& next : owned.pieces) {
    if (!merged.empty() && merged.back().end == next.begin && merged.back().segment.id == next.segment.id)
      merged.back().end = next.end;
    else
      merged.push_back(next);
  }
  owned.pieces = std::move(merged);
}

bool isUsed(const Span& span) {
  const std::lock_guard guard(uses().mutex);
  return std::ranges::any_of(uses().all, [&](const OutputUse* use) { return use->overlaps(span.begin, span.end); });
}

bool awaitUnused(const Span& span, double patienceSeconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(patienceSeconds);
  while (isUsed(span)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(fenceLookInterval);
  }
  return true;
}

/// Whole pages: what this process stores there from now on goes to copies that the kernel makes, page by page. At no
/// moment can a store be lost, whichever thread makes it.
void mapPrivately(const Span& pages, const LibrarySegment& segment) {
  // Not by mmap(): ThreadSanitizer takes that for a write to the pages, where other threads may be at work. They find
  // the old mapping or the new one, with the same bytes.
  constexpr int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;  // most of it may never be touched
  if (::syscall(SYS_mmap, pages.begin, pages.bytes(), PROT_READ | PROT_WRITE, flags, segment.fd,
                static_cast<long>(pages.begin - segment.base)) == -1)
    failErrno("{} bytes at {} cannot be mapped anew", pages.bytes(), static_cast<void*>(pages.begin));
}

/// The page becomes this process's own. First a store goes to a copy that the kernel makes, then all do.
void makePrivate(std::byte* page, const LibrarySegment& segment) {
  mapPrivately({page, page + pageBytes}, segment);
#ifdef MADV_POPULATE_WRITE
  if (::madvise(page, pageBytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  // Storing what is there makes the kernel copy too. A compiler may drop an addition of zero, but not this.
  std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(page));
  std::uint32_t value = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(value, value, std::memory_order_relaxed)) continue;
}

/// What peers may still write of a page that others use too.
std::string fenceEdge(LibraryRegistry& all, LibraryAllocation& owned, std::byte* page, double patienceSeconds) {
  const Span span{page, page + pageBytes};
  const auto found = std::ranges::find_if(
      owned.pieces, [&](const LibraryPiece& piece) { return piece.begin <= page && page < piece.end; });
  if (found == owned.pieces.end()) return {};  // it is private already
  const LibraryPiece piece{span.begin, span.end, found->segment};
  {
    const std::lock_guard guard(all.mutex);
    cutOut(owned, span);
    publishLibraryMemory(all);  // calls that begin from now on do not use it
  }
  if (awaitUnused(span, patienceSeconds)) {
    makePrivate(page, piece.segment);
    return {};
  }
  const std::lock_guard guard(all.mutex);
  putIn(owned, piece);
  publishLibraryMemory(all);
  return fmt::format("the page at {}, which a call of another communicator has used for {} s and more",
                     static_cast<void*>(page), patienceSeconds);
}

/// Gives the old pages back to the system; the peers that map them may make new ones, which go with the mapping.
void discard(const LibraryAllocation& owned, const Span& span) {
  for (const LibraryPiece& piece : owned.pieces) {
    std::byte* const begin = std::max(piece.begin, span.begin);
    std::byte* const end = std::min(piece.end, span.end);
    if (begin < end)
      (void)::fallocate(piece.segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin - piece.segment.base,
                        end - begin);
  }
}

/// Drops all files but the last, which has all pages. The first one's mapping is that of all of the allocation, and
/// stays.
void dropOldFiles(LibraryAllocation& owned) {
  const LibraryFile* const last = &owned.files.back();
  for (LibraryFile& file : owned.files)
    if (&file != last && file.segment.fd >= 0) releaseLibraryFile(file);
  owned.files.erase(owned.files.begin() + 1, owned.files.end() - 1);
  LibraryFile& first = owned.files.front();
  first.memory.closeFd();
  first.segment.fd = -1;
}

/// Moves whole pages of `owned` to a new file, contents kept. Where memory ends, those before are moved and the Error
/// is thrown. `isFence`: peers shall not see the old ones any more.
void moveToNewFile(LibraryRegistry& all, LibraryAllocation& owned, const Span& span, bool isFence) {
  const LibrarySegment& oldest = owned.files.front().segment;
  SharedMemory whole = SharedMemory::create(oldest.bytes, "library memory", Reserve::onTouch);
  LibraryFile file{SharedMemory::map(duplicate(whole.fd()), libraryHeaderBytes, "library memory"), {}};
  file.segment = {writeLibraryHeader(file.memory.data()), oldest.base, oldest.bytes, file.memory.fd()};
  shareWithChildren(file.memory.fd());  // as the memory is
  const LibrarySegment segment = file.segment;
  Span moved{span.begin, span.begin};
  std::exception_ptr error;
  try {
    while (moved.end < span.end) {
      const std::size_t bytes = std::min(movedAtOnce, static_cast<std::size_t>(span.end - moved.end));
      const auto offset = static_cast<std::size_t>(moved.end - segment.base);
      reservePages(whole.fd(), whole.data() + offset, offset, bytes, "library memory");
      std::memcpy(whole.data() + offset, moved.end, bytes);
      if (::mmap(moved.end, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, segment.fd,
                 static_cast<off_t>(offset)) == MAP_FAILED)
        failErrno("{} bytes at {} cannot be mapped anew", bytes, static_cast<void*>(moved.end));
      if (bytes >= hugePageBytes) (void)::madvise(moved.end, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
      (void)::madvise(moved.end, bytes, MADV_POPULATE_WRITE);  // saves the page faults; the pages are there
#endif
      if (isFence) discard(owned, {moved.end, moved.end + bytes});
      moved.end += bytes;
    }
  } catch (const Error&) {
    error = std::current_exception();
  }
  if (moved.bytes() > 0) {
    const std::lock_guard guard(all.mutex);
    owned.files.push_back(std::move(file));
    cutOut(owned, moved);
    putIn(owned, {moved.begin, moved.end, segment});
    publishLibraryMemory(all);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace

OutputUse::OutputUse() {
  const std::lock_guard guard(uses().mutex);
  uses().all.push_back(this);
}

OutputUse::~OutputUse() {
  const std::lock_guard guard(uses().mutex);
  std::erase(uses().all, this);
}

std::string fenceLibraryMemory(std::byte* output, std::size_t bytes, double patienceSeconds) {
  const std::lock_guard alone(changing());
  LibraryRegistry& all = libraryRegistry();
  Span given{output, output + bytes};
  LibraryAllocation* owned;
  {
    const std::lock_guard guard(all.mutex);
    owned = findAllocation(all, given);
  }
  if (owned == nullptr || owned->isUnshared || bytes == 0) return {};
  if (given.end >= owned->usedEnd) given.end = owned->end;
  const Span inner{pageAfter(given.begin), pageOf(given.end)};
  std::string open;
  const auto add = [&](const std::string& what) {
    if (!what.empty()) open += (open.empty() ? "" : "; ") + what;
  };
  const auto guarded = [&](const auto& work) {
    try {
      work();
    } catch (const std::exception& error) {
      add(fmt::format("some of the {} bytes at {}, because {}", bytes, static_cast<void*>(output), error.what()));
    }
  };
  std::byte* const first = pageOf(given.begin);
  if (first != inner.begin) guarded([&] { add(fenceEdge(all, *owned, first, patienceSeconds)); });
  if (inner.end != given.end && (inner.end != first || first == inner.begin))
    guarded([&] { add(fenceEdge(all, *owned, inner.end, patienceSeconds)); });
  if (inner.begin < inner.end) guarded([&] { moveToNewFile(all, *owned, inner, true); });
  // Of a part, other pages of the old file may still be read by peers in calls of other communicators.
  const bool isWhole = inner.begin == owned->begin && inner.end == owned->end;
  if (isWhole && open.empty()) dropOldFiles(*owned);
  return open;
}

void unshareLibraryMemory(void* start) {
  const std::lock_guard alone(changing());
  LibraryRegistry& all = libraryRegistry();
  LibraryAllocation* owned;
  std::vector<LibraryPiece> pieces;
  {
    const std::lock_guard guard(all.mutex);
    const auto found = all.owned.find(static_cast<std::byte*>(start));
    if (found == all.owned.end() || found->second.adoptions > 0)
      fail(taccInvalidArgument, "{} is not the start of library memory", start);
    owned = &found->second;
    if (owned->process != processGeneration())
      fail(taccInvalidUsage, "{} was allocated before this process was forked: it is shared with the parent", start);
    if (owned->isUnshared) return;
    pieces = owned->pieces;
  }
  try {
    {
      const std::lock_guard guard(all.mutex);
      owned->isUnshared = true;
      owned->pieces.clear();
      publishLibraryMemory(all);  // calls that begin from now on do not use it
    }
    if (isUsed({owned->begin, owned->end})) fail(taccInvalidUsage, "{} is the output of a call that goes on", start);
    for (; !pieces.empty(); pieces.pop_back())
      mapPrivately({pieces.back().begin, pieces.back().end}, pieces.back().segment);
  } catch (...) {
    const std::lock_guard guard(all.mutex);
    owned->isUnshared = false;
    owned->pieces = std::move(pieces);
    publishLibraryMemory(all);
    throw;
  }
  for (LibraryFile& file : owned->files)
    if (file.segment.fd >= 0) withdrawLibraryFile(file);
}

bool uniteLibraryMemory(const void* memory, std::size_t bytes) {
  LibraryRegistry& all = libraryRegistry();
  if (all.split.load(std::memory_order_relaxed) == 0 || bytes == 0) return false;
  auto* const begin = const_cast<std::byte*>(static_cast<const std::byte*>(memory));
  Span span{begin, begin + bytes};
  LibraryAllocation* owned;
  {
    const std::lock_guard guard(all.mutex);
    owned = findAllocation(all, span);
  }
  if (owned == nullptr) return false;
  if (span.end >= owned->usedEnd) span.end = owned->end;
  if (pageOf(span.begin) != span.begin || pageOf(span.end) != span.end) return false;
  const Uncancelled move;
  const std::lock_guard alone(changing());
  if (owned->isUnshared) return false;
  if (findLibrarySegment(memory, bytes)) return true;  // another thread was faster
  try {
    moveToNewFile(all, *owned, span, false);
    return true;
  } catch (const Error&) {
    return false;  // too little memory: what copies needs less
  }
}

}  // namespace tacc
