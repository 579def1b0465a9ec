// Floating-point arithmetic as a program begins with it, for what ranks decide by prices.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tacc {

/// While it lives, this thread rounds to nearest, keeps denormals and has no traps, whatever the program has set: ranks
/// that round otherwise, as interval arithmetic does for a while, would find other prices from the same figures, and
/// choose other plans. Not for reductions, which are the program's arithmetic. What is computed has to be in a function
/// that is not inlined where this lives: compilers move arithmetic across the change. Cost: 11 ns (Zen 3).
class DefaultArithmetic {
 public:
#if defined(__x86_64__)
  DefaultArithmetic() noexcept : before_(_mm_getcsr()) {
    if ((before_ & ~raised) != initial) [[unlikely]]
      _mm_setcsr(initial);
  }
  /// What the program's own arithmetic has raised stays so; what was raised meanwhile is not told where it has set
  /// something, and may have traps.
  ~DefaultArithmetic() {
    if ((before_ & ~raised) != initial) [[unlikely]]
      _mm_setcsr(before_);
  }
#elif defined(__aarch64__)
  DefaultArithmetic() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ != initial) [[unlikely]]
      asm volatile("msr fpcr, %0" ::"r"(std::uint64_t{initial}));
  }
  ~DefaultArithmetic() {
    if (before_ != initial) [[unlikely]]
      asm volatile("msr fpcr, %0" ::"r"(before_));
  }
#else
  DefaultArithmetic() noexcept {}
#endif
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned initial = 0x1f80;  // all exceptions masked
  static constexpr unsigned raised = 0x3f;     // flags of exceptions that have been
  unsigned before_;
#elif defined(__aarch64__)
  static constexpr std::uint64_t initial = 0;
  std::uint64_t before_ = 0;
#endif
};

}  // namespace tacc
