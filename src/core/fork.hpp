// What the library does when its process forks.
//
// A child made by fork() has the memory and the descriptors of its parent, but none of its threads. It is no rank: it
// must not act on what it inherited, nor keep connections of its parent open, and it may use the library for itself. So
//   - the mutexes of what belongs to the whole process are taken before the fork and given back after it on both sides,
//     and what they guard is whole in the child (ForkMutex);
//   - hooks in the child mark what it inherited as another process's, and close its connections (ForkHook).
// A hook does only what a signal handler may: other threads of the parent may have held the allocator's locks.
//
// Only fork() is seen: not _Fork(), nor clone() by system call. Children of vfork() and posix_spawn() have no more than
// exec leaves them, and every descriptor of the library closes there.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tacc {

/// The process that something belongs to: changes in a forked child, and is never 0. One load.
std::uint32_t processGeneration() noexcept;

/// A mutex of the process's own that a child finds free, with what it guards whole. Lives until the process ends. To be
/// held for short: a fork waits for it, for some time at most, so that no order of locks can make it wait for ever.
class ForkMutex {
 public:
  ForkMutex() noexcept;
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct Forking;
  std::mutex mutex_;
  std::atomic<pthread_t> holder_{};  // the thread that holds it for its fork
  ForkMutex* next_ = nullptr;
};

/// Work to do in each forked child before anything else, while all ForkMutexes are held. Lives until the process ends.
class ForkHook {
 public:
  explicit ForkHook(void (*inChild)() noexcept) noexcept;
  ForkHook(const ForkHook&) = delete;
  ForkHook& operator=(const ForkHook&) = delete;

 private:
  friend struct Forking;
  void (*inChild_)() noexcept;
  ForkHook* next_ = nullptr;
};

}  // namespace tacc
