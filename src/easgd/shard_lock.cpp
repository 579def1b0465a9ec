#include "easgd/shard_lock.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "transports/shm/core_competition.hpp"
#include "transports/shm/cpu_relax.hpp"

namespace tacc {
namespace {

constexpr int spins = 50;
constexpr int yields = 50;
/// Then a waiter sleeps, first for so long, and at last for as long as the second says. It never waits in the kernel
/// for the lock: so giving it back makes no system call, and nobody is woken by one who dies meanwhile.
constexpr long firstLockNap = 20'000, lastLockNap = 1'000'000;  // nanoseconds
constexpr double lookSeconds = 0.05;

void require(int code, const char* what) {
  errno = code;
  if (code != 0) failErrno("cannot make a lock that processes share: {}", what);
}

}  // namespace

ShardLock::ShardLock() {
  pthread_mutexattr_t attributes;
  require(::pthread_mutexattr_init(&attributes), "pthread_mutexattr_init");
  require(::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), "pthread_mutexattr_setpshared");
  require(::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), "pthread_mutexattr_setrobust");
  require(::pthread_mutex_init(&mutex_, &attributes), "pthread_mutex_init");
  ::pthread_mutexattr_destroy(&attributes);
}

ShardLock::Taken ShardLock::noteTaken(int result, std::uint32_t holder) {
  if (result == EBUSY || result == ETIMEDOUT) return Taken::no;
  if (result != 0 && result != EOWNERDEAD) {
    errno = result;
    failErrno("cannot lock a part of a center");
  }
  holder_.store(holder, std::memory_order_relaxed);
  if (result == 0) return Taken::yes;
  ::pthread_mutex_consistent(&mutex_);
  return Taken::fromTheDead;
}

ShardLock::Taken ShardLock::tryLock(std::uint32_t holder) {
  return noteTaken(::pthread_mutex_trylock(&mutex_), holder);
}

ShardLock::Taken ShardLock::lock(std::uint32_t holder, const Deadline& deadline, const std::function<void()>& look) {
  for (int i = 0; i < spins + yields; ++i) {
    if (const Taken taken = tryLock(holder); taken != Taken::no) return taken;
    if (i < spins)
      relaxCpu();
    else if (coreCompetition().yield())
      break;  // another program had the core for a slice, and would for the next
  }
  Deadline nextLook(lookSeconds);
  timespec nap{0, firstLockNap};
  for (;;) {
    if (const Taken taken = tryLock(holder); taken != Taken::no || deadline.passed()) return taken;
    if (nextLook.passed()) {
      look();
      nextLook = Deadline(lookSeconds);
    }
    ::nanosleep(&nap, nullptr);
    nap.tv_nsec = std::min(lastLockNap, nap.tv_nsec * 2);
  }
}

void ShardLock::unlock() noexcept {
  holder_.store(0, std::memory_order_relaxed);
  ::pthread_mutex_unlock(&mutex_);
}

}  // namespace tacc
