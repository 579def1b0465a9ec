// The kernels of grouped convolutions where each half of a block of 16 channels sees consecutive channels of its own,
// as with groups of 8: a vector of 8 output channels and one input value at a time, so nothing is permuted. On CPUs
// with vectors of 16 as well: Zen 4 executes these in halves anyway. Included by one file per instruction set, as
// tile-inl.hpp.
#include "compute/conv/vector-inl.hpp"

#if defined(__x86_64__) && TACC_LANES >= 8
namespace tacc::conv {
namespace TACC_CONV_ISA {

constexpr int halfLength = 8;
constexpr int halvesRowLimit = 12;

using Half [[gnu::vector_size(halfLength * sizeof(float))]] = float;
using UnalignedHalf [[gnu::vector_size(halfLength * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;

[[gnu::always_inline]] inline Half loadHalf(const float* from) { return *reinterpret_cast<const UnalignedHalf*>(from); }
[[gnu::always_inline]] inline void storeHalf(float* to, Half v) { *reinterpret_cast<UnalignedHalf*>(to) = v; }

/// One run for the pixels [kFrom, kTo).
template <int kHalves, int kPixels, int kFrom, int kTo>
[[gnu::always_inline]] inline void multiplyHalves(Half (&sum)[kHalves][kPixels], const float* input,
                                                  const std::int32_t* offsets, std::ptrdiff_t pixel,
                                                  const float* weights, int count) {
  const float* from[kHalves];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) from[h] = input + offsets[h];
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const Half w = loadHalf(weights + h * halfLength);
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) sum[h][p] += w * (from[h][p * pixel] - Half{});
      ++from[h];
    }
    weights += blockLength;
  }
}

/// kHalves of the block from `first` on. kPixelStride 0: as the call says.
template <int kHalves, int kPixels, int kPixelStride>
[[gnu::always_inline]] inline void tileOfHalves(const TileCall& call, int first) {
  Half sum[kHalves][kPixels];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
    const Half start = call.bias != nullptr ? loadHalf(call.bias + (first + h) * halfLength) : Half{};
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) sum[h][p] = start;
  }
  const std::ptrdiff_t pixel = kPixelStride != 0 ? kPixelStride : call.inputPixel;
  const TapRun* const end = call.runs + call.runCount;
  for (const TapRun* run = call.runs; run != end; ++run) {
    const float* const input = call.input + run->input;
    const float* const weights = call.weights + run->weights + first * halfLength;
    const std::int32_t* const offsets = call.offsets + run->weights / halfLength + first;
    const int count = run->count;
    switch (run->rim) {
      case Rim::none:
        multiplyHalves<kHalves, kPixels, 0, kPixels>(sum, input, offsets, pixel, weights, count);
        break;
      case Rim::first:
        multiplyHalves<kHalves, kPixels, 1, kPixels>(sum, input, offsets, pixel, weights, count);
        break;
      case Rim::firstTwo:
        multiplyHalves<kHalves, kPixels, 2, kPixels>(sum, input, offsets, pixel, weights, count);
        break;
      case Rim::last:
        multiplyHalves<kHalves, kPixels, 0, kPixels - 1>(sum, input, offsets, pixel, weights, count);
        break;
      case Rim::lastTwo:
        multiplyHalves<kHalves, kPixels, 0, kPixels - 2>(sum, input, offsets, pixel, weights, count);
        break;
    }
  }
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const std::ptrdiff_t at = (first + h) * halfLength + p * call.outputPixel;
      if (call.addend != nullptr) sum[h][p] += loadHalf(call.addend + at);
      if (call.relu) sum[h][p] = sum[h][p] > Half{} ? sum[h][p] : Half{};
      storeHalf(call.output + at, sum[h][p]);
    }
  }
}

/// Both halves together where their sums fit into 16 registers, else one after the other.
template <int kPixels, int kPixelStride>
void halvesTile(const TileCall& call) {
  if constexpr (kPixels <= 6) {
    tileOfHalves<2, kPixels, kPixelStride>(call, 0);
  } else {
    tileOfHalves<1, kPixels, kPixelStride>(call, 0);
    tileOfHalves<1, kPixels, kPixelStride>(call, 1);
  }
}

/// A gradient tile of one block: rows are consecutive input channels for each half, from its offset on.
template <int kRows>
void halvesGradient(const GradientCall& call) {
  for (int h = 0; h < 2; ++h) {
    Half sum[kRows] = {};
    for (int image = 0; image < call.images; ++image) {
      for (int line = 0; line < call.lines; ++line) {
        const float* input = call.input + image * call.inputImage + line * call.inputLine + call.offsets[h];
        const float* from = call.gradient + image * call.gradientImage + line * call.gradientLine + h * halfLength;
        for (int pixel = 0; pixel < call.pixels; ++pixel) {
          const Half g = loadHalf(from);
#pragma GCC unroll 16
          for (int row = 0; row < kRows; ++row) sum[row] += g * (input[row] - Half{});
          input += call.inputPixel;
          from += blockLength;
        }
      }
    }
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      float* const to = call.output + row * call.outputRow + h * halfLength;
      if (call.accumulate) sum[row] += loadHalf(to);
      storeHalf(to, sum[row]);
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
#endif
