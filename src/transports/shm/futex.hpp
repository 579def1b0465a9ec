// Sleeping on a 32-bit word that other threads or processes change.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace tacc {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// Sleeps while `word` == `expected`, at most `nanoseconds`. Wakes spuriously; the caller looks at the word again.
inline void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected, long nanoseconds) noexcept {
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

/// Wakes all sleepers on `word`, in every process that maps it.
inline void futexWakeAll(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tacc
