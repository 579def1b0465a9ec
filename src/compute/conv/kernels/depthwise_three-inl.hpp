// The gradient of the weights of a channel-wise kernel three wide and up to three high: its sums stay in registers
// while lines go by. How many pixels a strip of a line has, and which of its columns are outside, is known when it is
// compiled, so nothing is asked between two multiply-adds; and a call goes through all blocks, as those of small planes
// would be over before a call of their own has begun. Included by one file per instruction set, as tile-inl.hpp.
#include <utility>

#include "compute/conv/kernels/depthwise-inl.hpp"
#include "compute/conv/kernels/depthwise_three_kernels.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

constexpr int threeTaps = 3;

/// The sums of a vector of channels of kRows lines of the kernel. Those of few lines would wait for themselves: there
/// are several of each, and columns take turns.
template <int kRows>
struct ThreeSums {
  static constexpr int sets = kRows == 1 ? 3 : kRows == 2 && TACC_REGISTERS >= 32 ? 2 : 1;
  Vector of[sets][kRows][threeTaps];

  [[gnu::always_inline]] void clear() {
#pragma GCC unroll 3
    for (int set = 0; set < sets; ++set) {
#pragma GCC unroll 3
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
        for (int t = 0; t < threeTaps; ++t) of[set][r][t] = Vector{};
      }
    }
  }
  [[gnu::always_inline]] void read(const float* from) {
    clear();
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
      for (int t = 0; t < threeTaps; ++t) of[0][r][t] = load(from + (r * threeTaps + t) * blockLength);
    }
  }
  [[gnu::always_inline]] void write(float* to) const {
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
      for (int t = 0; t < threeTaps; ++t) {
        Vector sum = of[0][r][t];
#pragma GCC unroll 3
        for (int set = 1; set < sets; ++set) sum += of[set][r][t];
        store(to + (r * threeTaps + t) * blockLength, sum);
      }
    }
  }
};

/// Adds what a strip of kPixels contributes to lines [kFromRow, kToRow) of the kernel; `input` is what the first
/// pixel's first tap reads, or would read where kLeft columns are outside; behind the strip kRight are.
template <int kPixels, int kStride, int kLeft, int kRight, int kFromRow, int kToRow, int kRows>
[[gnu::always_inline]] inline void addStrip(const float* input, std::ptrdiff_t inputLine, const float* gradient,
                                            ThreeSums<kRows>& sums) {
  constexpr int kColumns = (kPixels - 1) * kStride + threeTaps;
  Vector g[kPixels];
  if constexpr (kLeft > 0) g[0] = load(gradient);
#pragma GCC unroll 32
  for (int column = kLeft; column < kColumns - kRight; ++column) {
    const int pixel = column / kStride;
    if (column % kStride == 0 && pixel < kPixels) g[pixel] = load(gradient + pixel * blockLength);
#pragma GCC unroll 3
    for (int r = kFromRow; r < kToRow; ++r) {
      const Vector x = inRegister(load(input + r * inputLine + column * blockLength));
#pragma GCC unroll 3
      for (int t = 0; t < threeTaps; ++t) {
        const int distance = column - t;
        if (distance < 0 || distance % kStride != 0 || distance / kStride >= kPixels) continue;
        sums.of[column % ThreeSums<kRows>::sets][r][t] += g[distance / kStride] * x;
      }
    }
  }
}

/// A line of one strip.
template <int kPixels, int kStride, int kLeft, int kRight>
struct LineOfStrip {
  template <int kFromRow, int kToRow, int kRows>
  [[gnu::always_inline]] static void add(const DepthwiseThreeCall&, const float* input, std::ptrdiff_t inputLine,
                                         const float* gradient, ThreeSums<kRows>& sums) {
    addStrip<kPixels, kStride, kLeft, kRight, kFromRow, kToRow>(input, inputLine, gradient, sums);
  }
};

/// A line of several, the last ones of a pixel less.
template <int kPixels, int kStride, int kLeft, int kRight>
struct LineOfStrips {
  template <int kFromRow, int kToRow, int kRows>
  [[gnu::always_inline]] static void add(const DepthwiseThreeCall& call, const float* input, std::ptrdiff_t inputLine,
                                         const float* gradient, ThreeSums<kRows>& sums) {
    constexpr int kLong = kPixels * blockLength, kShort = kLong - blockLength;
    const auto pass = [&](int floats) __attribute__((always_inline)) {
      input += kStride * floats;
      gradient += floats;
    };
    addStrip<kPixels, kStride, kLeft, 0, kFromRow, kToRow>(input, inputLine, gradient, sums);
    pass(kLong);
    for (int left = call.longStrips - (call.shortStrips > 0 ? 1 : 2); left > 0; --left, pass(kLong)) {
      addStrip<kPixels, kStride, 0, 0, kFromRow, kToRow>(input, inputLine, gradient, sums);
    }
    if (call.shortStrips == 0) {
      addStrip<kPixels, kStride, 0, kRight, kFromRow, kToRow>(input, inputLine, gradient, sums);
      return;
    }
    for (int left = call.shortStrips - 1; left > 0; --left, pass(kShort)) {
      addStrip<kPixels - 1, kStride, 0, 0, kFromRow, kToRow>(input, inputLine, gradient, sums);
    }
    addStrip<kPixels - 1, kStride, 0, kRight, kFromRow, kToRow>(input, inputLine, gradient, sums);
  }
};

/// Lines [from, to) of an image. At most one line of the kernel is outside, and where kLeft is 0 none.
template <class Line, int kRows, int kStride, int kLeft>
[[gnu::always_inline]] inline void addLines(const DepthwiseThreeCall& call, const float* input, const float* gradient,
                                            int from, int to, ThreeSums<kRows>& sums) {
  const std::ptrdiff_t inputLine = std::ptrdiff_t{call.inputWidth} * blockLength;
  const std::ptrdiff_t gradientLine = std::ptrdiff_t{call.gradientWidth} * blockLength;
  int first = from * kStride - call.pad;  // line of the input
  input += first * inputLine - kLeft * blockLength;
  gradient += from * gradientLine;
  int y = from;
  const auto pass = [&]() __attribute__((always_inline)) {
    ++y;
    first += kStride;
    input += kStride * inputLine;
    gradient += gradientLine;
  };
  if (kLeft > 0 && kRows > 1 && first < 0 && y < to) {
    Line::template add<1, kRows>(call, input, inputLine, gradient, sums);
    pass();
  }
  for (; y < to && first + kRows <= call.inputHeight; pass()) {
    Line::template add<0, kRows>(call, input, inputLine, gradient, sums);
  }
  if (kLeft > 0 && kRows > 1 && y < to) Line::template add<0, kRows - 1>(call, input, inputLine, gradient, sums);
}

template <class Line, int kRows, int kStride, int kLeft>
void depthwiseThree(const DepthwiseThreeCall& call) {
  float* sumsOfBlock = call.sums;
  const float *input = call.input, *gradient = call.gradient;
  for (int block = 0; block < call.blocks; ++block) {
    ThreeSums<kRows> sums;
    if constexpr (vectorsOfBlock == 1) {
      if (call.accumulate) {
        sums.read(sumsOfBlock);
      } else {
        sums.clear();
      }
      for (int image = 0; image < call.images; ++image) {
        addLines<Line, kRows, kStride, kLeft>(call, input + image * call.inputImage,
                                              gradient + image * call.gradientImage, call.from, call.to, sums);
      }
      sums.write(sumsOfBlock);
    } else {
      // Vectors take turns while what both read is in the L1 cache.
      constexpr int bytesInTurn = 16 * 1024;
      const int lineBytes = (kStride * call.inputWidth + call.gradientWidth) * blockLength * 4;
      const int linesInTurn = bytesInTurn / lineBytes < 1 ? 1 : bytesInTurn / lineBytes;
      const int left = call.channels - block * blockLength;
      bool accumulates = call.accumulate;
      sums.clear();
      for (int lane = TACC_LANES; lane < blockLength && !accumulates; lane += TACC_LANES) {
        if (lane >= left) sums.write(sumsOfBlock + lane);
      }
      for (int image = 0; image < call.images; ++image) {
        for (int from = call.from; from < call.to; from += linesInTurn) {
          const int to = from + linesInTurn < call.to ? from + linesInTurn : call.to;
          for (int lane = 0; lane < blockLength && lane < left; lane += TACC_LANES) {
            if (accumulates) {
              sums.read(sumsOfBlock + lane);
            } else {
              sums.clear();
            }
            addLines<Line, kRows, kStride, kLeft>(call, input + image * call.inputImage + lane,
                                                  gradient + image * call.gradientImage + lane, from, to, sums);
            sums.write(sumsOfBlock + lane);
          }
          accumulates = true;
        }
      }
    }
    input += call.inputBlock;
    gradient += call.gradientBlock;
    sumsOfBlock += kRows * threeTaps * blockLength;
  }
}

template <int kRows, int kStride, int kLeft, int kRight, int... kBefore>
constexpr void fillThree(DepthwiseThreeKernels& kernels, ThreeEnds ends, std::integer_sequence<int, kBefore...>) {
  const auto fill = [&]<int kPixels>(std::integral_constant<int, kPixels>) {
    kernels.line[kRows][kStride][ends][kPixels] =
        depthwiseThree<LineOfStrip<kPixels, kStride, kLeft, kRight>, kRows, kStride, kLeft>;
    // Each form takes its time to compile, and longer lines with a stride are waited for, from far caches; but where
    // vectors are half a block they take turns here while the L1 cache has the lines.
    if constexpr ((kStride == 1 || vectorsOfBlock == 2) && kPixels >= shortestOfThree && kPixels <= longestOfThree) {
      kernels.strips[kRows][kStride][ends][kPixels] =
          depthwiseThree<LineOfStrips<kPixels, kStride, kLeft, kRight>, kRows, kStride, kLeft>;
    }
  };
  (fill(std::integral_constant<int, kBefore + 1>{}), ...);
}

template <int kRows>
constexpr void fillThreeRows(DepthwiseThreeKernels& kernels) {
  constexpr std::make_integer_sequence<int, longestThreeLine> pixelsBefore{};
  fillThree<kRows, 1, 0, 0>(kernels, noneOutside, pixelsBefore);
  fillThree<kRows, 1, 1, 1>(kernels, bothOutside, pixelsBefore);
  fillThree<kRows, 2, 1, 0>(kernels, leftOutside, pixelsBefore);
  fillThree<kRows, 2, 1, 1>(kernels, bothOutside, pixelsBefore);
}

}  // namespace TACC_CONV_ISA

const DepthwiseThreeKernels& TACC_DEPTHWISE_THREE() {
  static constexpr DepthwiseThreeKernels kernels = [] {
    DepthwiseThreeKernels all{};
#ifndef TACC_FEW_FORMS
    using namespace TACC_CONV_ISA;
    fillThreeRows<1>(all);
    fillThreeRows<2>(all);
    fillThreeRows<3>(all);
#endif
    return all;
  }();
  return kernels;
}

}  // namespace tacc::conv
