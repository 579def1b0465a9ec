// The order of one communicator's calls. A call that runs later, in a stream's thread, takes a turn when it is made
// and runs when all turns before it are finished, whatever streams they went to. A null-stream call outside a group
// needs no turn: it only waits until all are finished, which costs one comparison when no stream is in use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tacc {

class StreamSequencer {
 public:
  /// All turns taken are finished. Everything that the finished calls wrote is visible then.
  bool idle() const noexcept {
    return finished_.load(std::memory_order_acquire) == taken_.load(std::memory_order_relaxed);
  }

  /// The first of the next `count` turns. Only from the thread that uses the communicator. Every turn must be
  /// finished once.
  std::uint64_t take(std::uint64_t count = 1) noexcept { return taken_.fetch_add(count, std::memory_order_relaxed); }

  /// Waits until all turns before `turn` are finished. False: close() came first, and the call must not run.
  bool waitTurn(std::uint64_t turn);

  /// Ends the turn of the call that waitTurn() let through, or that close() turned away.
  void finish() noexcept;

  /// Waits until idle(). False: close() came first.
  bool waitIdle();

  /// Lets nobody through any more; all who wait return. From any thread.
  void close() noexcept;

  /// Back to the state of a new line. Nobody may be waiting.
  void reset() noexcept;

 private:
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> finished_{0};  // changes under mutex_, is read without it
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;  // under mutex_
};

}  // namespace tacc
