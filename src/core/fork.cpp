#include "core/fork.hpp"

#include <sched.h>
#include <time.h>

#include <new>

namespace tacc {
namespace {

/// Of looks at a mutex that another thread holds: 0.1 s and more.
constexpr int yields = 1000;
constexpr int naps = 1000;
constexpr timespec nap{0, 100'000};

constinit std::atomic<std::uint32_t> generation{1};
constinit std::atomic<ForkMutex*> mutexes{nullptr};
constinit std::atomic<ForkHook*> hooks{nullptr};

template <class Node>
void prepend(std::atomic<Node*>& list, Node* node, Node*& next) noexcept {
  next = list.load(std::memory_order_relaxed);
  while (!list.compare_exchange_weak(next, node, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace

/// The three moments of a fork, all in the thread that forks.
struct Forking {
  static void before() noexcept {
    for (ForkMutex* one = mutexes.load(std::memory_order_acquire); one != nullptr; one = one->next_) {
      if (take(*one)) one->holder_.store(::pthread_self(), std::memory_order_relaxed);
    }
  }

  static void inParent() noexcept {
    for (ForkMutex* one = mutexes.load(std::memory_order_acquire); one != nullptr; one = one->next_) giveBack(*one);
  }

  static void inChild() noexcept {
    std::uint32_t next = generation.load(std::memory_order_relaxed) + 1;
    generation.store(next == 0 ? 1 : next, std::memory_order_relaxed);
    for (ForkHook* one = hooks.load(std::memory_order_acquire); one != nullptr; one = one->next_) one->inChild_();
    for (ForkMutex* one = mutexes.load(std::memory_order_acquire); one != nullptr; one = one->next_) {
      if (giveBack(*one)) continue;
      one->holder_.store({}, std::memory_order_relaxed);
      new (&one->mutex_) std::mutex;  // its holder was a thread that is not here
    }
  }

 private:
  static bool take(ForkMutex& mutex) noexcept {
    for (int i = 0; i < yields + naps; ++i) {
      if (mutex.mutex_.try_lock()) return true;
      if (i < yields)
        ::sched_yield();
      else
        ::nanosleep(&nap, nullptr);
    }
    return false;
  }

  /// False when another thread holds it, or nobody: two threads may fork at once.
  static bool giveBack(ForkMutex& mutex) noexcept {
    if (::pthread_equal(mutex.holder_.load(std::memory_order_relaxed), ::pthread_self()) == 0) return false;
    mutex.holder_.store({}, std::memory_order_relaxed);
    mutex.mutex_.unlock();
    return true;
  }
};

namespace {

/// Where it fails, for want of memory at the program's start, a child is taken for its parent.
[[maybe_unused]] const int installed = ::pthread_atfork(Forking::before, Forking::inParent, Forking::inChild);

}  // namespace

std::uint32_t processGeneration() noexcept { return generation.load(std::memory_order_relaxed); }

ForkMutex::ForkMutex() noexcept { prepend(mutexes, this, next_); }

ForkHook::ForkHook(void (*inChild)() noexcept) noexcept : inChild_(inChild) { prepend(hooks, this, next_); }

}  // namespace tacc
