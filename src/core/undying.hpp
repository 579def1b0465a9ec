// Objects that are used until the process ends, and so are never destroyed.
#pragma once

#include <cstddef>
#include <new>

namespace tacc {

/// For a static in a function. It lies in static memory: its first use allocates nothing but what T's constructor does,
/// and may come where nothing may fail, such as closing a descriptor.
template <class T>
class Undying {
 public:
  Undying() { ::new (static_cast<void*>(storage_)) T; }
  Undying(const Undying&) = delete;
  Undying& operator=(const Undying&) = delete;

  T& get() noexcept { return *std::launder(reinterpret_cast<T*>(storage_)); }

 private:
  alignas(T) std::byte storage_[sizeof(T)];
};

}  // namespace tacc
