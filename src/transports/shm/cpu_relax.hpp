// One turn of a spin loop.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacc {

/// Tells the core that this is a spin loop: it saves power and frees the sibling thread's issue slots.
inline void relaxCpu() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // yield is a no-op on most cores; isb waits about as long as x86's pause
#endif
}

}  // namespace tacc
