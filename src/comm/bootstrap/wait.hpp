// Waiting on sockets with a deadline, and ending such a wait from another thread.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "transports/file_descriptor.hpp"

namespace tacc {

/// A moment on the monotonic clock.
class Deadline {
 public:
  /// `seconds` from now; at most about a hundred years.
  explicit Deadline(double seconds);

  bool passed() const noexcept { return Clock::now() >= end_; }
  /// Time left in milliseconds, rounded up, 0 when passed; for poll().
  int milliseconds() const noexcept;
  /// Time left in seconds, 0 when passed.
  double seconds() const noexcept;
  bool operator<(const Deadline& other) const noexcept { return end_ < other.end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

/// How long a wait lasts until work that goes on beside it is due again. Longer and longer while nothing comes: where
/// hundreds of ranks share a core, those that wake up for nothing would keep the others from it.
class IdlePause {
 public:
  void reset() noexcept { seconds_ = first; }
  double next() noexcept {
    const double now = seconds_;
    seconds_ = seconds_ * 1.5 < last ? seconds_ * 1.5 : last;
    return now;
  }

 private:
  static constexpr double first = 0.001, last = 0.02;
  double seconds_ = first;
};

/// Ends waits of another thread.
class Interrupt {
 public:
  /// `rank` is that of the thread whose waits it ends, for the message. Owns no descriptor: each thread that waits has
  /// one, whatever number of these it waits with.
  explicit Interrupt(int rank) noexcept : rank_(rank) {}

  /// From any thread, as often as one likes: this and every later wait ends.
  void raise() noexcept;
  bool raised() const noexcept { return raised_.load(std::memory_order_acquire); }
  /// From any thread: the wait that goes on returns, or the next one. No later one.
  void nudge() noexcept;
  /// Whether that was done since this was asked last.
  bool takeNudge() const noexcept { return nudged_.exchange(false, std::memory_order_acquire); }
  int rank() const noexcept { return rank_; }

  /// While it lives, raise() writes to the event descriptor `fd`; -1: to none.
  class Listening {
   public:
    Listening(const Interrupt& interrupt, int fd);
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    const Interrupt& interrupt_;
    int fd_;
  };

 private:
  int rank_;
  std::atomic<bool> raised_{false};
  mutable std::atomic<bool> nudged_{false};
  void ring() noexcept;
  mutable std::mutex mutex_;
  mutable std::vector<int> listening_;  // event descriptors of the threads that wait; under the mutex
};

/// Waits until one of `sockets` is ready (their revents say which), the interrupt was nudged, or the deadline has
/// passed. Throws taccRemoteError when interrupted.
void waitFor(std::vector<pollfd>& sockets, const Interrupt& interrupt, const Deadline& deadline);

/// Whether the other end of a connection has closed it, or it is broken. Takes nothing from it. False for -1.
bool hasEnded(int socket) noexcept;

}  // namespace tacc
