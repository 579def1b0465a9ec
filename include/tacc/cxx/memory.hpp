/* Library memory, and memory that is made as good. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_MEMORY_HPP
#define TACC_CXX_MEMORY_HPP

#include <cstddef>
#include <limits>
#include <utility>

#include "tacc/cxx/element.hpp"
#include "tacc/cxx/error.hpp"

namespace taccxx {

/// Zeroed library memory (taccMemAlloc): other ranks of the node reach it, so collectives on it need no copy. A
/// contiguous range.
template <Element T>
class Memory {
 public:
  /// Of a container.
  using value_type = T;
  /// Of a container.
  using iterator = T*;
  /// Of a container.
  using const_iterator = const T*;

  /// Of `size` elements, all zero.
  explicit Memory(std::size_t size) : size_(size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw Error(taccInvalidArgument, "taccxx::Memory: this number of elements does not fit into an address space");
    void* data = nullptr;
    check(taccMemAlloc(&data, size * sizeof(T)));
    data_ = static_cast<T*>(data);
  }
  /// Takes what `other` has.
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  /// Exchanges what both have.
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Memory() { static_cast<void>(taccMemFree(data_)); }

  /// The first element.
  T* data() noexcept { return data_; }
  /// The first element.
  const T* data() const noexcept { return data_; }
  /// Elements.
  std::size_t size() const noexcept { return size_; }
  /// The first element.
  T* begin() noexcept { return data_; }
  /// Behind the last element.
  T* end() noexcept { return data_ + size_; }
  /// The first element.
  const T* begin() const noexcept { return data_; }
  /// Behind the last element.
  const T* end() const noexcept { return data_ + size_; }
  /// Element `i`, which is not checked.
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  /// Element `i`, which is not checked.
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The pages of a buffer, shared in place while this lives (taccCommRegister). Ends before the buffer and the
/// communicator do.
class Registration {
 public:
  /// Registers the buffer with `comm`.
  template <Output R>
  Registration(taccComm_t comm, R&& buffer) : comm_(comm) {
    check(taccCommRegister(comm, std::ranges::data(buffer),
                           std::ranges::size(buffer) * sizeof(std::ranges::range_value_t<R>), &handle_));
  }
  /// Takes what `other` has.
  Registration(Registration&& other) noexcept : comm_(other.comm_), handle_(std::exchange(other.handle_, nullptr)) {}
  /// Exchanges what both have.
  Registration& operator=(Registration&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Registration() {
    if (handle_ != nullptr) static_cast<void>(taccCommDeregister(comm_, handle_));
  }

 private:
  taccComm_t comm_;
  void* handle_ = nullptr;
};

}  // namespace taccxx

#endif
