// The kernels of channel-wise convolutions in NCHW: vectors of pixels of a line. A tile is up to seven lines of a
// vector of pixels. Column by column of the kernel, every line of the input is read once, shifted by the column, and
// multiplied into all the tile's lines that see it: of 3x3 and seven lines, 27 reads for 63 multiply-adds. Included by
// one file per instruction set, as tile-inl.hpp.
#include <algorithm>
#include <utility>

#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/depthwise_planes_kernels.hpp"
#include "compute/conv/kernels/lane_sums-inl.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Lines of a tile, at most: what registers hold beside the weights of a column and a line of the input.
constexpr int mostPlaneLines = 7;
constexpr int mostLinesOfPhases = TACC_REGISTERS >= 32 ? 7 : 4;

/// Half of the lanes of two vectors in turn: everySecond() the other way round.
template <int kHalf, int... kLane>
[[gnu::always_inline]] inline Vector interleaved(Vector even, Vector odd, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(even, odd, (kLane / 2 + kHalf * (TACC_LANES / 2) + kLane % 2 * TACC_LANES)...);
}
template <int kHalf>
[[gnu::always_inline]] inline Vector interleaved(Vector even, Vector odd) {
  return interleaved<kHalf>(even, odd, std::make_integer_sequence<int, TACC_LANES>());
}

/// Lines of the input that kLines of the result see, through kTapLines lines of the kernel.
template <int kStride, int kTapLines, int kLines>
constexpr int linesSeen = (kLines - 1) * kStride + kTapLines;

/// What is read of a line outside of the image: every column of the kernel is nearer than this to a vector's pixels.
constexpr int zerosBefore = 16;
alignas(64) constexpr float zeroLine[zerosBefore + 2 * TACC_LANES + zerosBefore] = {};
static_assert(zerosBefore >= mostPlaneTapColumns);

/// Lines of a tile that lie outside of the image, before the first and behind the last one: where they are few they
/// are left out, and where `isLooked` each is looked at, and zeros are read for it.
struct Edges {
  int before, behind;
  bool isLooked;
};

/// The lines that a tile sees, from where its first pixel is.
template <int kSeen, Edges kEdges>
class SeenLines {
 public:
  static constexpr int from = kEdges.before, to = kSeen - kEdges.behind;

  [[gnu::always_inline]] SeenLines(const float* input, int height, int width, int first, int x) : width_(width) {
    const float* const line = input + std::ptrdiff_t{first} * width + x;
    if constexpr (kEdges.isLooked) {
#pragma GCC unroll 32
      for (int i = 0; i < kSeen; ++i)
        lines_[i] = first + i >= 0 && first + i < height ? line + std::ptrdiff_t{i} * width : zeroLine + zerosBefore;
    } else {
      lines_[0] = line;
    }
  }
  [[gnu::always_inline]] const float* operator[](int i) const {
    return kEdges.isLooked ? lines_[i] : lines_[0] + std::ptrdiff_t{i} * width_;
  }

 private:
  std::ptrdiff_t width_;
  const float* lines_[1 + (kEdges.isLooked ? kSeen - 1 : 0)];
};

/// A column of the kernel, for the pixels of a tile: where it reads, and which of these lie in the image.
template <int kStride>
struct SeenColumn {
  SeenColumn() = default;  // not set: a tile has room for many, and few columns
  /// `x`: where the tile's first pixel reads with a tap at 0.
  [[gnu::always_inline]] SeenColumn(int x, int at, int width)
      : column(at), lanes(-x - at, width - x - at), behind(-x - at - TACC_LANES, width - x - at - TACC_LANES) {}
  int column;
  PartOfVector lanes, behind;  // the second of the vector behind, with a stride
};

template <int kStride>
[[gnu::always_inline]] inline void seeColumns(SeenColumn<kStride>* seen, const PlaneTapColumns& columns, int x,
                                              int width) {
  for (int c = 0; c < columns.count; ++c) seen[c] = SeenColumn<kStride>(x, columns.at[c], width);
}

/// Calls use(line, its vector for each of kColumns, which read beside each other) for all lines that a tile sees.
template <int kStride, int kColumns, int kSeen, Edges kEdges, class Use>
[[gnu::always_inline]] inline void forEachLineSeen(const SeenLines<kSeen, kEdges>& lines,
                                                   const SeenColumn<kStride>& seen, const Use& use) {
#pragma GCC unroll 32
  for (int i = lines.from; i < lines.to; ++i) {
    const float* const from = lines[i] + seen.column;
    const Vector a = seen.lanes.load(from);
    if constexpr (kStride == 1) {
      use(i, a, a);
    } else {
      const Vector b = seen.behind.load(from + TACC_LANES);
      use(i, everySecond<0>(a, b), kColumns > 1 ? everySecond<1>(a, b) : a);
    }
  }
}

/// Calls use(column, columns that read beside each other as a constant) for all columns. The usual ones without a loop.
template <int kStride, int kTapLines, class Use>
[[gnu::always_inline]] inline void forEachColumn(int count, const Use& use) {
  constexpr std::integral_constant<int, 1> one;
  constexpr std::integral_constant<int, 2> two;
  if (kTapLines == 3 && count == 3) {
    if constexpr (kStride == 2) {
      use(0, two);
    } else {
      use(0, one);
      use(1, one);
    }
    use(2, one);
    return;
  }
  int c = 0;
  if constexpr (kStride == 2) {
    for (; c + 1 < count; c += 2) use(c, two);
  }
  for (; c < count; ++c) use(c, one);
}

/// Adds all columns of a phase to a tile's sums.
template <int kStride, int kTapLines, int kLines, int kSeen, Edges kEdges>
[[gnu::always_inline]] inline void addPhase(Vector (&sum)[kLines], const SeenLines<kSeen, kEdges>& lines,
                                            const SeenColumn<kStride>* seen, int count, const float* weights) {
  forEachColumn<kStride, kTapLines>(
      count, [&](int column, auto columns) __attribute__((always_inline)) {
        constexpr int kColumns = decltype(columns)::value;
        const float* const own = weights + column * kTapLines;
        Vector w[kColumns][kTapLines];
#pragma GCC unroll 2
        for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 8
          for (int r = 0; r < kTapLines; ++r) w[c][r] = broadcast(own[c * kTapLines + r]);
        }
        forEachLineSeen<kStride, kColumns>(
            lines, seen[column], [&](int i, Vector first, Vector second) __attribute__((always_inline)) {
#pragma GCC unroll 8
              for (int line = 0; line < kLines; ++line) {
                const int r = i - line * kStride;
                if (r < 0 || r >= kTapLines) continue;
                sum[line] += w[0][r] * first;
                if constexpr (kColumns > 1) sum[line] += w[1][r] * second;
              }
            });
      });
}

/// Writes vectors of pixels, each a line behind the one before, of which `pixels` belong to the line.
template <int kLines>
[[gnu::always_inline]] inline void finishLines(const DepthwisePlaneCall& call, Vector (&sum)[kLines], std::ptrdiff_t at,
                                               int pixels, const PartOfVector& part) {
  if (pixels <= 0) return;
  const std::ptrdiff_t step = call.outputLine;
  if (call.addend != nullptr) {
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line) sum[line] += part.load(call.addend + at + line * step);
  }
  activate<kLines>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i]; });
  float* const to = call.output + at;
  if (pixels >= TACC_LANES) {
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line) store(to + line * step, sum[line]);
  } else {
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line) part.store(to + line * step, sum[line]);
  }
}

/// What the tile below reads or writes, in so many lines from `from` on: hardware looks ahead along lines alone, and of
/// these begins anew with each. Behind the last line of a plane comes the next plane.
template <int kLines>
[[gnu::always_inline]] inline void fetchLines(const float* from, std::ptrdiff_t line) {
#pragma GCC unroll 16
  for (int i = 0; i < kLines; ++i) __builtin_prefetch(from + i * line, 0, 2);
}

/// A tile of every channel, one after the other: what a tile is made of is found once.
template <int kStride, int kTapLines, int kPhases, Edges kEdges, int kLines>
void depthwisePlaneTile(const DepthwisePlaneCall& call, int y) {
  const int width = call.width;
  for (int x = 0; x * kPhases < call.pixels; x += TACC_LANES) {
    SeenColumn<kStride> seen[kPhases][mostPlaneTapColumns];
    for (int phase = 0; phase < kPhases; ++phase) seeColumns(seen[phase], call.columns[phase], x * kStride, width);
    const int left = call.pixels - x * kPhases;
    const PartOfVector part(left), rest(left - TACC_LANES);
    const float* input = call.input;
    const float* weights = call.weights;
    std::ptrdiff_t at = y * call.outputLine + x * kPhases;
    for (int plane = 0; plane < call.planes;
         ++plane, input += call.inputPlane, weights += call.weightPlane, at += call.outputPlane) {
      const SeenLines<linesSeen<kStride, kTapLines, kLines>, kEdges> lines(
          input, call.height, width, y * kStride + call.firstTapLine, x * kStride);
      if (call.fetchesBelow) {
        constexpr int kSeen = linesSeen<kStride, kTapLines, kLines>;
        const std::ptrdiff_t below = y * kStride + call.firstTapLine + kSeen;
        fetchLines<kLines * kStride>(input + below * width + x * kStride, width);
        fetchLines<kLines>(call.output + at + kLines * call.outputLine, call.outputLine);
      }
      const Vector start = call.bias != nullptr ? broadcast(call.bias[plane]) : Vector{};
      Vector sum[kPhases][kLines];
      const float* ofPhase = weights;
#pragma GCC unroll 2
      for (int phase = 0; phase < kPhases; ++phase) {
#pragma GCC unroll 8
        for (int line = 0; line < kLines; ++line) sum[phase][line] = start;
        addPhase<kStride, kTapLines>(sum[phase], lines, seen[phase], call.columns[phase].count, ofPhase);
        ofPhase += call.columns[phase].count * kTapLines;
      }
      if constexpr (kPhases == 1) {
        finishLines(call, sum[0], at, left, part);
      } else {
        Vector behind[kLines];
#pragma GCC unroll 8
        for (int line = 0; line < kLines; ++line) {
          behind[line] = interleaved<1>(sum[0][line], sum[1][line]);
          sum[0][line] = interleaved<0>(sum[0][line], sum[1][line]);
        }
        finishLines(call, sum[0], at, left, part);
        finishLines(call, behind, at + TACC_LANES, left - TACC_LANES, rest);
      }
    }
  }
}

/// Calls ofTile(y, lines, edges), the last two as constants, for tiles of nearly equally many lines; with
/// TACC_FEW_FORMS lines at the edges are always looked at.
template <int kStride, int kTapLines, int kMost, class OfTile>
[[gnu::always_inline]] inline void forEachTile(int firstLine, int endLine, int firstTapLine, int height,
                                               const OfTile& ofTile) {
  const auto ofLines = [&](int y, auto lines) __attribute__((always_inline)) {
    const auto with = [&]<int kBefore, int kBehind, bool kIsLooked>() __attribute__((always_inline)) {
      ofTile.template operator()<decltype(lines)::value, Edges{kBefore, kBehind, kIsLooked}>(y);
    };
#ifndef TACC_FEW_FORMS
    const int first = y * kStride + firstTapLine;
    const int before = std::max(0, -first);
    const int behind = std::max(0, first + linesSeen<kStride, kTapLines, decltype(lines)::value> - height);
    if (before == 0 && behind == 0) return with.template operator()<0, 0, false>();
    if constexpr (kTapLines <= 3) {
      if (before == 1 && behind == 0) return with.template operator()<1, 0, false>();
      if (before == 0 && behind == 1) return with.template operator()<0, 1, false>();
      if constexpr (linesSeen < kStride, kTapLines, decltype(lines)::value >> 1) {
        if (before == 1 && behind == 1) return with.template operator()<1, 1, false>();
      }
    }
#else
    static_cast<void>(firstTapLine);
    static_cast<void>(height);
#endif
    with.template operator()<0, 0, true>();
  };
  const int count = endLine - firstLine;
  const int tiles = (count + kMost - 1) / kMost;
  for (int t = 0, y = firstLine; t < tiles; ++t) {
    const int here = (count + tiles - 1 - t) / tiles;
    [&]<int... kLess>(std::integer_sequence<int, kLess...>) {
      static_cast<void>(((here == kLess + 1 && (ofLines(y, std::integral_constant<int, kLess + 1>()), true)) || ...));
    }
    (std::make_integer_sequence<int, kMost>());
    y += here;
  }
}

template <int kStride, int kTapLines, int kPhases>
void depthwisePlaneLines(const DepthwisePlaneCall& call) {
  constexpr int kMost = kPhases == 1 ? mostPlaneLines : mostLinesOfPhases;
  forEachTile<kStride, kTapLines, kMost>(call.firstLine, call.endLine, call.firstTapLine, call.height,
                                         [&]<int kLines, Edges kEdges>(int y) {
                                           depthwisePlaneTile<kStride, kTapLines, kPhases, kEdges, kLines>(call, y);
                                         });
}

/// Adds a tile's products to the sums of every channel.
template <int kStride, int kTapLines, Edges kEdges, int kLines>
void depthwisePlaneGradientTile(const DepthwisePlaneGradientCall& call, int y) {
  for (int x = 0; x < call.pixels; x += TACC_LANES) {
    SeenColumn<kStride> seen[mostPlaneTapColumns];
    seeColumns(seen, call.columns, x * kStride, call.width);
    const PartOfVector lanes(0, call.pixels - x);
    const float* input = call.input;
    const float* ofTile = call.gradient + std::ptrdiff_t{y} * call.pixels + x;
    float* sums = call.sums;
    for (int plane = 0; plane < call.planes;
         ++plane, input += call.inputPlane, ofTile += call.gradientPlane, sums += call.sumPlane) {
      const SeenLines<linesSeen<kStride, kTapLines, kLines>, kEdges> lines(
          input, call.height, call.width, y * kStride + call.firstTapLine, x * kStride);
      if (call.fetchesBelow) {
        constexpr int kSeen = linesSeen<kStride, kTapLines, kLines>;
        const std::ptrdiff_t below = y * kStride + call.firstTapLine + kSeen;
        fetchLines<kLines * kStride>(input + below * call.width + x * kStride, call.width);
        fetchLines<kLines>(ofTile + std::ptrdiff_t{kLines} * call.pixels, call.pixels);
      }
      Vector gradient[kLines];
#pragma GCC unroll 8
      for (int line = 0; line < kLines; ++line)
        gradient[line] = lanes.load(ofTile + std::ptrdiff_t{line} * call.pixels);
      forEachColumn<kStride, kTapLines>(
          call.columns.count, [&](int column, auto columns) __attribute__((always_inline)) {
            constexpr int kColumns = decltype(columns)::value;
            float* const own = sums + column * kTapLines * planeTapFloats;
            Vector sum[kColumns][kTapLines];
#pragma GCC unroll 2
            for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 8
              for (int r = 0; r < kTapLines; ++r) sum[c][r] = load(own + (c * kTapLines + r) * planeTapFloats);
            }
            forEachLineSeen<kStride, kColumns>(
                lines, seen[column], [&](int i, Vector first, Vector second) __attribute__((always_inline)) {
#pragma GCC unroll 8
                  for (int line = 0; line < kLines; ++line) {
                    const int r = i - line * kStride;
                    if (r < 0 || r >= kTapLines) continue;
                    sum[0][r] += gradient[line] * first;
                    if constexpr (kColumns > 1) sum[1][r] += gradient[line] * second;
                  }
                });
#pragma GCC unroll 2
            for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 8
              for (int r = 0; r < kTapLines; ++r) store(own + (c * kTapLines + r) * planeTapFloats, sum[c][r]);
            }
          });
    }
  }
}

template <int kStride, int kTapLines>
void depthwisePlaneGradient(const DepthwisePlaneGradientCall& call) {
  forEachTile<kStride, kTapLines, mostPlaneLines>(
      0, call.lines, call.firstTapLine, call.height, [&]<int kLines, Edges kEdges>(int y) {
        depthwisePlaneGradientTile<kStride, kTapLines, kEdges, kLines>(call, y);
      });
}

inline void totalLanes(const float* sums, int count, float* totals) {
  for (int first = 0; first < count; first += TACC_LANES) {
    Vector v[TACC_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < TACC_LANES; ++i)
      v[i] = first + i < count ? load(sums + (first + i) * planeTapFloats) : Vector{};
    addLanes<TACC_LANES>(v);
    PartOfVector(count - first).store(totals + first, v[0]);
  }
}

}  // namespace TACC_CONV_ISA

const DepthwisePlaneKernels& TACC_DEPTHWISE_PLANE_KERNELS() {
  using namespace TACC_CONV_ISA;
  constexpr auto none = nullptr;
  static constexpr DepthwisePlaneKernels kernels{TACC_LANES,
                                                 {{none, none, none, depthwisePlaneLines<1, 3, 1>, none,
                                                   depthwisePlaneLines<1, 5, 1>, none, depthwisePlaneLines<1, 7, 1>},
                                                  {none, none, none, depthwisePlaneLines<2, 3, 1>, none,
                                                   depthwisePlaneLines<2, 5, 1>, none, depthwisePlaneLines<2, 7, 1>}},
                                                 {none, depthwisePlaneLines<1, 1, 2>, depthwisePlaneLines<1, 2, 2>,
                                                  depthwisePlaneLines<1, 3, 2>, depthwisePlaneLines<1, 4, 2>},
                                                 {{none, none, none, depthwisePlaneGradient<1, 3>, none,
                                                   depthwisePlaneGradient<1, 5>, none, depthwisePlaneGradient<1, 7>},
                                                  {none, none, none, depthwisePlaneGradient<2, 3>, none,
                                                   depthwisePlaneGradient<2, 5>, none, depthwisePlaneGradient<2, 7>}},
                                                 totalLanes};
  return kernels;
}

}  // namespace tacc::conv
