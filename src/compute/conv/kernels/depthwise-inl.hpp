// Channel-wise convolutions forward and backward to the data. A line of results is computed in strips of pixels that
// stay in registers, and with them the weights of one line of the kernel: each value of the input is read once for all
// taps of that line. Included by one file per instruction set, as tile-inl.hpp.
#pragma once

#include <type_traits>
#include <utility>

#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/depthwise_kernels.hpp"
#include "compute/conv/kernels/numbers-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// How a strip of kPixels results depends on columns of what is read: on every column, on every second one, or, for
/// `kSpreads`, each column on every second result, of which the first one is `kShift` pixels behind an even place. Only
/// strips of a stride of 1 have a dilation.
template <int kWidth, int kStride, bool kSpreads, int kShift, int kPixels, int kDilation = 1>
struct StripShape {
  static constexpr int width = kWidth;
  static constexpr bool spreads = kSpreads;
  /// Wider strides and dilation are rare, and each form takes its time to compile.
  static constexpr bool hasKnownEnds = kStride <= 2 && kDilation == 1;
  static constexpr int pixels = kPixels;
  static constexpr int columns =
      kSpreads ? (kPixels + kWidth - 2 - kShift) / kStride + 1 : (kPixels - 1) * kStride + (kWidth - 1) * kDilation + 1;
  /// Vectors of a block whose sums and weights fit into the registers together: lines of the cache that have two are
  /// then asked for by half as many instructions.
  static constexpr int together = vectorsOfBlock == 2 && 2 * (kPixels + kWidth + 1) <= TACC_REGISTERS ? 2 : 1;
  /// Columns before the first one that there is, at most, while the padding is narrower than the kernel.
  static constexpr int mostOutside = (kWidth - 1) * kDilation;

  /// Columns that are outside of a line that the strip is as long as, with results in the middle of the kernel: before
  /// it and behind it.
  static constexpr int left = kSpreads ? (kWidth - 1) / kStride - ((kWidth - 1) / 2 + kShift) / 2 : (kWidth - 1) / 2;
  static constexpr int right = columns - left - (kSpreads ? kPixels / kStride : kPixels * kStride);

  /// The result that column and tap contribute to; -1: none.
  [[gnu::always_inline]] static constexpr int result(int column, int tap) {
    if (kSpreads) {
      const int pixel = kStride * column + tap + kShift - (kWidth - 1);
      return pixel >= 0 && pixel < kPixels ? pixel : -1;
    }
    const int distance = column - tap * kDilation;
    return distance >= 0 && distance % kStride == 0 && distance / kStride < kPixels ? distance / kStride : -1;
  }
  /// Whether a column contributes to any result.
  [[gnu::always_inline]] static constexpr bool isRead(int column) {
    for (int tap = 0; tap < kWidth; ++tap) {
      if (result(column, tap) >= 0) return true;
    }
    return false;
  }
  /// The column that the strip at result x begins with.
  static constexpr int firstColumn(int x, int pad) {
    return kSpreads ? (x + pad - kShift) / kStride - (kWidth - 1) / kStride + kShift : x * kStride - pad;
  }
};

/// The compiler would read it from memory again for every multiply-add.
[[gnu::always_inline]] inline Vector inRegister(Vector v) {
  asm("" : "+" TACC_VECTOR_REGISTER(v));
  return v;
}

/// A block all of whose channels are there in memory.
class WholeBlock {
 public:
  [[gnu::always_inline]] explicit WholeBlock(int) {}
  [[gnu::always_inline]] static Vector load(const Number* from) { return loadNumbers(from); }
  [[gnu::always_inline]] static void store(Number* to, Vector v) { storeNumbers(to, v); }
};
/// A block of as many channels as are left: where pixels are apart another one is behind the last channel. Vectors
/// that are parts of a block are whole: the last one ends with the last channel (laneOfVector).
template <int kPixel>
using ChannelsThere = std::conditional_t<kPixel == 0 && vectorsOfBlock == 1, PartOfNumbers, WholeBlock>;

/// Where a vector begins that lane `lane` of a block of so many channels is the first one of, and others behind it:
/// what it shares with the vector before it is computed twice, alike.
template <int kPixel>
[[gnu::always_inline]] constexpr int laneOfVector(int lane, int channels) {
  return kPixel == 0 && vectorsOfBlock > 1 && lane + TACC_LANES > channels ? channels - TACC_LANES : lane;
}

/// Lines that contribute to one line of results, with the weights of each.
struct DepthwiseLines {
  const Number* input[maxDepthwiseLines];
  const float* weights[maxDepthwiseLines];
  int count;
};

inline void collectLines(const DepthwiseCall& call, int y, DepthwiseLines& lines) {
  const std::ptrdiff_t lineNumbers = call.inputWidth * call.inputPixel;
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
    lines.input[count] = numbers(call.input) + line * lineNumbers;
    lines.weights[count++] = call.weights + r * call.weightsLine;
  }
  lines.count = count;
}

/// Where a strip is.
struct StripPlace {
  std::ptrdiff_t column;  // the first one, in numbers from a line's beginning
  int from, to;           // columns that there are, from the first one on
  int pixels;             // results that there are
  std::ptrdiff_t output;  // in numbers from the first plane's beginning
  // Of its block of channels, from the first one's:
  std::ptrdiff_t plane = 0;    // of the input
  std::ptrdiff_t weights = 0;  // of the weights
  std::ptrdiff_t bias = 0;
};

/// Columns outside that are known when it is compiled, with all results there; or not known.
template <int kLeft, int kRight>
struct KnownEnds {
  static constexpr bool areKnown = true;
  static constexpr int left = kLeft, right = kRight;
};
struct AnyEnds {
  static constexpr bool areKnown = false;
  static constexpr int left = 0, right = 0;
};

/// Calls whole(KnownEnds) for the usual places of a strip, and else rest(); with TACC_FEW_FORMS always rest().
template <class Strip, bool kIsFirst, class Whole, class Rest>
[[gnu::always_inline]] inline void visitEnds(const StripPlace& place, const Whole& whole, const Rest& rest) {
#ifdef TACC_FEW_FORMS
  constexpr bool knowsEnds = false;
#else
  constexpr bool knowsEnds = Strip::hasKnownEnds;
#endif
  if constexpr (!knowsEnds) {
    rest();
    return;
  }
  const int before = place.from > 0 ? place.from : 0;
  const int behind = place.to < Strip::columns ? Strip::columns - place.to : 0;
  if (place.pixels < Strip::pixels) {  // NOLINT(bugprone-branch-clone): the order is what is asked first
    rest();
  } else if (kIsFirst && before == 0 && behind == 0) {
    whole(KnownEnds<0, 0>{});
  } else if (kIsFirst && Strip::left > 0 && before == Strip::left && behind == 0) {
    whole(KnownEnds<Strip::left, 0>{});
  } else if (Strip::right > 0 && before == 0 && behind == Strip::right) {
    whole(KnownEnds<0, Strip::right>{});
  } else if (Strip::left > 0 && Strip::right > 0 && before == Strip::left && behind == Strip::right) {
    whole(KnownEnds<Strip::left, Strip::right>{});
  } else {
    rest();
  }
}

/// From pixel to pixel: known when it is compiled, or as the call says.
template <int kPixel>
[[gnu::always_inline]] constexpr std::ptrdiff_t pixelStep(std::ptrdiff_t ofCall) {
  return kPixel != 0 ? kPixel : ofCall;
}

/// Where pixels are, from one on that next() gives first. Where their distance is not known when it is compiled the
/// place moves on: the places of all pixels of a strip would take more registers than there are, and an instruction or
/// two for each of them every time.
template <int kPixel>
struct MovingPlace {
  const Number* at;
  std::ptrdiff_t step;

  [[gnu::always_inline]] const Number* next() {
    const Number* const here = at;
    at += pixelStep<kPixel>(step);
    if constexpr (kPixel == 0) asm("" : "+r"(at));
    return here;
  }
};

/// Calls visit(column, where it is) for those of a strip that there are. `first` is where column 0 is, or would be.
template <class Strip, class Ends, int kPixel, class Visit>
[[gnu::always_inline]] inline void visitColumns(const StripPlace& place, const Number* first, std::ptrdiff_t pixel,
                                                const Visit& visit) {
  MovingPlace<kPixel> columns{first + Ends::left * pixelStep<kPixel>(pixel), pixel};
  if constexpr (Ends::areKnown) {
    [&]<int... kColumn>(std::integer_sequence<int, kColumn...>) __attribute__((always_inline)) {
      (visit(kColumn + Ends::left, columns.next()), ...);
    }
    (std::make_integer_sequence<int, Strip::columns - Ends::left - Ends::right>());
  } else {
#pragma GCC unroll 64
    for (int column = 0; column < Strip::columns; ++column) {
      if (column >= place.to) break;
      const Number* const here = columns.next();
      if (!Strip::isRead(column) || (column < Strip::mostOutside && column < place.from)) continue;
      visit(column, here);
    }
  }
}

/// Fetches what a strip reads of each of `lines` lines, up from one whose first column is given.
template <class Strip>
[[gnu::always_inline]] inline void fetchStrip(const Number* from, int lines, std::ptrdiff_t line,
                                              std::ptrdiff_t pixel) {
  for (int i = 0; i < lines; ++i, from -= line) {
#pragma GCC unroll 64
    for (int column = 0; column < Strip::columns; ++column) {
      if (Strip::isRead(column)) __builtin_prefetch(from + column * pixel);
    }
  }
}

template <int kPixels, bool kIsWhole, int kPixel>
[[gnu::always_inline]] inline void finishStrip(const DepthwiseCall& call, const StripPlace& place, int lane,
                                               const ChannelsThere<kPixel>& channels, Vector (&sum)[kPixels]) {
  Number* const output = numbers(call.output) + place.output + lane;
  const std::ptrdiff_t pixel = pixelStep<kPixel>(call.outputPixel);
  if (call.addend != nullptr) {
    const Number* const addend = numbers(call.addend) + place.output + lane;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (kIsWhole || p < place.pixels) sum[p] += channels.load(addend + p * pixel);
    }
  }
  activate<kPixels>(
      call.activation, [&](int p) __attribute__((always_inline))->Vector & { return sum[p]; });
  if (call.isNonTemporal) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (kIsWhole || p < place.pixels) streamNumbers(output + p * pixel, sum[p]);
    }
    return;
  }
  // Some cores take long to store a part of a vector, even if it is all of it.
  if (pixel < blockLength) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (kIsWhole || p < place.pixels) channels.store(output + p * pixel, sum[p]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    if (kIsWhole || p < place.pixels) storeNumbers(output + p * pixel, sum[p]);
  }
}

/// `kIsCut`: of a block with fewer channels, whose last vector is laneOfVector().
template <class Strip, class Ends, int kPixel, bool kIsCut>
[[gnu::always_inline]] inline void strip(const DepthwiseCall& call, const DepthwiseLines& lines,
                                         const StripPlace& place, const ChannelsThere<kPixel>& channels) {
  constexpr int kTogether = kIsCut ? 1 : Strip::together;
  const int there = kIsCut ? static_cast<int>(call.inputPixel) : blockLength;
  for (int first = 0; first < there; first += kTogether * TACC_LANES) {
    const int lane = kIsCut ? laneOfVector<kPixel>(first, there) : first;
    Vector sum[kTogether][Strip::pixels];
#pragma GCC unroll 2
    for (int v = 0; v < kTogether; ++v) {
      const Vector start = call.bias != nullptr ? load(call.bias + place.bias + lane + v * TACC_LANES) : Vector{};
#pragma GCC unroll 16
      for (int p = 0; p < Strip::pixels; ++p) sum[v][p] = start;
    }
    for (int i = 0; i < lines.count; ++i) {
      const Number* const input = lines.input[i] + place.plane + place.column + lane;
      const float* const weights = lines.weights[i] + place.weights + lane;
      Vector w[kTogether][Strip::width];
#pragma GCC unroll 16
      for (int t = 0; t < Strip::width; ++t) {
#pragma GCC unroll 2
        for (int v = 0; v < kTogether; ++v) w[v][t] = load(weights + t * blockLength + v * TACC_LANES);
      }
      const auto multiply = [&](int column, const Number* at) __attribute__((always_inline)) {
#pragma GCC unroll 2
        for (int v = 0; v < kTogether; ++v) {
          const Vector x = inRegister(channels.load(at + v * TACC_LANES));
#pragma GCC unroll 16
          for (int t = 0; t < Strip::width; ++t)
            if (Strip::result(column, t) >= 0) sum[v][Strip::result(column, t)] += w[v][t] * x;
        }
      };
      visitColumns<Strip, Ends, kPixel>(place, input, call.inputPixel, multiply);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kTogether; ++v)
      finishStrip<Strip::pixels, Ends::areKnown, kPixel>(call, place, lane + v * TACC_LANES, channels, sum[v]);
  }
}

/// Moves a strip to the same place of the next block of channels.
inline void moveToNextBlock(const DepthwiseCall& call, StripPlace& place) {
  place.plane += call.inputBlock;
  place.output += call.outputBlock;
  place.weights += call.weightsBlock;
  place.bias += blockLength;
}

/// Lines of results that each strip is gone through in before the next one, so that its ends are asked for once.
/// Strips of whole blocks are long enough to hide that.
constexpr int linesOfStrip = vectorsOfBlock == 1 ? 1 : 4;

/// What is the same for some lines of results, from the first one on.
struct DepthwiseRows {
  DepthwiseLines lines[linesOfStrip];
  int count;
  std::ptrdiff_t nextOutput;  // from line to line of the results
};

/// Lines of the input that a line of results reads and the one above it does not.
[[gnu::always_inline]] inline int newLines(const auto& call) {
  return call.strideHeight < call.kernelHeight ? call.strideHeight : call.kernelHeight;
}

/// Whether a strip of all blocks is gone through line by line, and not of all lines block by block. Where pixels are
/// apart the blocks of a pixel follow each other, so that is the order of memory, in which hardware looks ahead: with a
/// stride of 2 what comes from behind the L2 cache takes up to 30 % less time so. Wider kernels have more lines in
/// common, which are better read again while the L1 cache has them.
template <class Strip, int kPixel>
constexpr bool goesByLines = vectorsOfBlock == 2 && kPixel == 0 && Strip::width <= 3 && !Strip::spreads;

/// A strip of some lines of all blocks, in turn.
template <class Strip, class Ends, int kPixel, bool kIsCut>
[[gnu::always_inline]] inline void stripOfBlocks(const DepthwiseCall& call, const DepthwiseRows& rows,
                                                 StripPlace place) {
  const std::ptrdiff_t inputPixel = pixelStep<kPixel>(call.inputPixel);
  const ChannelsThere<kPixel> channels(static_cast<int>(inputPixel));
  const auto stripOfLine = [&](const DepthwiseLines& lines, const StripPlace& at) __attribute__((always_inline)) {
    if (call.ahead != 0 && lines.count > 0) {
      // What the lines below read first.
      fetchStrip<Strip>(lines.input[lines.count - 1] + at.plane + at.column + call.ahead,
                        call.spreadsLines ? 1 : newLines(call), call.inputWidth * inputPixel, inputPixel);
    }
    strip<Strip, Ends, kPixel, kIsCut>(call, lines, at, channels);
  };
  if constexpr (goesByLines<Strip, kPixel>) {
    for (int i = 0; i < rows.count; ++i, place.output += rows.nextOutput) {
      StripPlace at = place;
      for (int block = 0; block < call.blocks; ++block) {
        stripOfLine(rows.lines[i], at);
        moveToNextBlock(call, at);
      }
    }
    return;
  }
  for (int block = 0; block < call.blocks; ++block) {
    StripPlace below = place;
    for (int i = 0; i < rows.count; ++i) {
      stripOfLine(rows.lines[i], below);
      below.output += rows.nextOutput;
    }
    moveToNextBlock(call, place);
  }
}

/// Apart from what whole blocks go through, which has no register to spare.
template <class Strip, class Ends, int kPixel>
[[gnu::noinline]] void stripOfCutBlock(const DepthwiseCall& call, const DepthwiseRows& rows, const StripPlace& place) {
  stripOfBlocks<Strip, Ends, kPixel, true>(call, rows, place);
}

template <class Strip, class Ends, int kPixel>
[[gnu::always_inline]] inline void stripOfRows(const DepthwiseCall& call, const DepthwiseRows& rows,
                                               const StripPlace& place) {
  if constexpr (kPixel == 0 && vectorsOfBlock > 1) {
    if (call.inputPixel < blockLength) {
      stripOfCutBlock<Strip, Ends, kPixel>(call, rows, place);
      return;
    }
  }
  stripOfBlocks<Strip, Ends, kPixel, false>(call, rows, place);
}

/// Strips from one end of a line to the other, wide ones and, where few pixels are left, a narrow one; each of all
/// blocks in turn.
template <class Wide, class Narrow, int kPixel = blockLength>
[[gnu::always_inline]] inline void depthwiseLines(const DepthwiseCall& call) {
  constexpr bool kIsSame = Wide::pixels == Narrow::pixels;
  const std::ptrdiff_t inputPixel = pixelStep<kPixel>(call.inputPixel);
  const std::ptrdiff_t outputPixel = pixelStep<kPixel>(call.outputPixel);
  DepthwiseRows rows;
  rows.nextOutput = call.outputWidth * outputPixel;
  for (int y = call.from; y < call.to; y += rows.count) {
    rows.count = call.to - y < linesOfStrip ? call.to - y : linesOfStrip;
    for (int i = 0; i < rows.count; ++i) collectLines(call, y + i, rows.lines[i]);
    for (int x = 0; x < call.outputWidth; x += Wide::pixels) {
      const int left = call.outputWidth - x;
      const int column = Wide::firstColumn(x, call.padWidth);
      const StripPlace place{column * inputPixel, -column, call.inputWidth - column, left,
                             y * rows.nextOutput + x * outputPixel};
      if (kIsSame || left > Narrow::pixels) {
        visitEnds<Wide, true>(
            place,
            [&]<class Ends>(Ends)
                __attribute__((always_inline)) { stripOfRows<Wide, Ends, kPixel>(call, rows, place); },
            [&]() __attribute__((always_inline)) { stripOfRows<Wide, AnyEnds, kPixel>(call, rows, place); });
      } else {
        visitEnds<Narrow, false>(
            place,
            [&]<class Ends>(Ends)
                __attribute__((always_inline)) { stripOfRows<Narrow, Ends, kPixel>(call, rows, place); },
            [&]() __attribute__((always_inline)) { stripOfRows<Narrow, AnyEnds, kPixel>(call, rows, place); });
      }
    }
  }
  if (call.isNonTemporal) endNonTemporal();
}

/// A line of the kernel, up to 7 wide.
template <int kWidth, int kStride, int kPixel>
void depthwise(const DepthwiseCall& call) {
  if constexpr (hasPairStrips(vectorsOfBlock, kWidth, kStride) && (kPixel != 0 || kStride == 2)) {
    // Of what comes from behind the L2 cache, what can be asked for at once is the limit; with a stride of 2 more is
    // read for each product, and half of a line of the cache at a time takes twice as many instructions.
    constexpr int kFew = 4;
    if (call.goesByPairs) {
      using Strip = StripShape<kWidth, kStride, false, 0, kFew>;
      depthwiseLines<Strip, Strip, kPixel>(call);
      return;
    }
  }
  constexpr int kWide = TACC_REGISTERS >= 32 ? 14 : 7;
  depthwiseLines<StripShape<kWidth, kStride, false, 0, kWide>, StripShape<kWidth, kStride, false, 0, 7>, kPixel>(call);
}

template <int kWidth, int kDilation>
void depthwiseDilated(const DepthwiseCall& call) {
  constexpr int kWide = TACC_REGISTERS >= 32 ? 14 : 7;
  depthwiseLines<StripShape<kWidth, 1, false, 0, kWide, kDilation>, StripShape<kWidth, 1, false, 0, 7, kDilation>>(
      call);
}

template <int kWidth, int kShift, int kPixel>
void depthwiseSpread(const DepthwiseCall& call) {
  constexpr int kWide = TACC_REGISTERS >= 32 ? 14 : 8;
  depthwiseLines<StripShape<kWidth, 2, true, kShift, kWide>, StripShape<kWidth, 2, true, kShift, 8>, kPixel>(call);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
