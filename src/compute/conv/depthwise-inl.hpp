// Channel-wise convolutions forward and backward to the data. A line of results is computed in strips of pixels that
// stay in registers, and with them the weights of one line of the kernel: each value of the input is read once for all
// taps of that line. Included by one file per instruction set, as tile-inl.hpp.
#pragma once

#include <utility>

#include "compute/conv/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// How a strip of kPixels results depends on columns of what is read: on every column, on every second one, or, for
/// `kSpreads`, each column on every second result, of which the first one is `kShift` pixels behind an even place.
template <int kWidth, int kStride, bool kSpreads, int kShift, int kPixels>
struct StripShape {
  static constexpr int width = kWidth;
  static constexpr int pixels = kPixels;
  static constexpr int columns =
      kSpreads ? (kPixels + kWidth - 2 - kShift) / kStride + 1 : (kPixels - 1) * kStride + kWidth;
  /// Columns before the first one that there is, at most, while the padding is narrower than the kernel.
  static constexpr int mostOutside = kWidth - 1;

  /// The result that column and tap contribute to; -1: none.
  static constexpr int result(int column, int tap) {
    if (kSpreads) {
      const int pixel = kStride * column + tap + kShift - (kWidth - 1);
      return pixel >= 0 && pixel < kPixels ? pixel : -1;
    }
    const int distance = column - tap;
    return distance >= 0 && distance % kStride == 0 && distance / kStride < kPixels ? distance / kStride : -1;
  }
  /// The column that the strip at result x begins with.
  static constexpr int firstColumn(int x, int pad) {
    return kSpreads ? (x + pad - kShift) / kStride - (kWidth - 1) / kStride + kShift : x * kStride - pad;
  }
};

/// Lines that contribute to one line of results, with the weights of each.
struct DepthwiseLines {
  const float* input[maxDepthwiseLines];
  const float* weights[maxDepthwiseLines];
  int count;
};

inline void collectLines(const DepthwiseCall& call, int y, DepthwiseLines& lines) {
  const std::ptrdiff_t lineFloats = std::ptrdiff_t{call.inputWidth} * blockLength;
  const std::ptrdiff_t rowFloats = std::ptrdiff_t{call.kernelWidth} * blockLength;
  int count = 0;
  for (int r = 0; r < call.kernelHeight; ++r) {
    int line = 0;
    if (call.spreadsLines) {
      const int spread = y + call.padHeight - r * call.dilationHeight;
      if (spread < 0 || spread % call.strideHeight != 0) continue;
      line = spread / call.strideHeight;
    } else {
      line = y * call.strideHeight - call.padHeight + r * call.dilationHeight;
    }
    if (line < 0 || line >= call.inputHeight) continue;
    lines.input[count] = call.input + line * lineFloats;
    lines.weights[count++] = call.weights + r * rowFloats;
  }
  lines.count = count;
}

/// Where a strip is.
struct StripPlace {
  std::ptrdiff_t column;  // the first one, in floats from a line's beginning
  int from, to;           // columns that there are, from the first one on
  int pixels;             // results that there are
  std::ptrdiff_t output;  // in floats from the plane's beginning
};

template <int kPixels, bool kIsWhole>
[[gnu::always_inline]] inline void finishStrip(const DepthwiseCall& call, const StripPlace& place, int lane,
                                               Vector (&sum)[kPixels]) {
  float* const output = call.output + place.output + lane;
  if (call.addend != nullptr) {
    const float* const addend = call.addend + place.output + lane;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (kIsWhole || p < place.pixels) sum[p] += load(addend + p * blockLength);
    }
  }
  if (call.relu) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) sum[p] = maximum(sum[p], Vector{});
  }
  if (call.isStreamed) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (kIsWhole || p < place.pixels) stream(output + p * blockLength, sum[p]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    if (kIsWhole || p < place.pixels) store(output + p * blockLength, sum[p]);
  }
}

/// `kIsWhole`: all columns and results are there.
template <class Strip, bool kIsWhole>
[[gnu::always_inline]] inline void strip(const DepthwiseCall& call, const DepthwiseLines& lines,
                                         const StripPlace& place) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Vector sum[Strip::pixels];
    const Vector start = call.bias != nullptr ? load(call.bias + lane) : Vector{};
#pragma GCC unroll 16
    for (int p = 0; p < Strip::pixels; ++p) sum[p] = start;
    for (int i = 0; i < lines.count; ++i) {
      const float* const input = lines.input[i] + place.column + lane;
      const float* const weights = lines.weights[i] + lane;
      Vector w[Strip::width];
#pragma GCC unroll 16
      for (int t = 0; t < Strip::width; ++t) w[t] = load(weights + t * blockLength);
      const auto column = [&]<int kColumn>() __attribute__((always_inline)) {
        if (!kIsWhole) {
          if (kColumn >= place.to) return false;
          if (kColumn < Strip::mostOutside && kColumn < place.from) return true;
        }
        const Vector x = load(input + kColumn * blockLength);
        [&]<int... kTap>(std::integer_sequence<int, kTap...>) __attribute__((always_inline)) {
          ((Strip::result(kColumn, kTap) < 0
                ? void()
                : void(sum[Strip::result(kColumn, kTap) < 0 ? 0 : Strip::result(kColumn, kTap)] += w[kTap] * x)),
           ...);
        }
        (std::make_integer_sequence<int, Strip::width>());
        return true;
      };
      [&]<int... kColumn>(std::integer_sequence<int, kColumn...>) __attribute__((always_inline)) {
        static_cast<void>((column.template operator()<kColumn>() && ...));
      }
      (std::make_integer_sequence<int, Strip::columns>());
    }
    finishStrip<Strip::pixels, kIsWhole>(call, place, lane, sum);
  }
}

/// Strips from one end of a line to the other, wide ones and, where few pixels are left, a narrow one.
template <class Wide, class Narrow>
[[gnu::always_inline]] inline void depthwiseLines(const DepthwiseCall& call) {
  DepthwiseLines lines;
  for (int y = call.from; y < call.to; ++y) {
    collectLines(call, y, lines);
    const std::ptrdiff_t line = std::ptrdiff_t{y} * call.outputWidth * blockLength;
    for (int x = 0; x < call.outputWidth; x += Wide::pixels) {
      const int left = call.outputWidth - x;
      const int column = Wide::firstColumn(x, call.padWidth);
      StripPlace place{std::ptrdiff_t{column} * blockLength, -column, call.inputWidth - column, left,
                       line + std::ptrdiff_t{x} * blockLength};
      if (column >= 0 && place.to >= Wide::columns && left >= Wide::pixels) {
        strip<Wide, true>(call, lines, place);
      } else if (left > Narrow::pixels || Wide::pixels == Narrow::pixels) {
        strip<Wide, false>(call, lines, place);
      } else {
        strip<Narrow, false>(call, lines, place);
      }
    }
  }
  if (call.isStreamed) endStreams();
}

/// Of a line of the kernel 3, 5 or 7 wide.
template <int kWidth, int kStride>
void depthwise(const DepthwiseCall& call) {
  constexpr int kWide = TACC_REGISTERS >= 32 ? 14 : 7;
  depthwiseLines<StripShape<kWidth, kStride, false, 0, kWide>, StripShape<kWidth, kStride, false, 0, 7>>(call);
}

template <int kWidth, int kShift>
void depthwiseSpread(const DepthwiseCall& call) {
  constexpr int kWide = TACC_REGISTERS >= 32 ? 14 : 8;
  depthwiseLines<StripShape<kWidth, 2, true, kShift, kWide>, StripShape<kWidth, 2, true, kShift, 8>>(call);
}

/// Any width, stride, dilation and padding: a tap at a time.
inline void depthwiseAny(const DepthwiseCall& call) {
  constexpr int kPixels = 7;
  DepthwiseLines lines;
  const std::ptrdiff_t pixel = std::ptrdiff_t{call.strideWidth} * blockLength;
  for (int y = call.from; y < call.to; ++y) {
    collectLines(call, y, lines);
    const std::ptrdiff_t line = std::ptrdiff_t{y} * call.outputWidth * blockLength;
    for (int x = 0; x < call.outputWidth; x += kPixels) {
      const int first = x * call.strideWidth - call.padWidth;
      const int last = first + (kPixels - 1) * call.strideWidth + (call.kernelWidth - 1) * call.dilationWidth;
      const StripPlace place{0, 0, 0, call.outputWidth - x, line + std::ptrdiff_t{x} * blockLength};
      const bool isWhole = first >= 0 && last < call.inputWidth && place.pixels >= kPixels;
      for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
        Vector sum[kPixels];
        const Vector start = call.bias != nullptr ? load(call.bias + lane) : Vector{};
#pragma GCC unroll 16
        for (int p = 0; p < kPixels; ++p) sum[p] = start;
        for (int i = 0; i < lines.count; ++i) {
          for (int t = 0; t < call.kernelWidth; ++t) {
            const Vector w = load(lines.weights[i] + t * blockLength + lane);
            const int column = first + t * call.dilationWidth;
            const float* const input = lines.input[i] + std::ptrdiff_t{column} * blockLength + lane;
#pragma GCC unroll 16
            for (int p = 0; p < kPixels; ++p) {
              const int at = column + p * call.strideWidth;
              if (isWhole || (at >= 0 && at < call.inputWidth)) sum[p] += w * load(input + p * pixel);
            }
          }
        }
        finishStrip<kPixels, false>(call, place, lane, sum);
      }
    }
  }
  if (call.isStreamed) endStreams();
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
