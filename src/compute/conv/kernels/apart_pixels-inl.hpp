// Vectors of pixels any distance apart, as tiles of channel-wise convolutions read them. Included by
// depthwise_nhwc-inl.hpp.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Where pixel kPixel is, behind the first one. The compiler would compute an address for each pixel and line of taps,
/// nearly as many instructions as there are multiply-adds, or spill multiples of the distance. An address may be one
/// register and up to four times another one, so these multiples are kept, and only the first pixel's place moves.
class ApartPixels {
 public:
  [[gnu::always_inline]] explicit ApartPixels(std::ptrdiff_t step)
      : one_(step * static_cast<std::ptrdiff_t>(sizeof(float))), three_(3 * one_), five_(5 * one_), seven_(7 * one_) {
    asm("" : "+r"(one_), "+r"(three_), "+r"(five_), "+r"(seven_));  // values: not made of one another again
  }

  /// Pixel `kPixel` of [0, 8), and the place of the one behind these.
  template <int kPixel>
  [[gnu::always_inline]] Vector load(const float* first) const {
#if defined(__x86_64__) && TACC_LANES == 8
    if constexpr (kPixel != 0) {
      Vector x;
      asm("vmovups (%1,%2,%c3), %0"
          : "=x"(x)
          : "r"(first), "r"(multiple<kPixel>()), "i"(times(kPixel)), "m"(*reinterpret_cast<const Unaligned*>(first)));
      return x;
    }
#endif
    return TACC_CONV_ISA::load(at<kPixel>(first));
  }
  template <int kPixel>
  [[gnu::always_inline]] const float* at(const float* first) const {
    if constexpr (kPixel == 0) return first;
    const char* const place = reinterpret_cast<const char*>(first) + times(kPixel) * multiple<kPixel>();
    return reinterpret_cast<const float*>(place);
  }

 private:
  /// Pixel kPixel is `times` of these behind the first one.
  template <int kPixel>
  [[gnu::always_inline]] std::ptrdiff_t multiple() const {
    if constexpr (kPixel == 3 || kPixel == 6) return three_;
    if constexpr (kPixel == 5) return five_;
    if constexpr (kPixel == 7) return seven_;
    return one_;
  }
  static constexpr int times(int pixel) { return pixel == 2 || pixel == 6 ? 2 : pixel == 4 ? 4 : pixel == 8 ? 8 : 1; }

  std::ptrdiff_t one_, three_, five_, seven_;
};

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
