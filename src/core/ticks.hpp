// A clock that costs a few nanoseconds, for times that are looked at rarely.
#pragma once

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace tacc {

/// A counter of a steady rate, which TickRate finds.
inline std::uint64_t readTicks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Turns ticks into microseconds of the host's clock since 1970: the longer it lives, the better it knows the rate.
class TickRate {
 public:
  TickRate() : tick_(readTicks()), time_(microseconds()) {}

  class Scale {
   public:
    double at(std::uint64_t tick) const noexcept {
      return time_ + (static_cast<double>(tick) - static_cast<double>(tick_)) * perTick_;
    }

   private:
    friend class TickRate;
    double time_, perTick_;
    std::uint64_t tick_;
  };
  Scale scale() const {
    Scale scale;
    const std::uint64_t ticks = readTicks() - tick_;
    scale.time_ = time_;
    scale.tick_ = tick_;
    scale.perTick_ = ticks == 0 ? 0 : (microseconds() - time_) / static_cast<double>(ticks);
    return scale;
  }

 private:
  static double microseconds() {
    return std::chrono::duration<double, std::micro>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  std::uint64_t tick_;
  double time_;
};

}  // namespace tacc
