// Float32 numbers of the library's own: zeros.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "transports/shm/library_memory.hpp"

namespace tacc {

/// `own`: in huge pages where the system gives them, taken as they are used. `library`: other ranks of the host can
/// reach it (transports/shm/library_memory.hpp).
enum class FloatMemory { own, library };

class FloatBuffer {
 public:
  explicit FloatBuffer(std::size_t count = 0, FloatMemory kind = FloatMemory::own) : count_(count), kind_(kind) {
    if (count == 0) return;
    if (kind == FloatMemory::library) {
      values_ = static_cast<float*>(allocateLibraryMemory(bytes()));
      return;
    }
    void* const memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes(), MADV_HUGEPAGE);  // a wish
    values_ = static_cast<float*>(memory);
  }
  FloatBuffer(FloatBuffer&& other) noexcept
      : values_(std::exchange(other.values_, nullptr)), count_(std::exchange(other.count_, 0)), kind_(other.kind_) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept {
    std::swap(values_, other.values_);
    std::swap(count_, other.count_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~FloatBuffer() {
    if (values_ == nullptr) return;
    if (kind_ == FloatMemory::library)
      freeLibraryMemory(values_);
    else
      ::munmap(values_, bytes());
  }

  float* data() const noexcept { return values_; }
  std::size_t size() const noexcept { return count_; }
  std::span<float> span() const noexcept { return {values_, count_}; }

 private:
  std::size_t bytes() const noexcept { return count_ * sizeof(float); }

  float* values_ = nullptr;
  std::size_t count_;
  FloatMemory kind_;
};

}  // namespace tacc
