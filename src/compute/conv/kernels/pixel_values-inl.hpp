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

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
