// An order between plain reads and a later look at an atomic word: a look that comes after all of them.
#pragma once

namespace tacc {

/// No later load of this thread is done before its earlier ones. Nothing on x86, whose loads stay in order. An acquire
/// fence would do, but ThreadSanitizer knows none.
inline void finishReads() noexcept {
#if defined(__aarch64__)
  asm volatile("dmb ishld" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace tacc
