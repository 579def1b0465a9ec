// Where a tile finds one value of each of its pixels. Included by tile-inl.hpp.
#pragma once

#include <utility>

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Values that are kPixelStride floats from pixel to pixel, or `pixel` where that is 0.
///
/// Then every address would be a register of its own, more than there are, and what finds none would be loaded again in
/// each step. But an address may be a register, or that and once or twice another one: so one place moves on by three
/// pixels.
template <int kPixelStride>
class PixelValues {
 public:
  [[gnu::always_inline]] PixelValues(const float* input, std::ptrdiff_t pixel) : input_(input), pixel_(pixel) {}

  /// Calls visit(pixel, its value in all lanes) for [kFrom, kTo).
  template <int kFrom, int kTo, class Visit>
  [[gnu::always_inline]] void forEach(const Visit& visit) const {
    if constexpr (kPixelStride != 0) {
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) visit(p, broadcast(input_[p * kPixelStride]));
      return;
    }
    std::ptrdiff_t bytes = pixel_ * static_cast<std::ptrdiff_t>(sizeof(float));
    // Or else the compiler computes multiples of it before the loop, and spills them.
    asm volatile("" : "+r"(bytes));
    const char* place = reinterpret_cast<const char*>(input_);
#pragma GCC unroll 16
    for (int p = 0; p < kTo; ++p) {
      if (p >= kFrom) visit(p, broadcast(*reinterpret_cast<const float*>(place + p % apart * bytes)));
      if (p % apart == apart - 1 && p + 1 < kTo) {
        place += apart * pixel_ * static_cast<std::ptrdiff_t>(sizeof(float));
        asm("" : "+r"(place));
      }
    }
  }

 private:
  static constexpr int apart = 3;

  const float* input_;
  std::ptrdiff_t pixel_;
};

/// The float that is kIndex behind `place` and kTimes (0 to 2) times `bytes`, in all lanes. The compiler would make an
/// instruction of its own of twice the distance, for each pixel and value again.
template <int kTimes, int kIndex>
[[gnu::always_inline]] inline Vector broadcastFrom(const char* place, std::ptrdiff_t bytes) {
#if defined(__x86_64__) && TACC_LANES == 8
  if constexpr (kTimes != 0) {
    Vector x;
    asm volatile("vbroadcastss %c3(%1,%2,%c4), %0"
                 : "=x"(x)
                 : "r"(place), "r"(bytes), "i"(kIndex * sizeof(float)), "i"(kTimes));
    return x;
  }
#endif
  return broadcast(reinterpret_cast<const float*>(place + kTimes * bytes)[kIndex]);
}

/// The same for several values that follow each other: every third pixel has a place of its own, all of which move on
/// behind the last of these values; which value it is, and which pixel of three, is part of the instruction.
template <int kPixelStride, int kPixels>
class MovingPixels {
 public:
  [[gnu::always_inline]] MovingPixels(const float* input, std::ptrdiff_t pixel)
      : bytes_(pixel * static_cast<std::ptrdiff_t>(sizeof(float))) {
#pragma GCC unroll 16
    for (int i = 0; i < places; ++i) place_[i] = reinterpret_cast<const char*>(input) + i * apart * bytes_;
  }

  /// One of those values.
  template <int kValue>
  struct Value {
    const MovingPixels& of;

    template <int kFrom, int kTo, class Visit>
    [[gnu::always_inline]] void forEach(const Visit& visit) const {
      [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
        (visit(kFrom + kIndex, of.template at<kFrom + kIndex, kValue>()), ...);
      }
      (std::make_integer_sequence<int, kTo - kFrom>());
    }
  };
  /// Nothing is loaded for it before those before it have been multiplied: there are no registers for it. Nor are
  /// multiples of the distance computed before, as above.
  template <int kValue>
  [[gnu::always_inline]] Value<kValue> value() {
    asm volatile("" : "+r"(bytes_) : : "memory");
    return {*this};
  }

  [[gnu::always_inline]] void moveOn(int values) {
#pragma GCC unroll 16
    for (int i = 0; i < places; ++i) {
      place_[i] += values * static_cast<std::ptrdiff_t>(sizeof(float));
      asm("" : "+r"(place_[i]));  // a register of its own
    }
  }
  [[gnu::always_inline]] const float* first() const { return reinterpret_cast<const float*>(place_[0]); }

 private:
  template <int kPixel, int kValue>
  [[gnu::always_inline]] Vector at() const {
    if constexpr (kPixelStride != 0) {
      return broadcastFrom<0, kPixel * kPixelStride + kValue>(place_[0], 0);
    } else {
      return broadcastFrom<kPixel % apart, kValue>(place_[kPixel / apart], bytes_);
    }
  }

  static constexpr int apart = 3;
  static constexpr int places = kPixelStride != 0 ? 1 : (kPixels + apart - 1) / apart;

  std::ptrdiff_t bytes_;
  const char* place_[places];
};

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
