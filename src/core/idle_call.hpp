// What a program wants to be done while a call waits for other ranks (taccConfig_t.idle).
#pragma once

#include <chrono>

#include "core/uncancelled.hpp"

namespace tacc {

/// The program's function, or none.
struct IdleCallback {
  void (*function)(void*) = nullptr;
  void* context = nullptr;
};

/// Calls it at a bounded rate. For one thread at a time.
class IdleCall {
 public:
  explicit IdleCall(IdleCallback callback = {}) : callback_(callback) {}

  explicit operator bool() const noexcept { return callback_.function != nullptr; }

  /// For loops that wait: calls the function unless that was done a moment ago. One comparison where there is none,
  /// else a look at the clock.
  void operator()() {
    if (callback_.function == nullptr) return;
    const auto now = Clock::now();
    if (now - last_ < leastPause) return;
    {
      const Uncancelled call;
      callback_.function(callback_.context);
    }
    last_ = Clock::now();  // where the function takes long, the pause comes after it
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Asking MPI whether something came takes about a microsecond: a few per cent of the wait.
  static constexpr std::chrono::microseconds leastPause{20};

  IdleCallback callback_;
  Clock::time_point last_{};
};

}  // namespace tacc
