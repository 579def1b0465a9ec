#include "shared_heap.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "tacc/tacc.h"

namespace tacc::mpi {
namespace {

constexpr std::size_t page = 4096;
/// Of a region that a smaller block makes necessary.
constexpr std::size_t leastRegion = std::size_t{256} << 20, mostRegion = std::size_t{8} << 30;
/// A free block of more, and all free pages of a region where they are more together, go back to the system.
constexpr std::size_t keptTouched = std::size_t{64} << 20;
/// Pages of more are zeroed by taking new ones.
constexpr std::size_t leastRenewed = std::size_t{1} << 20;

std::size_t wholePages(std::size_t bytes) noexcept { return (bytes + page - 1) / page * page; }

/// The program's errno is no business of what runs inside malloc.
class KeptErrno {
 public:
  KeptErrno() noexcept : value_(errno) {}
  ~KeptErrno() { errno = value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int value_;
};

/// What the library itself allocates while it makes a region is none of the program's blocks.
constinit thread_local bool isInside = false;

class LibrarysOwn {
 public:
  LibrarysOwn() noexcept : was_(isInside) { isInside = true; }
  ~LibrarysOwn() { isInside = was_; }
  LibrarysOwn(const LibrarysOwn&) = delete;
  LibrarysOwn& operator=(const LibrarysOwn&) = delete;

 private:
  bool was_;
};

}  // namespace

SharedHeap& sharedHeap() noexcept {
  alignas(SharedHeap) static std::byte place[sizeof(SharedHeap)];
  static SharedHeap& only = *new (place) SharedHeap;
  return only;
}

std::optional<std::size_t> SharedHeap::regionOf(const void* address) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t i = 0; i < mostRegions; ++i) {
    const std::uintptr_t begin = spans_[i].begin.load(std::memory_order_relaxed);
    if (at - begin < spans_[i].bytes.load(std::memory_order_relaxed)) return i;
  }
  return std::nullopt;
}

SharedHeap::Region* SharedHeap::regionHolding(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto found = std::ranges::find_if(regions_, [&](const Region& region) {
    return at - reinterpret_cast<std::uintptr_t>(region.begin) < region.bytes;
  });
  return found == regions_.end() ? nullptr : &*found;
}

void SharedHeap::open(Child child) noexcept {
  const std::lock_guard guard(mutex_);
  child_ = child;
  // After that of the library, whose mutexes are then taken after this one. A child has them from its parent.
  if (!hasHandlers_) hasHandlers_ = ::pthread_atfork(beforeFork, afterFork, inChild) == 0;
  isOpen_ = hasHandlers_;
}

void SharedHeap::close() noexcept {
  const std::lock_guard guard(mutex_);
  isOpen_ = false;
}

/// Each is as large as all others together, so that their number stays small. Where the system gives none it is asked
/// less and less often: each time takes as long as a malloc does not.
bool SharedHeap::addRegion(std::size_t least) {
  std::size_t bytes = 0;
  {
    const std::lock_guard guard(mutex_);
    const bool hasPlace = std::ranges::any_of(regions_, [](const Region& region) { return region.bytes == 0; });
    if (!isOpen_ || isForking_ || !hasPlace) return false;
    if (refusals_ > 0 && ++skipped_ < (1u << std::min(refusals_, 16u))) return false;
    for (const Region& region : regions_) bytes += region.bytes;
  }
  bytes = std::max(std::clamp(bytes, leastRegion, mostRegion), least);
  void* memory = nullptr;
  const bool isGiven = taccMemReserve(&memory, bytes) == taccSuccess;
  if (isGiven && child_ == Child::nothing) (void)::madvise(memory, bytes, MADV_DONTFORK);
  {
    const std::lock_guard guard(mutex_);
    skipped_ = 0;
    refusals_ = isGiven ? 0 : refusals_ + 1;
    if (!isGiven) return false;
    const auto place = std::ranges::find(regions_, std::size_t{0}, &Region::bytes);
    if (isOpen_ && !isForking_ && place != regions_.end()) {
      Region made;
      made.begin = static_cast<std::byte*>(memory);
      made.bytes = bytes;
      made.free.emplace(made.begin, bytes);
      *place = std::move(made);
      Span& span = spans_[static_cast<std::size_t>(place - regions_.begin())];
      span.begin.store(reinterpret_cast<std::uintptr_t>(memory), std::memory_order_relaxed);
      span.bytes.store(bytes, std::memory_order_relaxed);
      const auto begin = reinterpret_cast<std::uintptr_t>(memory);
      lowest_.store(std::min(begin, lowest_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
      highest_.store(std::max(begin + bytes, highest_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
      return true;
    }
  }
  (void)taccMemFree(memory);
  return false;
}

/// The first place that is large enough. Null: none is.
void* SharedHeap::takeFrom(Region& region, std::size_t bytes, std::size_t whole, std::size_t alignment) {
  for (auto place = region.free.begin(); place != region.free.end(); ++place) {
    const auto [begin, free] = *place;
    const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(begin) % alignment) % alignment;
    if (free < before || free - before < bytes) continue;
    const std::size_t taken = std::min(whole, free - before), after = free - before - taken;
    std::byte* const block = begin + before;
    // What may throw comes first.
    region.blocks.emplace(block, Block{bytes, taken});
    if (after > 0) {
      try {
        region.free.emplace(block + taken, after);
      } catch (...) {
        region.blocks.erase(block);
        throw;
      }
    }
    if (before > 0)
      place->second = before;
    else
      region.free.erase(place);
    return block;
  }
  return nullptr;
}

void* SharedHeap::take(std::size_t bytes, std::size_t whole, std::size_t alignment) {
  const std::lock_guard guard(mutex_);
  if (!isOpen_ || isForking_) return nullptr;
  for (Region& region : regions_) {
    void* const block = region.isShared ? takeFrom(region, bytes, whole, alignment) : nullptr;
    if (block == nullptr) continue;
    given_ = {given_.blocks + 1, given_.bytes + bytes};
    held_.fetch_add(whole, std::memory_order_relaxed);
    return block;
  }
  return nullptr;
}

void* SharedHeap::allocate(std::size_t bytes, std::size_t alignment, std::size_t room) noexcept {
  if (isInside || bytes == 0 || bytes > PTRDIFF_MAX / 4 || alignment > leastRegion / 4) return nullptr;
  const KeptErrno kept;
  const LibrarysOwn allocations;
  const std::size_t needed = wholePages(bytes), whole = std::max(needed, wholePages(std::min(room, bytes * 2)));
  const std::size_t aligned = std::max(alignment, page);
  try {
    if (void* const block = take(needed, whole, aligned)) return block;
    // A region begins at any page.
    return addRegion(whole + aligned - page) ? take(needed, whole, aligned) : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // malloc finds none either
  }
}

void* SharedHeap::allocateZeroed(std::size_t bytes) noexcept {
  void* const block = allocate(bytes, page);
  if (block == nullptr) return nullptr;
  const KeptErrno kept;
  // Where pages were never touched there are none to write, or to give back.
  if (bytes < leastRenewed || ::madvise(block, wholePages(bytes), MADV_REMOVE) != 0) std::memset(block, 0, bytes);
  return block;
}

/// What is free gives its pages back to the system.
void SharedHeap::discard(Region& region) noexcept {
  for (const auto& [begin, bytes] : region.free) (void)::madvise(begin, bytes, MADV_REMOVE);
  region.touched = 0;
}

/// Needs no memory where a neighbour is free; where there is none for a new entry, the place is lost.
void SharedHeap::giveBack(Region& region, std::byte* begin, std::size_t bytes) {
  const auto above = region.free.lower_bound(begin);
  const bool joinsAbove = above != region.free.end() && above->first == begin + bytes;
  const bool joinsBelow = above != region.free.begin() && std::prev(above)->first + std::prev(above)->second == begin;
  const std::size_t withAbove = bytes + (joinsAbove ? above->second : 0);
  if (joinsBelow)
    std::prev(above)->second += withAbove;
  else
    region.free.emplace_hint(above, begin, withAbove);
  if (joinsAbove) region.free.erase(above);
}

/// What is to be freed. One region is kept for the next blocks.
void* SharedHeap::withdrawIfEmpty(Region& region) noexcept {
  const auto isKept = [](const Region& one) { return one.isShared && one.bytes == leastRegion; };
  const bool isNeeded = isKept(region) && std::ranges::count_if(regions_, isKept) == 1;
  if (isForking_ || !region.blocks.empty() || isNeeded) return nullptr;
  spans_[static_cast<std::size_t>(&region - regions_.data())].bytes.store(0, std::memory_order_relaxed);
  void* const memory = region.begin;
  region = Region{};
  return memory;
}

bool SharedHeap::free(void* block) noexcept {
  if (!holds(block)) return false;
  const KeptErrno kept;
  const LibrarysOwn allocations;
  void* emptied = nullptr;
  {
    const std::lock_guard guard(mutex_);
    Region* const region = regionHolding(block);
    if (region == nullptr) return false;
    const auto found = region->blocks.find(static_cast<std::byte*>(block));
    if (found == region->blocks.end()) return false;
    const std::size_t whole = found->second.whole;
    region->blocks.erase(found);
    held_.fetch_sub(whole, std::memory_order_relaxed);
    if (region->isShared) {
      try {
        giveBack(*region, static_cast<std::byte*>(block), whole);
        region->touched += whole;
        if (region->touched > keptTouched) discard(*region);
      } catch (const std::bad_alloc&) {
        (void)::madvise(block, whole, MADV_REMOVE);
      }
    } else {
      (void)::madvise(block, whole, MADV_DONTNEED);  // of this process; children may have the pages of the file
    }
    emptied = withdrawIfEmpty(*region);
  }
  // A child may not free what its parent has made; then it stays.
  if (emptied != nullptr) (void)taccMemFree(emptied);
  return true;
}

std::size_t SharedHeap::sizeOf(const void* block) const noexcept {
  if (!holds(block)) return 0;
  const std::lock_guard guard(mutex_);
  const Region* const region = const_cast<SharedHeap*>(this)->regionHolding(block);
  if (region == nullptr) return 0;
  const auto found = region->blocks.find(const_cast<std::byte*>(static_cast<const std::byte*>(block)));
  return found == region->blocks.end() ? 0 : found->second.bytes;
}

bool SharedHeap::resize(void* block, std::size_t bytes) noexcept {
  if (!holds(block)) return false;
  const std::lock_guard guard(mutex_);
  Region* const region = regionHolding(block);
  if (region == nullptr) return false;
  const auto found = region->blocks.find(static_cast<std::byte*>(block));
  if (found == region->blocks.end() || bytes > found->second.whole) return false;
  found->second.bytes = std::max(wholePages(bytes), page);
  return true;
}

SharedHeap::Given SharedHeap::given() const noexcept {
  const std::lock_guard guard(mutex_);
  return given_;
}

/// A region of which a call makes its output now stays shared, with this child too, and is asked again at the next
/// fork.
void SharedHeap::beforeFork() noexcept {
  SharedHeap& heap = sharedHeap();
  const LibrarysOwn allocations;
  heap.forking_.lock();
  heap.mutex_.lock();
  heap.isForking_ = true;
  for (Region& region : heap.regions_) {
    if (region.bytes == 0 || !region.isShared || heap.child_ == Child::nothing) continue;
    heap.mutex_.unlock();
    const bool isOwn = taccMemUnshare(region.begin) == taccSuccess;
    heap.mutex_.lock();
    region.isShared = !isOwn;
  }
}

void SharedHeap::afterFork() noexcept {
  SharedHeap& heap = sharedHeap();
  const LibrarysOwn allocations;
  heap.isForking_ = false;
  std::array<void*, mostRegions> emptied{};  // meanwhile
  for (std::size_t i = 0; i < mostRegions; ++i)
    if (heap.regions_[i].bytes > 0) emptied[i] = heap.withdrawIfEmpty(heap.regions_[i]);
  heap.mutex_.unlock();
  heap.forking_.unlock();
  for (void* const memory : emptied)
    if (memory != nullptr) (void)taccMemFree(memory);
}

/// A child is no rank. What it frees must not take pages from its parent.
void SharedHeap::inChild() noexcept {
  SharedHeap& heap = sharedHeap();
  heap.isOpen_ = heap.isForking_ = false;
  for (Region& region : heap.regions_) region.isShared = false;
  new (&heap.mutex_) std::recursive_mutex;
  new (&heap.forking_) std::mutex;
}

}  // namespace tacc::mpi
