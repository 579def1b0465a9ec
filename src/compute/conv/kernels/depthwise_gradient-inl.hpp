// The gradient of a channel-wise kernel: the sums of some of its lines stay in registers while strips of the output's
// gradient go by, of which a window as wide as the kernel is there too. Each value of the input is read once for the
// taps of a line. Included by one file per instruction set, as tile-inl.hpp.

#include "compute/conv/kernels/depthwise-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Lines of the kernel whose sums are in registers beside a window of the gradient and a value of the input.
constexpr int gradientRows(int width, int stride) {
  const int window = (width + stride - 1) / stride;
  const int rows = (TACC_REGISTERS - 1 - window) / width;
  return rows < 1 ? 1 : rows > width ? width : rows;
}

/// A line of the output's gradient, and the input's lines for the kernel's lines of a group.
struct GradientLine {
  const float* gradient;
  const float* input;       // pixel 0 of the first of them
  std::ptrdiff_t nextLine;  // from one to the next, in floats
  std::ptrdiff_t inputPixel, gradientPixel;
  unsigned there;  // a bit for each that is inside the image
};

/// Adds what a strip contributes. `kAllLines`: all lines are inside.
template <class Strip, int kStride, int kRows, int kPixel, class Ends, bool kAllLines>
[[gnu::always_inline]] inline void gradientStrip(const GradientLine& line, const StripPlace& place, int lane,
                                                 Vector (&sum)[kRows][Strip::width]) {
  MovingPlace<kPixel> gradient{line.gradient + place.output + lane, line.gradientPixel};
  const float* const input = line.input + place.column + lane;
  Vector g[Strip::pixels];
  const auto loadGradient = [&](int p) __attribute__((always_inline)) {  // one pixel after the other
    const float* const at = gradient.next();
    g[p] = Ends::areKnown || p < place.pixels ? inRegister(load(at)) : Vector{};
  };
  // Pixels whose first columns are outside.
  constexpr int kEarly = Ends::areKnown ? Ends::left : Strip::mostOutside;
#pragma GCC unroll 16
  for (int p = 0; p < (kEarly + kStride - 1) / kStride; ++p) loadGradient(p);
  visitColumns<Strip, Ends, kPixel>(
      place, input, line.inputPixel, [&](int column, const float* here) __attribute__((always_inline)) {
        if (column >= kEarly && column % kStride == 0 && column / kStride < Strip::pixels)
          loadGradient(column / kStride);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          if (!kAllLines && (line.there >> r & 1) == 0) continue;
          const Vector x = inRegister(load(here + r * line.nextLine));
#pragma GCC unroll 16
          for (int t = 0; t < Strip::width; ++t)
            if (Strip::result(column, t) >= 0) sum[r][t] += g[Strip::result(column, t)] * x;
        }
      });
}

/// The strip with its ends; `kIsFirst` as in visitEnds.
template <class Strip, int kStride, int kRows, int kPixel, bool kIsFirst>
[[gnu::always_inline]] inline void gradientPart(const GradientLine& line, const StripPlace& place, int lane,
                                                Vector (&sum)[kRows][Strip::width]) {
  // Strides this wide are rare, and each form takes its time to compile.
  if constexpr (kStride > 2) {
    const bool isInside = place.from <= 0 && place.to >= Strip::columns && place.pixels >= Strip::pixels;
    if (isInside && line.there == (1U << kRows) - 1) {
      gradientStrip<Strip, kStride, kRows, kPixel, KnownEnds<0, 0>, true>(line, place, lane, sum);
    } else {
      gradientStrip<Strip, kStride, kRows, kPixel, AnyEnds, false>(line, place, lane, sum);
    }
  } else {
    visitEnds<Strip, kIsFirst>(
        place,
        [&]<class Ends>(Ends) __attribute__((always_inline)) {
          constexpr bool kIsLine = Ends::left > 0 && Ends::right >= Strip::right;
          if (line.there == (1U << kRows) - 1) {
            gradientStrip<Strip, kStride, kRows, kPixel, Ends, true>(line, place, lane, sum);
          } else if constexpr (kIsLine) {
            gradientStrip<Strip, kStride, kRows, kPixel, Ends, false>(line, place, lane, sum);
          } else {
            gradientStrip<Strip, kStride, kRows, kPixel, AnyEnds, false>(line, place, lane, sum);
          }
        },
        [&]() __attribute__((always_inline)) {
          gradientStrip<Strip, kStride, kRows, kPixel, AnyEnds, false>(line, place, lane, sum);
        });
  }
}

/// Lines [from, to) of the gradient, and `rows` of kRows lines of the kernel from `row` on.
template <int kWidth, int kStride, int kRows, int kPixel>
[[gnu::always_inline]] inline void gradientOfRows(const DepthwiseGradientCall& call, int row, int rows, int from,
                                                  int to) {
  constexpr int kWide = TACC_REGISTERS >= 32 && kWidth == 3 ? 14 : 7;
  using Wide = StripShape<kWidth, kStride, false, 0, kWide>;
  using Narrow = StripShape<kWidth, kStride, false, 0, 7>;
  const std::ptrdiff_t inputPixel = pixelStep<kPixel>(call.inputPixel);
  const std::ptrdiff_t gradientPixel = pixelStep<kPixel>(call.gradientPixel);
  const std::ptrdiff_t inputLine = call.inputWidth * inputPixel;
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const std::ptrdiff_t sumsLine = call.sumsLine;
    float* const sums = call.sums + row * sumsLine + lane;
    Vector sum[kRows][kWidth];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int t = 0; t < kWidth; ++t) sum[r][t] = r < rows ? load(sums + r * sumsLine + t * blockLength) : Vector{};
    }
    for (int y = from; y < to; ++y) {
      const int first = y * call.strideHeight - call.padHeight + row * call.dilationHeight;
      GradientLine line{call.gradient + y * (call.gradientWidth * gradientPixel),
                        call.input + first * inputLine,
                        call.dilationHeight * inputLine,
                        inputPixel,
                        gradientPixel,
                        0};
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const int at = first + r * call.dilationHeight;
        line.there |= r < rows && at >= 0 && at < call.inputHeight ? 1U << r : 0U;
      }
      for (int x = 0; x < call.gradientWidth; x += Wide::pixels) {
        const int column = Wide::firstColumn(x, call.padWidth);
        const int left = call.gradientWidth - x;
        const int columns = (left - 1) * kStride + kWidth;
        const int inside = call.inputWidth - column;
        const StripPlace place{column * inputPixel, -column, columns < inside ? columns : inside, left,
                               x * gradientPixel};
        if (kWide == Narrow::pixels || left > Narrow::pixels) {
          gradientPart<Wide, kStride, kRows, kPixel, true>(line, place, lane, sum);
        } else {
          gradientPart<Narrow, kStride, kRows, kPixel, false>(line, place, lane, sum);
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
#pragma GCC unroll 16
      for (int t = 0; t < kWidth; ++t) store(sums + r * sumsLine + t * blockLength, sum[r][t]);
    }
  }
}

/// The gradient of a kernel up to 7 wide.
template <int kWidth, int kStride, int kPixel>
void depthwiseGradient(const DepthwiseGradientCall& call) {
  // Lines of the kernel are cut into groups that are nearly equal. Those of a kernel as high as wide are full: of
  // kMostRows, or of one less too. Each form takes its time to compile, so the few lines of another kernel are some of
  // kMostRows.
  constexpr int kMostRows = gradientRows(kWidth, kStride);
  constexpr int kFewRows = kWidth % kMostRows != 0 ? kMostRows - 1 : kMostRows;
  const int groups = (call.kernelHeight + kMostRows - 1) / kMostRows;
  // What is read more than once is read from the L1 cache.
  constexpr int bytesAtOnce = 16 * 1024;
  const std::ptrdiff_t lineFloats =
      (std::ptrdiff_t{call.strideHeight} * call.inputWidth + call.gradientWidth) * blockLength;
  const auto linesOfCache = static_cast<int>(bytesAtOnce / (lineFloats * static_cast<std::ptrdiff_t>(sizeof(float))));
  const bool isReadOnce = groups == 1 && TACC_LANES == blockLength;
  const int step = isReadOnce ? call.to - call.from : linesOfCache < 1 ? 1 : linesOfCache;
  for (int from = call.from; from < call.to; from += step) {
    const int to = from + step < call.to ? from + step : call.to;
    for (int group = 0, row = 0; group < groups; ++group) {
      const int rows = (call.kernelHeight + groups - 1 - group) / groups;
      if (rows > kFewRows || kFewRows == kMostRows) {
        gradientOfRows<kWidth, kStride, kMostRows, kPixel>(call, row, rows, from, to);
      } else if constexpr (kFewRows < kMostRows) {
        gradientOfRows<kWidth, kStride, kFewRows, kPixel>(call, row, rows, from, to);
      }
      row += rows;
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
