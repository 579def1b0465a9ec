// Channel-wise convolutions with kernels of any width, stride and dilation, a tap at a time: strips of results stay in
// registers. Included by one file per instruction set, as tile-inl.hpp.
#pragma once

#include "compute/conv/kernels/depthwise-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Where a strip of results of any kernel reads, along the lines.
struct AnyColumns {
  int first;         // column of the first tap of the first result
  int widthOfStrip;  // to that of the last one
};

/// Sets of sums that lines of the kernel use in turn: those of few pixels would wait for themselves.
constexpr int anySets(int sums) { return sums < 8 && TACC_REGISTERS >= 32 ? 2 : 1; }

/// What is added by a tap of a line whose first pixel is at `from`, in `column`. kPixel: from one pixel to the next,
/// or 0: as the call says. kIsWhole: all columns are inside. Of results that are not there sums are made where their
/// columns are inside.
template <int kVectors, int kPixels, int kPixel, bool kIsWhole>
[[gnu::always_inline]] inline void addAnyTap(const DepthwiseCall& call, const AnyColumns& columns, int column,
                                             const float* weights, const float* from,
                                             Vector (&sum)[kVectors][kPixels]) {
  Vector w[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * TACC_LANES);
  MovingPlace<kPixel> pixels{from, std::ptrdiff_t{call.strideWidth} * blockLength};
  const auto multiply = [&](int p, const float* at) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[v][p] += w[v] * load(at + v * TACC_LANES);
  };
  if (kIsWhole || (column >= 0 && column + columns.widthOfStrip < call.inputWidth)) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) multiply(p, pixels.next());
    return;
  }
  const auto width = static_cast<unsigned>(call.inputWidth);
  asm("" : "+r"(column));  // or the compiler would keep the columns of all pixels up to date, tap by tap
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p, column += call.strideWidth) {
    const float* const at = pixels.next();
    if (static_cast<unsigned>(column) < width) multiply(p, at);
  }
}

/// Up to kPixels results of kVectors vectors of a block from a lane on, a tap at a time.
template <int kVectors, int kPixels, int kPixel, bool kIsWhole>
[[gnu::always_inline]] inline void anyStrip(const DepthwiseCall& call, const DepthwiseLines& lines,
                                            const StripPlace& place, const AnyColumns& columns, int lane) {
  constexpr int kSets = anySets(kVectors * kPixels);
  Vector sum[kSets][kVectors][kPixels];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const Vector start = call.bias != nullptr ? load(call.bias + place.bias + lane + v * TACC_LANES) : Vector{};
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      sum[0][v][p] = start;
      if constexpr (kSets > 1) sum[1][v][p] = Vector{};
    }
  }
  const std::ptrdiff_t inputTap = call.dilationWidth * std::ptrdiff_t{blockLength};
  const std::ptrdiff_t weightsAt = place.weights + lane;
  const std::ptrdiff_t inputAt = place.plane + place.column + lane;
  int i = 0;
  if constexpr (kSets > 1) {
    for (; i + 1 < lines.count; i += 2) {
      const float *above = lines.input[i] + inputAt, *below = lines.input[i + 1] + inputAt;
      const float *ofAbove = lines.weights[i] + weightsAt, *ofBelow = lines.weights[i + 1] + weightsAt;
      int column = columns.first;
      for (int t = 0; t < call.kernelWidth; ++t, column += call.dilationWidth) {
        addAnyTap<kVectors, kPixels, kPixel, kIsWhole>(call, columns, column, ofAbove, above, sum[0]);
        addAnyTap<kVectors, kPixels, kPixel, kIsWhole>(call, columns, column, ofBelow, below, sum[1]);
        above += inputTap;
        below += inputTap;
        ofAbove += blockLength;
        ofBelow += blockLength;
      }
    }
  }
  for (; i < lines.count; ++i) {
    const float* input = lines.input[i] + inputAt;
    const float* weights = lines.weights[i] + weightsAt;
    int column = columns.first;
    for (int t = 0; t < call.kernelWidth; ++t, column += call.dilationWidth) {
      addAnyTap<kVectors, kPixels, kPixel, kIsWhole>(call, columns, column, weights, input, sum[0]);
      input += inputTap;
      weights += blockLength;
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    if constexpr (kSets > 1) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) sum[0][v][p] += sum[1][v][p];
    }
    finishStrip<kPixels, false, blockLength>(call, place, lane + v * TACC_LANES, WholeBlock(blockLength), sum[0][v]);
  }
}

/// Fetches what the lines below a strip read first.
template <int kPixels, int kPixel>
[[gnu::always_inline]] inline void fetchAny(const DepthwiseCall& call, const DepthwiseLines& lines,
                                            const StripPlace& place) {
  const int linesAhead = call.spreadsLines ? 1 : newLines(call);
  const int columnsAhead = call.strideWidth < call.kernelWidth ? call.strideWidth : call.kernelWidth;
  const float* from = lines.input[call.spreadsLines ? 0 : lines.count - 1] + place.plane + place.column + call.ahead;
  for (int i = 0; i < linesAhead; ++i, from -= std::ptrdiff_t{call.inputWidth} * blockLength) {
    for (int t = 0; t < columnsAhead; ++t) {
      MovingPlace<kPixel> pixels{from + t * blockLength, std::ptrdiff_t{call.strideWidth} * blockLength};
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) __builtin_prefetch(pixels.next());
    }
  }
}

/// Up to kPixels results at (y, x) of all blocks. Both vectors of a block together, where it is two: lines of the cache
/// are asked for once.
template <int kPixels, int kPixel>
[[gnu::always_inline]] inline void anyStrips(const DepthwiseCall& call, const DepthwiseLines& lines, int y, int x) {
  constexpr int kVectors = vectorsOfBlock == 2 ? 2 : 1;
  const int first = x * call.strideWidth - call.padWidth;
  const int widthOfStrip = (kPixels - 1) * call.strideWidth;
  const int last = first + widthOfStrip + (call.kernelWidth - 1) * call.dilationWidth;
  StripPlace place{std::ptrdiff_t{first} * blockLength, 0, 0, call.outputWidth - x,
                   (std::ptrdiff_t{y} * call.outputWidth + x) * blockLength};
  const AnyColumns columns{first, widthOfStrip};
  const bool isWhole = first >= 0 && last < call.inputWidth;
  for (int block = 0; block < call.blocks; ++block) {
    if (call.ahead != 0 && lines.count > 0) fetchAny<kPixels, kPixel>(call, lines, place);
    for (int lane = 0; lane < blockLength; lane += kVectors * TACC_LANES) {
      if (isWhole) {
        anyStrip<kVectors, kPixels, kPixel, true>(call, lines, place, columns, lane);
      } else {
        anyStrip<kVectors, kPixels, kPixel, false>(call, lines, place, columns, lane);
      }
    }
    moveToNextBlock(call, place);
  }
}

/// Where the last strip of a line begins: so far to the left that all its pixels are there, if results may be computed
/// twice and the line is long enough, for parts of strips are slow, as every pixel is asked for.
[[gnu::always_inline]] inline int anyPlaceOfLast(const DepthwiseCall& call, int x, int pixels) {
  return call.addend == nullptr && call.outputWidth >= pixels && x + pixels > call.outputWidth
             ? call.outputWidth - pixels
             : x;
}

/// Lines of results; kPixel as above.
template <int kPixel>
void anyLines(const DepthwiseCall& call) {
  constexpr int kWide = TACC_REGISTERS >= 32 ? 14 : 7;
  const bool canRepeat = call.addend == nullptr && call.outputWidth >= kWide;
  DepthwiseLines lines;
  for (int y = call.from; y < call.to; ++y) {
    collectLines(call, y, lines);
    for (int x = 0; x < call.outputWidth;) {
      const int left = call.outputWidth - x;
      if (kWide > 7 && (left >= kWide || (canRepeat && left > 7))) {
        anyStrips<kWide, kPixel>(call, lines, y, anyPlaceOfLast(call, x, kWide));
        x += kWide;
      } else if (left > 4) {
        anyStrips<7, kPixel>(call, lines, y, anyPlaceOfLast(call, x, 7));
        x += 7;
      } else {
        anyStrips<4, kPixel>(call, lines, y, anyPlaceOfLast(call, x, 4));
        x += 4;
      }
    }
  }
  if (call.isNonTemporal) endNonTemporal();
}

/// Any width, stride, dilation and padding.
void depthwiseAny(const DepthwiseCall& call) {
  switch (call.strideWidth) {
    case 1:
      return anyLines<blockLength>(call);
    case 2:
      return anyLines<2 * blockLength>(call);
    default:
      return anyLines<0>(call);
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
