#include "api/tickets.hpp"

namespace tacc {

bool Tickets::waitTurn(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || finished_.load(std::memory_order_relaxed) == ticket; });
  return !closed_;
}

void Tickets::finish() noexcept {
  const std::lock_guard lock(mutex_);
  finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  changed_.notify_all();
}

bool Tickets::waitIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || idle(); });
  return !closed_;
}

void Tickets::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Tickets::reset() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  taken_.store(0, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
}

}  // namespace tacc
