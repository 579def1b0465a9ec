// What every thread has one of.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>
#include <system_error>

namespace tacc {

/// A T for each thread that asks for it, which ends with the thread; that of the main thread is left to the process's
/// end. For a T with a destructor, in place of thread_local: there glibc ends the process when it has no memory to note
/// the destructor, in the first call of a thread that may only have come to say that memory has run out. Of static
/// storage duration, and used until the process ends: the library is never unloaded (-z nodelete).
template <class T>
class PerThread {
 public:
  PerThread() {
    const int code = ::pthread_key_create(&key_, [](void* object) { delete static_cast<T*>(object); });
    if (code != 0) throw std::system_error(code, std::generic_category(), "cannot keep data for each thread");
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// This thread's. Throws std::bad_alloc.
  T& get() {
    if (T* const found = find()) return *found;
    auto made = std::make_unique<T>();
    if (::pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }
  /// Null before this thread's first get().
  T* find() const noexcept { return static_cast<T*>(::pthread_getspecific(key_)); }

 private:
  pthread_key_t key_{};
};

}  // namespace tacc
