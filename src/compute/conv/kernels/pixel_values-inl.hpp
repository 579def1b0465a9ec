// Where a tile finds one value of each of its pixels. Included by tile-inl.hpp.
#pragma once

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

  /// Calls visit(pixel, its value) for [kFrom, kTo).
  template <int kFrom, int kTo, class Visit>
  [[gnu::always_inline]] void forEach(const Visit& visit) const {
    if constexpr (kPixelStride != 0) {
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) visit(p, input_[p * kPixelStride]);
      return;
    }
    std::ptrdiff_t bytes = pixel_ * static_cast<std::ptrdiff_t>(sizeof(float));
    // Or else the compiler computes multiples of it before the loop, and spills them.
    asm volatile("" : "+r"(bytes));
    const char* place = reinterpret_cast<const char*>(input_);
#pragma GCC unroll 16
    for (int p = 0; p < kTo; ++p) {
      if (p >= kFrom) visit(p, *reinterpret_cast<const float*>(place + p % apart * bytes));
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
  struct Value {
    const MovingPixels& of;
    int value;

    template <int kFrom, int kTo, class Visit>
    [[gnu::always_inline]] void forEach(const Visit& visit) const {
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) {
        const char* const from = kPixelStride != 0
                                     ? of.place_[0] + p * kPixelStride * static_cast<std::ptrdiff_t>(sizeof(float))
                                     : of.place_[p / apart] + p % apart * of.bytes_;
        visit(p, reinterpret_cast<const float*>(from)[value]);
      }
    }
  };
  /// Nothing is loaded for it before those before it have been multiplied: there are no registers for it. Nor are
  /// multiples of the distance computed before, as above.
  [[gnu::always_inline]] Value value(int value) {
    asm volatile("" : "+r"(bytes_) : : "memory");
    return {*this, value};
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
  static constexpr int apart = 3;
  static constexpr int places = kPixelStride != 0 ? 1 : (kPixels + apart - 1) / apart;

  std::ptrdiff_t bytes_;
  const char* place_[places];
};

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
