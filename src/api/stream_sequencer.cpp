#include "api/stream_sequencer.hpp"

namespace tacc {

bool StreamSequencer::waitTurn(std::uint64_t turn) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || finished_.load(std::memory_order_relaxed) == turn; });
  return !closed_;
}

void StreamSequencer::finish() noexcept {
  const std::lock_guard lock(mutex_);
  finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  changed_.notify_all();
}

bool StreamSequencer::waitIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || idle(); });
  return !closed_;
}

void StreamSequencer::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void StreamSequencer::reset() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  taken_.store(0, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
}

}  // namespace tacc
