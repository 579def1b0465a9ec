// The gradient of a channel-wise kernel: the sums of some of its lines stay in registers while strips of the output's
// gradient go by, of which a window as wide as the kernel is there too. Each value of the input is read once for the
// taps of a line. Included by one file per instruction set, as tile-inl.hpp.

#include <type_traits>

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
  const Number* gradient;
  const Number* input;      // pixel 0 of the first of them
  std::ptrdiff_t nextLine;  // from one to the next, in numbers
  std::ptrdiff_t inputPixel, gradientPixel;
  unsigned there;  // a bit for each that is inside the image
};

/// Adds what a strip contributes. `kAllLines`: all lines are inside.
template <class Strip, int kStride, int kRows, int kPixel, class Ends, bool kAllLines>
[[gnu::always_inline]] inline void gradientStrip(const GradientLine& line, const StripPlace& place, int lane,
                                                 const ChannelsThere<kPixel>& channels,
                                                 Vector (&sum)[kRows][Strip::width]) {
  MovingPlace<kPixel> gradient{line.gradient + place.output + lane, line.gradientPixel};
  const Number* const input = line.input + place.column + lane;
  Vector g[Strip::pixels];
  const auto loadGradient = [&](int p) __attribute__((always_inline)) {  // one pixel after the other
    const Number* const at = gradient.next();
    g[p] = Ends::areKnown || p < place.pixels ? inRegister(channels.load(at)) : Vector{};
  };
  // Pixels whose first columns are outside.
  constexpr int kEarly = Ends::areKnown ? Ends::left : Strip::mostOutside;
#pragma GCC unroll 16
  for (int p = 0; p < (kEarly + kStride - 1) / kStride; ++p) loadGradient(p);
  visitColumns<Strip, Ends, kPixel>(
      place, input, line.inputPixel, [&](int column, const Number* here) __attribute__((always_inline)) {
        if (column >= kEarly && column % kStride == 0 && column / kStride < Strip::pixels)
          loadGradient(column / kStride);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          if (!kAllLines && (line.there >> r & 1) == 0) continue;
          const Vector x = inRegister(channels.load(here + r * line.nextLine));
#pragma GCC unroll 16
          for (int t = 0; t < Strip::width; ++t)
            if (Strip::result(column, t) >= 0) sum[r][t] += g[Strip::result(column, t)] * x;
        }
      });
}

/// Ends of a strip where lines are outside: those of a whole line stay known.
template <class Strip, int kStride, class Ends>
using EndsOfPart = std::conditional_t<kStride <= 2 && (Ends::left > 0) && (Ends::right >= Strip::right), Ends, AnyEnds>;

/// The same for the ends that are known.
template <class Strip, int kStride, int kRows, int kPixel, class Ends>
[[gnu::always_inline]] inline void gradientStripOfLine(const GradientLine& line, const StripPlace& place,
                                                       const ChannelsThere<kPixel>& channels,
                                                       Vector (&sum)[kRows][Strip::width]) {
  if (Ends::areKnown && line.there == (1U << kRows) - 1) {
    gradientStrip<Strip, kStride, kRows, kPixel, Ends, true>(line, place, 0, channels, sum);
  } else {
    using Part = EndsOfPart<Strip, kStride, Ends>;
    gradientStrip<Strip, kStride, kRows, kPixel, Part, false>(line, place, 0, channels, sum);
  }
}

/// Calls visit(the strip's ends); `kIsFirst` as in visitEnds.
template <class Strip, int kStride, bool kIsFirst, class Visit>
[[gnu::always_inline]] inline void visitGradientEnds(const StripPlace& place, const Visit& visit) {
  // Strides this wide are rare, and each form takes its time to compile.
  if constexpr (kStride > 2) {
    if (place.from <= 0 && place.to >= Strip::columns && place.pixels >= Strip::pixels) {
      visit(KnownEnds<0, 0>{});
    } else {
      visit(AnyEnds{});
    }
  } else {
    visitEnds<Strip, kIsFirst>(
        place, visit, [&]() __attribute__((always_inline)) { visit(AnyEnds{}); });
  }
}

/// The sums of some lines of a kernel in memory.
template <int kRows, int kWidth>
struct GradientSums {
  float* first;
  std::ptrdiff_t line;
  int rows;

  [[gnu::always_inline]] void read(Vector (&sum)[kRows][kWidth], int lane) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int t = 0; t < kWidth; ++t)
        sum[r][t] = r < rows ? load(first + r * line + t * blockLength + lane) : Vector{};
    }
  }
  [[gnu::always_inline]] void write(const Vector (&sum)[kRows][kWidth], int lane) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
#pragma GCC unroll 16
      for (int t = 0; t < kWidth; ++t) store(first + r * line + t * blockLength + lane, sum[r][t]);
    }
  }
};

/// Lines of the output's gradient, one after the other, for `rows` of kRows lines of the kernel.
template <int kRows>
class GradientLines {
 public:
  GradientLines(const DepthwiseGradientCall& call, int row, int rows, std::ptrdiff_t inputPixel,
                std::ptrdiff_t gradientPixel)
      : call_(call),
        rows_(rows),
        first_(row * call.dilationHeight - call.padHeight),
        input_(call.inputWidth * inputPixel),
        gradient_(call.gradientWidth * gradientPixel),
        inputPixel_(inputPixel),
        gradientPixel_(gradientPixel) {
    // The first of the kernel's lines is inside from one line on, the last one as far as another.
    const int last = call.inputHeight - 1 - first_ - (kRows - 1) * call.dilationHeight;
    wholeFrom_ = first_ >= 0 ? 0 : (call.strideHeight - 1 - first_) / call.strideHeight;
    wholeTo_ = rows < kRows || last < 0 ? wholeFrom_ : last / call.strideHeight + 1;
  }

  [[gnu::always_inline]] GradientLine line(int y) const {
    const int first = first_ + y * call_.strideHeight;
    unsigned there = 0;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const int at = first + r * call_.dilationHeight;
      there |= r < rows_ && at >= 0 && at < call_.inputHeight ? 1U << r : 0U;
    }
    return {numbers(call_.gradient) + y * gradient_,
            numbers(call_.input) + first * input_,
            call_.dilationHeight * input_,
            inputPixel_,
            gradientPixel_,
            there};
  }
  /// Moves to the line below, but for what is there.
  [[gnu::always_inline]] void moveDown(GradientLine& line) const {
    line.input += call_.strideHeight * input_;
    line.gradient += gradient_;
  }
  /// Where lines end, from y on, for which all of the input's are inside; y: where there are none.
  [[gnu::always_inline]] int wholeEnd(int y, int to) const {
    return y < wholeFrom_ || y >= wholeTo_ ? y : wholeTo_ < to ? wholeTo_ : to;
  }

 private:
  const DepthwiseGradientCall& call_;
  int rows_, first_, wholeFrom_, wholeTo_;
  std::ptrdiff_t input_, gradient_, inputPixel_, gradientPixel_;
};

/// Whether the sums of a line of the kernel and a window of the gradient fit into the registers for both vectors of a
/// block. With a stride of 2 tensors come from behind the caches sooner than they are multiplied, and lines of the
/// cache are asked for by half as many instructions then.
template <int kWidth, int kStride>
constexpr bool goesByPairs() {
  constexpr int window = (kWidth + kStride - 1) / kStride;
  return kStride == 2 && vectorsOfBlock == 2 && 2 * (kWidth + window + 1) <= TACC_REGISTERS;
}

/// Adds what a strip contributes to line `row` of the kernel, both vectors of the block together.
template <class Strip, int kStride, int kPixel, class Ends, int kRows>
[[gnu::always_inline]] inline void gradientStripOfPair(const GradientLine& line, const StripPlace& place, int row,
                                                       const GradientSums<kRows, Strip::width>& sums) {
  constexpr int kVectors = vectorsOfBlock;
  float* const ofRow = sums.first + row * sums.line;
  Vector sum[kVectors][Strip::width], g[kVectors][Strip::pixels];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int t = 0; t < Strip::width; ++t) sum[v][t] = load(ofRow + t * blockLength + v * TACC_LANES);
  }
  MovingPlace<kPixel> gradient{line.gradient + place.output, line.gradientPixel};
  const auto loadGradient = [&](int p) __attribute__((always_inline)) {
    const Number* const at = gradient.next();
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) g[v][p] = inRegister(loadNumbers(at + v * TACC_LANES));
  };
#pragma GCC unroll 16
  for (int p = 0; p < (Ends::left + kStride - 1) / kStride; ++p) loadGradient(p);
  visitColumns<Strip, Ends, kPixel>(
      place, line.input + place.column + row * line.nextLine,
      line.inputPixel, [&](int column, const Number* here) __attribute__((always_inline)) {
        if (column >= Ends::left && column % kStride == 0 && column / kStride < Strip::pixels)
          loadGradient(column / kStride);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const Vector x = inRegister(loadNumbers(here + v * TACC_LANES));
#pragma GCC unroll 16
          for (int t = 0; t < Strip::width; ++t)
            if (Strip::result(column, t) >= 0) sum[v][t] += g[v][Strip::result(column, t)] * x;
        }
      });
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int t = 0; t < Strip::width; ++t) store(ofRow + t * blockLength + v * TACC_LANES, sum[v][t]);
  }
}

/// Adds what a strip contributes to kRows lines of the kernel, whose vectors take turns. Sums are those of a vector,
/// also of channels that the one before it has too (laneOfVector).
template <class Strip, int kStride, int kPixel, bool kIsCut, class Ends, bool kAllLines, int kRows>
[[gnu::always_inline]] inline void gradientStripInTurn(const GradientLine& line, const StripPlace& place, int channels,
                                                       const GradientSums<kRows, Strip::width>& sums) {
  const ChannelsThere<kPixel> all(blockLength);
  Vector sum[kRows][Strip::width];
  for (int lane = 0; lane < channels; lane += TACC_LANES) {
    sums.read(sum, lane);
    const int from = kIsCut ? laneOfVector<kPixel>(lane, channels) : lane;
    gradientStrip<Strip, kStride, kRows, kPixel, Ends, kAllLines>(line, place, from, all, sum);
    sums.write(sum, lane);
  }
}

/// A strip of lines [from, to). `kIsCut`: of a block with fewer channels.
template <class Strip, int kStride, int kPixel, bool kIsCut, class Ends, int kRows>
[[gnu::always_inline]] inline void gradientColumn(const GradientLines<kRows>& lines, const StripPlace& place,
                                                  const GradientSums<kRows, Strip::width>& sums, int from, int to,
                                                  int channels) {
  for (int y = from; y < to;) {
    GradientLine line = lines.line(y);
    const int end = Ends::areKnown ? lines.wholeEnd(y, to) : y;
    for (; y < end; ++y) {
      if constexpr (Ends::areKnown && !kIsCut && goesByPairs<Strip::width, kStride>()) {
        for (int row = 0; row < kRows; ++row) gradientStripOfPair<Strip, kStride, kPixel, Ends>(line, place, row, sums);
      } else {
        gradientStripInTurn<Strip, kStride, kPixel, kIsCut, Ends, true>(line, place, channels, sums);
      }
      lines.moveDown(line);
    }
    if (y == to) break;
    line = lines.line(y++);
    using Part = EndsOfPart<Strip, kStride, Ends>;
    gradientStripInTurn<Strip, kStride, kPixel, kIsCut, Part, false>(line, place, channels, sums);
  }
}

/// Apart from what whole blocks go through, as stripOfCutBlock().
template <class Strip, int kStride, int kPixel, class Ends, int kRows>
[[gnu::noinline]] void gradientColumnOfCutBlock(const GradientLines<kRows>& lines, const StripPlace& place,
                                                const GradientSums<kRows, Strip::width>& sums, int from, int to,
                                                int channels) {
  gradientColumn<Strip, kStride, kPixel, true, Ends>(lines, place, sums, from, to, channels);
}

/// Strips of a kernel's gradient.
template <int kWidth, int kStride>
struct GradientStrips {
  static constexpr int wide = TACC_REGISTERS >= 32 && kWidth == 3 ? 14 : 7;
  using Wide = StripShape<kWidth, kStride, false, 0, wide>;
  using Narrow = StripShape<kWidth, kStride, false, 0, 7>;

  /// Calls visit<Strip, kIsFirst>(place) for the strip at x.
  template <int kPixel, class Visit>
  [[gnu::always_inline]] static void visit(const DepthwiseGradientCall& call, int x, const Visit& visit) {
    const std::ptrdiff_t inputPixel = pixelStep<kPixel>(call.inputPixel);
    const int column = Wide::firstColumn(x, call.padWidth);
    const int left = call.gradientWidth - x;
    const int columns = (left - 1) * kStride + kWidth;
    const int inside = call.inputWidth - column;
    const StripPlace place{column * inputPixel, -column, columns < inside ? columns : inside, left,
                           x * pixelStep<kPixel>(call.gradientPixel)};
    if (Wide::pixels == Narrow::pixels || left > Narrow::pixels) {
      visit.template operator()<Wide, true>(place);
    } else {
      visit.template operator()<Narrow, false>(place);
    }
  }
};

/// Fetches what comes behind a strip; `last`: of the kernel's lines, the one that reads furthest.
template <class Strip, int kPixel>
[[gnu::always_inline]] inline void fetchGradientStrip(const DepthwiseGradientCall& call, const GradientLine& line,
                                                      const StripPlace& place, int last) {
  const Number* const gradient = line.gradient + place.output + call.gradientAhead;
#pragma GCC unroll 16
  for (int p = 0; p < Strip::pixels; ++p) __builtin_prefetch(gradient + p * pixelStep<kPixel>(line.gradientPixel));
  const std::ptrdiff_t pixel = pixelStep<kPixel>(line.inputPixel);
  fetchStrip<Strip>(line.input + last * line.nextLine + place.column + call.ahead, newLines(call),
                    call.inputWidth * pixel, pixel);
}

/// Whether each strip of pixels that are apart goes through all blocks of channels: sums of a few taps are worth
/// reading and writing for each of them.
template <int kWidth, int kPixel>
constexpr bool goesByStrip() {
  return kPixel == 0 && kWidth == 3 && vectorsOfBlock == 1;
}

/// Lines [from, to) of the gradient, and `rows` of kRows lines of the kernel from `row` on. Where a block is one vector
/// its sums stay in registers for all lines. Where it is several, they take turns, strip by strip and line by line, or
/// the first one would wait for what all of them read; and as strips are short then, each is gone through in all lines,
/// so that its ends are asked for once.
template <int kWidth, int kStride, int kRows, int kPixel>
[[gnu::always_inline]] inline void gradientOfRows(const DepthwiseGradientCall& call, int row, int rows, int from,
                                                  int to) {
  using Strips = GradientStrips<kWidth, kStride>;
  const GradientSums<kRows, kWidth> sums{call.sums + row * call.sumsLine, call.sumsLine, rows};
  const GradientLines<kRows> lines(call, row, rows, pixelStep<kPixel>(call.inputPixel),
                                   pixelStep<kPixel>(call.gradientPixel));
  if constexpr (vectorsOfBlock == 1) {
    Vector sum[kRows][kWidth];
    // The blocks of a strip follow each other, as they do in memory.
    const ChannelsThere<kPixel> all(call.channels);
    const auto visitBlocks = [&](const GradientLine& line, const auto& visitBlock) __attribute__((always_inline)) {
      if constexpr (!goesByStrip<kWidth, kPixel>()) {
        visitBlock(line, all);
      } else {
        GradientLine ofBlock = line;
        GradientSums<kRows, kWidth> sumsOfBlock = sums;
        for (int left = call.channels; left > 0; left -= blockLength) {
          sumsOfBlock.read(sum, 0);
          visitBlock(ofBlock, ChannelsThere<kPixel>(left));
          sumsOfBlock.write(sum, 0);
          ofBlock.input += blockLength;
          ofBlock.gradient += blockLength;
          sumsOfBlock.first += call.kernelHeight * call.sumsLine;
        }
      }
    };
    if constexpr (!goesByStrip<kWidth, kPixel>()) sums.read(sum, 0);
    for (int y = from; y < to; ++y) {
      const GradientLine line = lines.line(y);
      for (int x = 0; x < call.gradientWidth; x += Strips::wide) {
        Strips::template visit<kPixel>(
            call, x, [&]<class Strip, bool kIsFirst>(const StripPlace& place) __attribute__((always_inline)) {
              if (kPixel != 0 && call.ahead != 0 && row == 0) {
                fetchGradientStrip<Strip, kPixel>(call, line, place, rows - 1);
              }
              visitGradientEnds<Strip, kStride, kIsFirst>(
                  place, [&]<class Ends>(Ends) __attribute__((always_inline)) {
                    visitBlocks(
                        line, [&](const GradientLine& ofBlock,
                                  const ChannelsThere<kPixel>& channels) __attribute__((always_inline)) {
                          gradientStripOfLine<Strip, kStride, kRows, kPixel, Ends>(ofBlock, place, channels, sum);
                        });
                  });
            });
      }
    }
    if constexpr (!goesByStrip<kWidth, kPixel>()) sums.write(sum, 0);
  } else {
    for (int x = 0; x < call.gradientWidth; x += Strips::wide) {
      Strips::template visit<kPixel>(
          call, x, [&]<class Strip, bool kIsFirst>(const StripPlace& place) __attribute__((always_inline)) {
            visitGradientEnds<Strip, kStride, kIsFirst>(
                place, [&]<class Ends>(Ends) __attribute__((always_inline)) {
                  if (kPixel == 0 && call.channels < blockLength) {
                    if constexpr (kPixel == 0)
                      gradientColumnOfCutBlock<Strip, kStride, kPixel, Ends>(lines, place, sums, from, to,
                                                                             call.channels);
                    return;
                  }
                  gradientColumn<Strip, kStride, kPixel, false, Ends>(lines, place, sums, from, to, call.channels);
                });
          });
    }
  }
}

/// How many lines of the output's gradient are gone through at once, by `groups` groups of lines of the kernel.
template <int kWidth, int kStride>
inline int gradientLinesAtOnce(const DepthwiseGradientCall& call, int groups) {
  if (groups == 1) {
    constexpr int linesOfStrips = 4;  // for more of them hardware does not look ahead
    const bool isStrip = call.gradientWidth <= GradientStrips<kWidth, kStride>::wide;
    return vectorsOfBlock == 1 || isStrip ? call.to - call.from : linesOfStrips;
  }
  // What is read more than once is read from the L1 cache.
  constexpr int bytesAtOnce = 16 * 1024;
  const std::ptrdiff_t lineNumbers =
      (std::ptrdiff_t{call.strideHeight} * call.inputWidth + call.gradientWidth) * blockLength;
  const auto lines = static_cast<int>(bytesAtOnce / (lineNumbers * static_cast<std::ptrdiff_t>(sizeof(Number))));
  return lines < 1 ? 1 : lines;
}

/// The gradient of a kernel up to 7 wide, of a block of channels, or of several.
template <int kWidth, int kStride, int kPixel>
void gradientTogether(const DepthwiseGradientCall& call) {
  // Lines of the kernel are cut into groups that are nearly equal. Those of a kernel as high as wide are full: of
  // kMostRows, or of one less too. Each form takes its time to compile, so the few lines of another kernel are some of
  // kMostRows.
  constexpr int kMostRows = gradientRows(kWidth, kStride);
  constexpr int kFewRows = kWidth % kMostRows != 0 ? kMostRows - 1 : kMostRows;
  const int groups = (call.kernelHeight + kMostRows - 1) / kMostRows;
  const int step = gradientLinesAtOnce<kWidth, kStride>(call, groups);
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

/// Where pixels are apart, of all blocks that the call's channels are.
template <int kWidth, int kStride, int kPixel>
void depthwiseGradient(const DepthwiseGradientCall& call) {
  if constexpr (kPixel == 0 && !goesByStrip<kWidth, kPixel>()) {
    DepthwiseGradientCall ofBlock = call;
    for (int left = call.channels; left > 0; left -= blockLength) {
      ofBlock.channels = left < blockLength ? left : blockLength;
      gradientTogether<kWidth, kStride, kPixel>(ofBlock);
      ofBlock.input = behind(ofBlock.input, blockLength);
      ofBlock.gradient = behind(ofBlock.gradient, blockLength);
      ofBlock.sums += call.kernelHeight * call.sumsLine;
    }
  } else {
    gradientTogether<kWidth, kStride, kPixel>(call);
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
