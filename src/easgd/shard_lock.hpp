// A lock in memory that processes share, which survives the process that holds it.
//
// It is a robust mutex of POSIX: when its holder dies, however it dies, the kernel gives it to the next who wants it.
// What it guards here needs no repair: a holder that died in the midst of an exchange has moved some elements of the
// center and not others, and each of these is a center that an exchange of fewer elements would have left.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "comm/bootstrap/wait.hpp"

namespace tacc {

class alignas(64) ShardLock {
 public:
  enum class Taken : std::uint8_t { no, yes, fromTheDead };

  /// In memory that others map later. Throws taccSystemError.
  ShardLock();
  ShardLock(const ShardLock&) = delete;
  ShardLock& operator=(const ShardLock&) = delete;

  /// Does not wait. `holder`: who takes it, for holder().
  Taken tryLock(std::uint32_t holder);
  /// Waits until the deadline; `look` is called about every 50 ms meanwhile and may throw. Taken::no: the time is over.
  Taken lock(std::uint32_t holder, const Deadline& deadline, const std::function<void()>& look);
  void unlock() noexcept;

  /// Who holds it, as it said; 0: nobody, or one who did not say. Only for messages.
  std::uint32_t holder() const noexcept { return holder_.load(std::memory_order_relaxed); }

 private:
  Taken noteTaken(int result, std::uint32_t holder);

  pthread_mutex_t mutex_;
  std::atomic<std::uint32_t> holder_{0};
};

}  // namespace tacc
