// Library memory for the program's own large blocks: what MPI_Alloc_mem gives, and malloc where libtacc_mpi_memory.so
// is preloaded too (memory_dispatch.c). Other ranks of the host reach such buffers, so calls on them copy once, or not
// at all.
//
// Blocks are whole pages in regions, each of them one piece of library memory. A region is mostly untouched, and costs
// no more than what was touched. Before the process forks its regions become its own for good, as children must get
// copies of the program's memory: blocks that are there stay, and later ones are in other regions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace tacc::mpi {

class SharedHeap {
 public:
  /// Smaller blocks are not worth their pages: calls on them go through buffers that all ranks have.
  static constexpr std::size_t leastBytes = std::size_t{64} << 10;

  SharedHeap() = default;
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  /// What a forked child has of the blocks.
  enum class Child {
    copies,  // as of all other memory
    nothing  // where a device may have pinned their pages, which must then stay the parent's
  };
  /// From now on there are blocks.
  void open(Child child) noexcept;
  /// No new ones. Those that there are stay until they are freed.
  void close() noexcept;

  /// At least `bytes`, at a multiple of `alignment`, a power of two; not zeroed. Null where there is none: take other
  /// memory then. `room`: so many bytes the block may be given by resize() later, as far as there is place.
  void* allocate(std::size_t bytes, std::size_t alignment, std::size_t room = 0) noexcept;
  /// Zeroed.
  void* allocateZeroed(std::size_t bytes) noexcept;
  /// Whether `block` was one, and is gone.
  bool free(void* block) noexcept;
  /// Whether `address` is in a region. No lock.
  bool holds(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= lowest_.load(std::memory_order_relaxed) && at < highest_.load(std::memory_order_relaxed) &&
           regionOf(address).has_value();
  }
  /// Bytes that the program may use of the block that begins there; 0: none does.
  std::size_t sizeOf(const void* block) const noexcept;
  /// Whether the block has `bytes` now, at the same place. False, and nothing is changed, where it cannot have.
  bool resize(void* block, std::size_t bytes) noexcept;

  /// Blocks and bytes handed out so far.
  struct Given {
    std::size_t blocks = 0, bytes = 0;
  };
  Given given() const noexcept;
  /// Bytes of the blocks that there are.
  std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  struct Block {
    std::size_t bytes;  // that the program has
    std::size_t whole;  // with what is kept for it to grow
  };
  struct Region {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    bool isShared = true;                      // it gives blocks
    std::size_t touched = 0;                   // of the free pages, at most
    std::map<std::byte*, std::size_t> free{};  // by address, never two side by side
    std::map<std::byte*, Block> blocks{};
  };
  /// The same for a look without the mutex; 0: none.
  struct Span {
    std::atomic<std::uintptr_t> begin{0}, bytes{0};
  };
  static constexpr std::size_t mostRegions = 64;  // each has a file open

  static void beforeFork() noexcept;
  static void afterFork() noexcept;
  static void inChild() noexcept;

  static void* takeFrom(Region& region, std::size_t bytes, std::size_t whole, std::size_t alignment);
  static void giveBack(Region& region, std::byte* begin, std::size_t bytes);
  static void discard(Region& region) noexcept;
  void* take(std::size_t bytes, std::size_t whole, std::size_t alignment);
  bool addRegion(std::size_t least);
  std::optional<std::size_t> regionOf(const void* address) const noexcept;
  Region* regionHolding(const void* address) noexcept;
  void* withdrawIfEmpty(Region& region) noexcept;

  // What the library does for it happens while the mutex is free: it allocates under mutexes of its own. Recursive, as
  // handlers of other libraries for a fork run while it is held.
  mutable std::recursive_mutex mutex_;
  std::mutex forking_;                       // one fork at a time; taken before the other
  std::array<Region, mostRegions> regions_;  // without bytes: none
  std::array<Span, mostRegions> spans_;
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};  // of all regions that were ever there
  std::atomic<std::size_t> held_{0};
  Given given_;
  bool isOpen_ = false;
  bool hasHandlers_ = false;  // for forks
  bool isForking_ = false;    // no block is given, and no region begins or ends
  Child child_ = Child::copies;
  unsigned refusals_ = 0;  // of the system, one after the other
  unsigned skipped_ = 0;   // calls since the last of them
};

/// Never destroyed: the program frees memory in any destructor of its own.
SharedHeap& sharedHeap() noexcept;

}  // namespace tacc::mpi
