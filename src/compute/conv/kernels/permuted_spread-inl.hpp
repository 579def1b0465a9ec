// Groups that cut blocks, backward to the data with a stride of 2 and three taps along the lines: each pixel of the
// output's gradient is permuted once and added to the three pixels of the result that it belongs to. Included by one
// file per instruction set, as permuted-inl.hpp, behind it.
namespace tacc::conv {
namespace TACC_CONV_ISA {

// Positions of a tile, each two pixels of the result: their sums, three taps, lanes and a pixel are in registers.
// Beyond what it takes to keep the multiply-adds busy more would only be code.
constexpr int spreadLimit = TACC_REGISTERS == 32 ? 8 : 5;

/// Positions [first, first + kCount) of a line: first * 2 - shift is the column of the first tap of pixel `first`.
/// Without the pixel before the first one and the last one, where these are outside.
template <bool kPermutes, int kCount, bool kHasBefore, bool kHasLast>
[[gnu::always_inline]] inline void spreadTile(const PermutedSpreadCall& call, int first) {
  constexpr int kVectors = vectorsOfBlock;
  constexpr int kTaps = 3;
  for (int v = 0; v < kVectors; ++v) {
    Vector outer[kCount], middle[kCount];  // of the first and the last tap, and of the second one
#pragma GCC unroll 16
    for (int p = 0; p < kCount; ++p) outer[p] = middle[p] = Vector{};
    for (const SpreadRun *run = call.runs, *const end = run + call.runCount; run != end; ++run) {
      const float* const input = call.input + run->input + first * std::ptrdiff_t{blockLength};
      const float* weights = call.weights + run->weights + v * TACC_LANES;
      std::ptrdiff_t lanes = run->firstStep * std::ptrdiff_t{blockLength} + v * TACC_LANES;
      const std::int32_t* offsets = call.offsets + run->firstStep * std::ptrdiff_t{kVectors} + v;
      for (int i = 0; i < run->count; ++i) {
        const Vector w0 = load(weights), w1 = load(weights + blockLength), w2 = load(weights + 2 * blockLength);
        const Lanes which = lanesOf<kPermutes>(call.lanes, lanes);
        const float* const from = input + *offsets;
        if constexpr (kHasBefore) outer[0] += w2 * taken<kPermutes>(from - blockLength, which);
#pragma GCC unroll 16
        for (int p = 0; p < (kHasLast ? kCount : kCount - 1); ++p) {
          const Vector x = taken<kPermutes>(from + p * blockLength, which);
          outer[p] += w0 * x;
          middle[p] += w1 * x;
          if (p + 1 < kCount) outer[p + 1] += w2 * x;
        }
        weights += kTaps * blockLength;
        lanes += blockLength;
        offsets += kVectors;
      }
    }
    const auto write = [&](Vector sum, int column) __attribute__((always_inline)) {
      if (column < 0 || column >= call.outputPixels) return;
      float* const to = call.output + column * std::ptrdiff_t{blockLength} + v * TACC_LANES;
      store(to, call.accumulate ? load(to) + sum : sum);
    };
#pragma GCC unroll 16
    for (int p = 0; p < kCount; ++p) {
      write(outer[p], 2 * (first + p) - call.shift);
      write(middle[p], 2 * (first + p) - call.shift + 1);
    }
  }
}

template <bool kPermutes, int kCount>
[[gnu::always_inline]] inline void spreadWithEnds(const PermutedSpreadCall& call, int first) {
  const bool hasBefore = first > 0, hasLast = first + kCount <= call.inputPixels;
  if (hasBefore && hasLast) {
    spreadTile<kPermutes, kCount, true, true>(call, first);
  } else if (hasBefore) {
    spreadTile<kPermutes, kCount, true, false>(call, first);
  } else if (hasLast) {
    spreadTile<kPermutes, kCount, false, true>(call, first);
  } else {
    spreadTile<kPermutes, kCount, false, false>(call, first);
  }
}

template <int kCount>
void spreadPositions(const PermutedSpreadCall& call, int first) {
  if constexpr (canTakeOne) {
    if (call.lanes == nullptr) return spreadWithEnds<false, kCount>(call, first);
  }
  spreadWithEnds<true, kCount>(call, first);
}

/// A line of the result, in nearly equal tiles.
inline void permutedSpread(const PermutedSpreadCall& call) {
  using Positions = void (*)(const PermutedSpreadCall&, int);
  constexpr auto kOfCount = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    struct Table {
      Positions of[spreadLimit + 1];
    };
    return Table{{nullptr, spreadPositions<kIndex + 1>...}};
  }
  (std::make_integer_sequence<int, spreadLimit>());
  int first = call.shift / 2;
  int left = (call.outputPixels + call.shift + 1) / 2 - first;
  for (int tiles = (left + spreadLimit - 1) / spreadLimit; tiles > 0; --tiles) {
    const int count = (left + tiles - 1) / tiles;
    kOfCount.of[count](call, first);
    first += count;
    left -= count;
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
