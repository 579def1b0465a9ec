#include "allocation_fault.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace tacc::test {
namespace {

constinit std::atomic<long> count{0};
constinit std::atomic<long> failing{0};
constinit std::atomic<bool> lasts{false};
constinit std::atomic<std::size_t> largest{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  const long fails = failing.load(std::memory_order_relaxed);
  if (fails > 0) {
    const long number = count.fetch_add(1, std::memory_order_relaxed) + 1;
    std::size_t known = largest.load(std::memory_order_relaxed);
    while (bytes > known && !largest.compare_exchange_weak(known, bytes, std::memory_order_relaxed)) {
    }
    if (number == fails || (number > fails && lasts.load(std::memory_order_relaxed))) throw std::bad_alloc();
  }
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void failAllocation(long number, bool isLasting) {
  lasts = isLasting;
  count = 0;
  largest = 0;
  failing = number;
}

long countAllocations() { return count; }

std::size_t largestAllocation() { return largest; }

}  // namespace tacc::test

void* operator new(std::size_t bytes) { return tacc::test::allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return tacc::test::allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return tacc::test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return tacc::test::allocate(bytes, static_cast<std::size_t>(alignment));
}
// The library's call the above; a sanitizer's would not, and give out memory of its own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return ::operator new(bytes, std::nothrow); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
