// The kernels of grouped convolutions, where the channels of one block belong to several groups: every output channel
// takes an input value of its group, by a permutation of a vector of input. Included by one file per instruction
// set, as tile-inl.hpp.
#include "compute/conv/kernels/tile-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

using Lanes [[gnu::vector_size(TACC_LANES * sizeof(std::int32_t))]] = std::int32_t;
using UnalignedLanes [[gnu::vector_size(TACC_LANES * sizeof(std::int32_t)), gnu::aligned(4), gnu::may_alias]] =
    std::int32_t;

[[gnu::always_inline]] inline Lanes loadLanes(const std::int32_t* from) {
  return *reinterpret_cast<const UnalignedLanes*>(from);
}

// Registers for sums and lanes of a gradient tile, a vector of gradients and one of input; of three taps that are
// uniform, which are there where half a block is a vector, three vectors of gradients and no lanes. Without
// permutations of floats by a vector a lane has one value to choose from: all lanes of a vector take the same.
#if defined(__x86_64__) && TACC_LANES == 16
constexpr int permutedLanes = 16;
constexpr int permutedRowLimit = 14;
constexpr int permutedThreeLimit = 6;
constexpr int uniformThreeLimit = 0;
#elif defined(__x86_64__) && TACC_LANES == 8
constexpr int permutedLanes = 8;
constexpr int permutedRowLimit = 6;
constexpr int permutedThreeLimit = 2;
constexpr int uniformThreeLimit = 4;
#else
constexpr int permutedLanes = 1;
constexpr int permutedRowLimit = 6;
constexpr int permutedThreeLimit = 3;
constexpr int uniformThreeLimit = 0;
#endif

[[gnu::always_inline]] inline Vector permuted(const float* from, [[maybe_unused]] Lanes lanes) {
#if defined(__x86_64__) && TACC_LANES == 16  // maskz: GCC 12 warns of what the plain one leaves undefined
  return _mm512_maskz_permutexvar_ps(0xFFFF, reinterpret_cast<__m512i>(lanes), load(from));
#elif defined(__x86_64__) && TACC_LANES == 8
  return _mm256_permutevar8x32_ps(load(from), reinterpret_cast<__m256i>(lanes));
#else
  return broadcast(*from);
#endif
}

/// Where half a block is a vector, all of its lanes may take the same value, which is read for all of them at once, in
/// half the time of a permutation.
constexpr bool canTakeOne = TACC_LANES == 8;

/// What lanes take: by a permutation, or, of a call without lanes, the value at `from`.
template <bool kPermutes>
[[gnu::always_inline]] inline Vector taken(const float* from, Lanes lanes) {
  if constexpr (kPermutes) return permuted(from, lanes);
  return broadcast(*from);
}
template <bool kPermutes>
[[gnu::always_inline]] inline Lanes lanesOf(const std::int32_t* lanes, std::ptrdiff_t at) {
  if constexpr (kPermutes) return loadLanes(lanes + at);
  return Lanes{};
}

/// One run for the pixels [kFrom, kTo).
template <bool kPermutes, int kFrom, int kTo, int kVectors, int kPixels>
[[gnu::always_inline]] inline void multiplyPermuted(Vector (&sum)[kVectors][kPixels], const float* input,
                                                    std::ptrdiff_t pixel, const float* weights,
                                                    const std::int32_t* lanes, const std::int32_t* offsets, int count) {
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Vector w = load(weights + v * TACC_LANES);
      const Lanes which = lanesOf<kPermutes>(lanes, i * blockLength + v * TACC_LANES);
      const float* const from = kVectors == 1 ? input : input + offsets[v];
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) sum[v][p] += w * taken<kPermutes>(from + p * pixel, which);
    }
    weights += blockLength;
    offsets += kVectors;
  }
}

/// Taps side by side: what is permuted is multiplied by several of them. Without the first pixel of the first tap and
/// the last pixel of the last one, where these are outside the image.
template <bool kPermutes, int kTaps, int kStride, bool kHasFirst, bool kHasLast, int kVectors, int kPixels>
[[gnu::always_inline]] inline void multiplyAdjacent(Vector (&sum)[kVectors][kPixels], const float* input,
                                                    const float* weights, const std::int32_t* lanes,
                                                    const std::int32_t* offsets, int count) {
  constexpr int kFrom = kHasFirst || kPixels == 1 ? 0 : 1;
  constexpr int kTo = (kPixels - 1) * kStride + kTaps - (kHasLast ? 0 : 1);
  const std::ptrdiff_t tap = std::ptrdiff_t{count} * blockLength;
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      Vector w[kTaps];
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t) w[t] = load(weights + t * tap + v * TACC_LANES);
      const Lanes which = lanesOf<kPermutes>(lanes, i * blockLength + v * TACC_LANES);
      const float* const from = kVectors == 1 ? input : input + offsets[v];
#pragma GCC unroll 32
      for (int column = kFrom; column < kTo; ++column) {
        const Vector x = taken<kPermutes>(from + column * blockLength, which);
#pragma GCC unroll 16
        for (int t = 0; t < kTaps; ++t) {
          const int p = (column - t) / kStride;
          const bool isLeftOut = (!kHasFirst && t == 0 && p == 0) || (!kHasLast && t == kTaps - 1 && p == kPixels - 1);
          if (column >= t && (column - t) % kStride == 0 && p < kPixels && !isLeftOut) sum[v][p] += w[t] * x;
        }
      }
    }
    weights += blockLength;
    offsets += kVectors;
  }
}

/// The same, if `run` and those behind it are such taps; otherwise nothing.
template <bool kPermutes, int kTaps, int kStride, int kVectors, int kPixels>
[[gnu::always_inline]] inline bool tryAdjacent(Vector (&sum)[kVectors][kPixels], const TapRun* run, const float* input,
                                               const float* weights, const std::int32_t* lanes,
                                               const std::int32_t* offsets) {
  if (run->following < kTaps - 1 || (kTaps == 3 && run[1].mask != BorderMask::none)) return false;
  const BorderMask first = run->mask;
  const BorderMask last = run[kTaps - 1].mask;
  const int count = run->count;
  if (first == BorderMask::none && last == BorderMask::none) {
    multiplyAdjacent<kPermutes, kTaps, kStride, true, true>(sum, input, weights, lanes, offsets, count);
  } else if (first == BorderMask::first && last == BorderMask::none) {
    multiplyAdjacent<kPermutes, kTaps, kStride, false, true>(sum, input, weights, lanes, offsets, count);
  } else if (first == BorderMask::none && last == BorderMask::last) {
    multiplyAdjacent<kPermutes, kTaps, kStride, true, false>(sum, input, weights, lanes, offsets, count);
  } else if (first == BorderMask::first && last == BorderMask::last) {
    multiplyAdjacent<kPermutes, kTaps, kStride, false, false>(sum, input, weights, lanes, offsets, count);
  } else {
    return false;
  }
  return true;
}

/// Fetches what lies some lines below the pixels that taps side by side read: where there is a stride hardware does not
/// look ahead far enough.
template <int kColumns>
[[gnu::always_inline]] inline void fetchBelow(const float* input, std::ptrdiff_t distance) {
  if (distance == 0) return;
#pragma GCC unroll 32
  for (int column = 0; column < kColumns; ++column) __builtin_prefetch(input + distance + column * blockLength);
}

/// Adds the runs of a tile. kPixelStride 0: as the call says.
template <bool kPermutes, int kPixelStride, int kVectors, int kPixels>
[[gnu::always_inline]] inline void addPermutedRuns(const TileCall& call, const float* tileInput,
                                                   Vector (&sum)[kVectors][kPixels]) {
  const std::ptrdiff_t pixel = kPixelStride != 0 ? kPixelStride : call.inputPixel;
  const TapRun* const end = call.runs + call.runCount;
  for (const TapRun* run = call.runs; run != end; ++run) {
    const float* const input = tileInput + run->input;
    const float* const weights = call.weights + run->weights;
    const std::int32_t* const lanes = kPermutes ? call.lanes + run->weights : nullptr;
    const std::int32_t* const offsets = call.offsets + run->weights / TACC_LANES;
    const int count = run->count;
    if constexpr (kPixelStride != 0) {
      constexpr int kStride = kPixelStride / blockLength;
      if constexpr (kStride == 2) fetchBelow<kPixels * kStride>(input, call.fetchDistance);
      if (tryAdjacent<kPermutes, 3, kStride>(sum, run, input, weights, lanes, offsets)) {
        run += 2;
        continue;
      }
      if (kStride == 1 && tryAdjacent<kPermutes, 2, kStride>(sum, run, input, weights, lanes, offsets)) {
        run += 1;
        continue;
      }
    }
    switch (run->mask) {
      case BorderMask::none:
        multiplyPermuted<kPermutes, 0, kPixels>(sum, input, pixel, weights, lanes, offsets, count);
        break;
      case BorderMask::first:
        multiplyPermuted<kPermutes, 1, kPixels>(sum, input, pixel, weights, lanes, offsets, count);
        break;
      case BorderMask::firstTwo:
        multiplyPermuted<kPermutes, 2, kPixels>(sum, input, pixel, weights, lanes, offsets, count);
        break;
      case BorderMask::last:
        multiplyPermuted<kPermutes, 0, kPixels - 1>(sum, input, pixel, weights, lanes, offsets, count);
        break;
      case BorderMask::lastTwo:
        multiplyPermuted<kPermutes, 0, kPixels - 2>(sum, input, pixel, weights, lanes, offsets, count);
        break;
      default:  // mostMaskedOfStride
        break;
    }
  }
}

template <int kPixels, int kPixelStride>
void permutedTile(const TileCall& given) {
  CallInKernel call = given;
  constexpr int kVectors = blockLength / TACC_LANES;
  if constexpr (canTakeOne) {
    if (call.lanes == nullptr) {
      forEachTile<kVectors, kPixels>(
          call, [&](auto& sum, const float* input)
                    __attribute__((always_inline)) { addPermutedRuns<false, kPixelStride>(call, input, sum); });
      return;
    }
  }
  forEachTile<kVectors, kPixels>(
      call, [&](auto& sum, const float* input)
                __attribute__((always_inline)) { addPermutedRuns<true, kPixelStride>(call, input, sum); });
}

/// A gradient tile of one block, whose rows are permutations.
template <int kRows>
void permutedGradient(const GradientCall& call) {
  constexpr int kVectors = blockLength / TACC_LANES;
  constexpr int kSets = gradientSets(kRows);
  for (int v = 0; v < kVectors; ++v) {
    Vector sum[kSets][kRows];
    Lanes lanes[kRows];
    std::ptrdiff_t offsets[kRows];
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (int set = 0; set < kSets; ++set) sum[set][row] = Vector{};
      lanes[row] = loadLanes(call.lanes + row * blockLength + v * TACC_LANES);
      offsets[row] = kVectors == 1 ? 0 : call.offsets[row * kVectors + v];
    }
    for (int image = 0; image < call.images; ++image) {
      for (int line = 0; line < call.lines; ++line) {
        const float* input = call.input + image * call.inputImage + line * call.inputLine;
        const float* from = call.gradient + image * call.gradientImage + line * call.gradientLine + v * TACC_LANES;
        const auto addPixel = [&](Vector(&to)[kRows]) __attribute__((always_inline)) {
          if (call.inputAhead != 0) {
            __builtin_prefetch(input + call.inputAhead, 0, 2);
            __builtin_prefetch(from + call.gradientAhead, 0, 2);
          }
          const Vector g = load(from);
#pragma GCC unroll 16
          for (int row = 0; row < kRows; ++row) to[row] += g * permuted(input + offsets[row], lanes[row]);
          input += call.inputPixel;
          from += blockLength;
        };
        int left = call.pixels;
        for (; left >= kSets; left -= kSets) {
#pragma GCC unroll 4
          for (int set = 0; set < kSets; ++set) addPixel(sum[set]);
        }
        for (; kSets > 1 && left > 0; --left) addPixel(sum[0]);
      }
    }
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (int set = 1; set < kSets; ++set) sum[0][row] += sum[set][row];
      float* const to = call.output + row * call.outputRow + v * TACC_LANES;
      if (call.accumulate) sum[0][row] += load(to);
      store(to, sum[0][row]);
    }
  }
}

/// Three taps of `kRows` rows each, side by side: what is permuted, or read for all lanes where these take the same
/// value (kIsUniform), is multiplied with the gradients of all pixels that it belongs to. Lines are whole; the first
/// tap reads `shift` pixels before the output's. The sums of the taps are outputBlock apart.
template <int kRows, int kStride, bool kIsUniform = false>
void permutedGradientThree(const GradientCall& call) {
  constexpr int kVectors = blockLength / TACC_LANES;
  for (int v = 0; v < kVectors; ++v) {
    Vector sum[3][kRows];
    Lanes lanes[kRows];
    std::ptrdiff_t offsets[kRows];
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      sum[0][row] = sum[1][row] = sum[2][row] = Vector{};
      const std::int32_t* const ofRow = call.lanes + row * blockLength + v * TACC_LANES;
      lanes[row] = loadLanes(ofRow);
      offsets[row] = (kVectors == 1 ? 0 : call.offsets[row * kVectors + v]) + (kIsUniform ? *ofRow : 0);
    }
    const auto valueOf = [&](const float* input, int row) __attribute__((always_inline)) {
      const float* const from = input + offsets[row];
      return kIsUniform ? broadcast(*from) : permuted(from, lanes[row]);
    };
    for (int line = 0; line < call.lines; ++line) {
      const float* input = call.input + line * call.inputLine;
      const float* const from = call.gradient + line * call.gradientLine + v * TACC_LANES;
      const auto gradientAt = [&](int pixel) __attribute__((always_inline)) {
        return pixel >= 0 && pixel < call.pixels ? load(from + pixel * std::ptrdiff_t{blockLength}) : Vector{};
      };
      if constexpr (kStride == 1) {
        Vector last = gradientAt(call.shift - 2);
        Vector middle = gradientAt(call.shift - 1);
        for (int pixel = 0; pixel < call.inputPixels; ++pixel, input += blockLength) {
          const Vector first = gradientAt(call.shift + pixel);
#pragma GCC unroll 16
          for (int row = 0; row < kRows; ++row) {
            const Vector x = valueOf(input, row);
            sum[0][row] += first * x;
            sum[1][row] += middle * x;
            sum[2][row] += last * x;
          }
          last = middle;
          middle = first;
        }
      } else {
        // The last tap of a pixel reads what the first one of the next pixel does.
        input -= call.shift * std::ptrdiff_t{blockLength};
        const std::ptrdiff_t nextLine = call.inputLine;
        const float* gradientAhead = from + call.gradientAhead;
        Vector last{};
        const auto addPixel = [&](const Vector& first, bool hasOuter, bool hasMiddle) __attribute__((always_inline)) {
          __builtin_prefetch(input + nextLine);
          __builtin_prefetch(input + nextLine + blockLength);
          if (call.inputAhead != 0) {
            __builtin_prefetch(input + call.inputAhead, 0, 2);
            __builtin_prefetch(input + call.inputAhead + blockLength, 0, 2);
            __builtin_prefetch(gradientAhead, 0, 2);
            gradientAhead += blockLength;
          }
          if (hasOuter) {
#pragma GCC unroll 16
            for (int row = 0; row < kRows; ++row) {
              const Vector x = valueOf(input, row);
              sum[0][row] += first * x;
              sum[2][row] += last * x;
            }
          }
          if (hasMiddle) {
#pragma GCC unroll 16
            for (int row = 0; row < kRows; ++row) sum[1][row] += first * valueOf(input + blockLength, row);
          }
          last = first;
          input += 2 * blockLength;
        };
        const auto addEnds = [&](int pixel, int end) __attribute__((always_inline)) {
          for (int column = 2 * pixel - call.shift; pixel < end; ++pixel, column += 2) {
            addPixel(gradientAt(pixel), column >= 0 && column < call.inputPixels,
                     column >= -1 && column + 1 < call.inputPixels);
          }
        };
        const int inside = (call.inputPixels + call.shift) / 2;
        const int end = inside < call.pixels ? inside : call.pixels;
        const int begin = (call.shift + 1) / 2 < end ? (call.shift + 1) / 2 : end;
        addEnds(0, begin);
        const float* gradient = from + begin * std::ptrdiff_t{blockLength};
        for (int pixel = begin; pixel < end; ++pixel, gradient += blockLength) addPixel(load(gradient), true, true);
        addEnds(end, call.pixels + 1);
      }
    }
#pragma GCC unroll 3
    for (int tap = 0; tap < 3; ++tap) {
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row) {
        float* const to = call.output + tap * call.outputBlock + row * call.outputRow + v * TACC_LANES;
        store(to, load(to) + sum[tap][row]);
      }
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
