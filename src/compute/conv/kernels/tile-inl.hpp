// The tile kernel: blocks x pixels accumulators in registers, one broadcast per pixel and input value. Included by one
// file per instruction set, which defines TACC_LANES and TACC_CONV_ISA first; everything in here belongs to that file.
#pragma once

#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/pixel_values-inl.hpp"
#include "compute/conv/kernels/sums_in_place-inl.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Weights are fetched into the L1 cache this many rows before they are used: they come from the second one.
constexpr int weightRowsAhead = 16;

/// Beside the 20 instructions of a step of short vectors one more is felt, and hardware that looks ahead along weights
/// is enough, but for tiles so small that weights are most of what they read.
constexpr bool fetchesWeightRows(int vectors, int pixels) { return TACC_LANES != 8 || vectors * pixels <= 8; }

/// The products of one input value of the pixels [kFrom, kTo). Every accumulator stays in its register: the loops are
/// unrolled completely.
template <int kVectors, int kPixels, int kFrom, int kTo, class Values>
[[gnu::always_inline]] inline void multiplyValue(Vector (&sum)[kVectors][kPixels], const Values& values,
                                                 const float* weights) {
  if constexpr (fetchesWeightRows(kVectors, kPixels)) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors * TACC_LANES; v += 16) {
      __builtin_prefetch(weights + weightRowsAhead * blocksOf(kVectors) * blockLength + v);
    }
  }
  if constexpr (kTo - kFrom < kVectors) {  // whatever are fewer stay in registers
    Vector x[kPixels];
    values.template forEach<kFrom, kTo>([&](int p, Vector value) __attribute__((always_inline)) { x[p] = value; });
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Vector w = load(weights + v * TACC_LANES);
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) addProductInPlace(sum[v][p], w, x[p]);
    }
    return;
  }
  // Weights that find no register beside the accumulators are read again by every multiply-add.
  constexpr int kHeld = heldWeights(TACC_REGISTERS, kVectors, kPixels);
  Vector w[kHeld];
#pragma GCC unroll 16
  for (int v = 0; v < kHeld; ++v) w[v] = load(weights + v * TACC_LANES);
  values.template forEach<kFrom, kTo>([&](int p, Vector x) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      if (v < kHeld) {
        addProductInPlace(sum[v][p], w[v], x);
      } else {
        addProductInPlace(sum[v][p], weights + v * TACC_LANES, x);
      }
    }
    if constexpr (kHeld < kVectors) asm volatile("" ::: "memory");  // so that the compiler does not keep them after all
  });
}

/// Tiles of few sums, which would wait for themselves, have them twice: for every other value.
constexpr bool hasTwoSums(int vectors, int pixels) { return vectors * pixels <= 6; }

/// What a run brings closer while it multiplies, a line of the cache for each of its steps.
enum class Ahead { nothing, input, weights, both };

/// Steps of a run in a row, between which places do not move. A step of short vectors is 12 multiply-adds and 8 loads,
/// beside which moving every place in each takes a quarter of what a core can start; where another one shares the core,
/// that is time.
constexpr int stepsInRow = TACC_LANES == 8 ? 4 : 1;
/// Lines of the input that are fetched for so many steps: a tile has at most eight pixels, a run 16 steps.
constexpr int linesInRow = 2;

/// One run for the pixels [kFrom, kTo). kPixelStride 0: as the call says.
template <int kPixelStride, int kFrom, int kTo, Ahead kAhead, int kVectors, int kPixels>
[[gnu::always_inline]] inline void multiplyRun(Vector (&sum)[kVectors][kPixels], Vector (&more)[kVectors][kPixels],
                                               const TileCall& call, const float* tileInput, const TapRun& run,
                                               const float*& weightsAhead) {
  constexpr int kRow = blocksOf(kVectors) * blockLength;
  const std::ptrdiff_t pixel = kPixelStride != 0 ? kPixelStride : call.inputPixel;
  const float* input = tileInput + run.input;
  const float* weights = call.weights + run.weights * (kRow / blockLength);
  if (call.fetchDistance != 0 && run.reachesFurthest) {
    const float* const later = input + call.fetchDistance;
    if (call.fetchStep == 1) {
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) __builtin_prefetch(later + p * pixel, 0, 2);
    } else {
      for (int p = call.fetchFirst; p < kPixels; p += call.fetchStep) __builtin_prefetch(later + p * pixel, 0, 2);
    }
  }
  constexpr bool kFetchesInput = kAhead == Ahead::input || kAhead == Ahead::both;
  constexpr bool kFetchesWeights = kAhead == Ahead::weights || kAhead == Ahead::both;
  const float* next = kFetchesInput ? tileInput + run.next : nullptr;
  const float* ahead = weightsAhead;
  if constexpr (kFetchesWeights) weightsAhead += run.count * std::ptrdiff_t{blockLength};
  const auto step = [&](auto& to) __attribute__((always_inline)) {
    multiplyValue<kVectors, kPixels, kFrom, kTo>(to, PixelValues<kPixelStride>(input, pixel), weights);
    if constexpr (kFetchesInput) {
      __builtin_prefetch(next);
      next += pixel;
    }
    if constexpr (kFetchesWeights) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += blockLength;
    }
    ++input;
    weights += kRow;
  };
  int left = run.count;
  if constexpr (hasTwoSums(kVectors, kPixels)) {
    for (; left > 1; left -= 2) {
      step(sum);
      step(more);
    }
  } else if constexpr (stepsInRow > 1 && kFrom == 0 && kTo == kPixels) {
    MovingPixels<kPixelStride, kPixels> pixels(input, pixel);
    for (; left >= stepsInRow; left -= stepsInRow) {
      const auto stepInRow = [&]<int kStep>(std::integral_constant<int, kStep>) __attribute__((always_inline)) {
        multiplyValue<kVectors, kPixels, 0, kPixels>(sum, pixels.template value<kStep>(), weights + kStep * kRow);
        if constexpr (kFetchesWeights) __builtin_prefetch(ahead + kStep * blockLength, 0, 2);
      };
      [&]<int... kStep>(std::integer_sequence<int, kStep...>) __attribute__((always_inline)) {
        (stepInRow(std::integral_constant<int, kStep>{}), ...);
      }
      (std::make_integer_sequence<int, stepsInRow>());
      if constexpr (kFetchesInput) {
#pragma GCC unroll 2
        for (int i = 0; i < linesInRow; ++i) {
          __builtin_prefetch(next);
          next += pixel;
        }
      }
      if constexpr (kFetchesWeights) ahead += stepsInRow * blockLength;
      pixels.moveOn(stepsInRow);
      weights += stepsInRow * kRow;
    }
    input = pixels.first();
  }
  for (; left > 0; --left) step(sum);
}

/// Brings both sums together.
template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void joinSums(Vector (&sum)[kVectors][kPixels], Vector (&more)[kVectors][kPixels]) {
  if constexpr (hasTwoSums(kVectors, kPixels)) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) sum[v][p] += more[v][p];
    }
  }
}

template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void clearSums(Vector (&more)[kVectors][kPixels]) {
  if constexpr (hasTwoSums(kVectors, kPixels)) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) more[v][p] = Vector{};
    }
  }
}

/// One run whose mask leaves out some pixels.
template <int kPixelStride, int kVectors, int kPixels>
[[gnu::always_inline]] inline void multiplyMasked(Vector (&sum)[kVectors][kPixels], Vector (&more)[kVectors][kPixels],
                                                  const TileCall& call, const float* tileInput, const TapRun& run,
                                                  const float*& weightsAhead) {
  constexpr int kMost = kPixelStride == blockPixel ? mostMasked : mostMaskedOfStride;
  const auto without = [&]<int kFirst, int kLast>() __attribute__((always_inline)) {
    if constexpr (kFirst <= kMost && kLast <= kMost && kFirst + kLast < kPixels) {
      multiplyRun<kPixelStride, kFirst, kPixels - kLast, Ahead::nothing>(sum, more, call, tileInput, run, weightsAhead);
    }
  };
  switch (run.mask) {
    case BorderMask::none:
      break;
    case BorderMask::first:
      without.template operator()<1, 0>();
      break;
    case BorderMask::firstTwo:
      without.template operator()<2, 0>();
      break;
    case BorderMask::firstThree:
      without.template operator()<3, 0>();
      break;
    case BorderMask::firstFour:
      without.template operator()<4, 0>();
      break;
    case BorderMask::firstFive:
      without.template operator()<5, 0>();
      break;
    case BorderMask::last:
      without.template operator()<0, 1>();
      break;
    case BorderMask::lastTwo:
      without.template operator()<0, 2>();
      break;
    case BorderMask::lastThree:
      without.template operator()<0, 3>();
      break;
    case BorderMask::lastFour:
      without.template operator()<0, 4>();
      break;
    case BorderMask::lastFive:
      without.template operator()<0, 5>();
      break;
  }
}

template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void beginTile(const TileCall& call, Vector (&sum)[kVectors][kPixels]) {
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const Vector start = call.bias != nullptr ? load(call.bias + v * TACC_LANES) : Vector{};
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) sum[v][p] = start;
  }
}

/// Where another pixel begins behind the last channel: of the last block there is a part.
template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void writeCut(const TileCall& call, Vector (&sum)[kVectors][kPixels], float* output,
                                            const float* addend, std::ptrdiff_t block, std::ptrdiff_t pixel) {
  constexpr int perBlock = vectorsOfBlock;
  constexpr int kFirstOfLast = (blocksOf(kVectors) - 1) * perBlock;
  int channels = call.lastChannels;
  asm volatile("" : "+r"(channels));  // or else masks are computed before the tile's products
  if (addend != nullptr) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const PartOfVector part(channels - (v % perBlock) * TACC_LANES);
      const float* const from = addend + (v / perBlock) * block + (v % perBlock) * TACC_LANES;
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p)
        sum[v][p] += v < kFirstOfLast ? load(from + p * pixel) : part.load(from + p * pixel);
    }
  }
  activate<kVectors * kPixels>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i / kPixels][i % kPixels]; });
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const PartOfVector part(channels - (v % perBlock) * TACC_LANES);
    float* const to = output + (v / perBlock) * block + (v % perBlock) * TACC_LANES;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (v < kFirstOfLast) {
        store(to + p * pixel, sum[v][p]);
      } else {
        part.store(to + p * pixel, sum[v][p]);
      }
    }
  }
}

/// kPixelStride 0: `pixel`, from one of the output to the next.
template <int kPixelStride, int kVectors, int kPixels>
[[gnu::always_inline]] inline void writeTile(const TileCall& call, Vector (&sum)[kVectors][kPixels], std::ptrdiff_t at,
                                             std::ptrdiff_t pixel) {
#ifdef TACC_BLOCK_PIXEL
  if (call.writesPairs) {
    writePairs(call, sum, at, pixel);
    return;
  }
#endif
  constexpr int perBlock = vectorsOfBlock;
  constexpr int kBlocks = blocksOf(kVectors);
  std::ptrdiff_t block = call.outputBlock;
  float* output = call.output + at;
  // Or else the places of all pixels are computed for the first tile already, and spilled.
  asm("" : "+r"(output), "+r"(block), "+r"(pixel));
  if constexpr (kPixelStride != 0) pixel = kPixelStride;
  if constexpr (kPixelStride == 0) {
    if (call.lastChannels != 0) {
      writeCut(call, sum, output, call.addend == nullptr ? nullptr : call.addend + at, block, pixel);
      return;
    }
  }
  if (call.addend != nullptr) {
    const float* addend = call.addend + at;
    asm("" : "+r"(addend));
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const float* const from = addend + (v / perBlock) * block + (v % perBlock) * TACC_LANES;
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) sum[v][p] += load(from + p * pixel);
    }
  }
  activate<kVectors * kPixels>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i / kPixels][i % kPixels]; });
  if (call.isNonTemporal) {
#pragma GCC unroll 16
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 16
        for (int v = 0; v < perBlock; ++v) {  // whole lines of the cache
          const int of = b * perBlock + v;
          stream(output + b * block + p * pixel + v * TACC_LANES, of < kVectors ? sum[of][p] : Vector{});
        }
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    float* const to = output + (v / perBlock) * block + (v % perBlock) * TACC_LANES;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) store(to + p * pixel, sum[v][p]);
  }
  if constexpr (kVectors % perBlock != 0) {  // no channels
    float* const rest = output + (kBlocks - 1) * block + TACC_LANES;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) store(rest + p * pixel, Vector{});
  }
}

/// What kernels read their call from. What could have changed with a store is read again behind it, and the next tile
/// then begins some fifteen cycles late: a fifth of one of AVX2's that sums 16 channels. So there it is a copy of the
/// kernel's own. AVX-512's tiles are longer, and products of small matrices lost 2 % by the copying.
#if TACC_LANES == 16
using CallInKernel = const TileCall&;
#else
using CallInKernel = const TileCall;
#endif

/// All tiles of a call: multiply(sum, input) adds the products of the one whose pixel 0 is at `input`.
template <int kVectors, int kPixels, class Multiply>
[[gnu::always_inline]] inline void forEachTile(const TileCall& call, const Multiply& multiply) {
  for (int t = 0, count = call.tiles; t < count; ++t) {
    Vector sum[kVectors][kPixels];
    beginTile(call, sum);
    multiply(sum, call.input + t * call.inputTile);
    const std::ptrdiff_t pixel = call.outputPixel;
    if (pixel == blockLength && call.lastChannels == 0) {
      writeTile<blockLength>(call, sum, t * call.outputTile, pixel);
    } else {
      writeTile<0>(call, sum, t * call.outputTile, pixel);
    }
  }
}

/// kPixelStride 0: as the call says.
template <int kVectors, int kPixels, int kPixelStride>
void scatteredTile(const TileCall& given) {
  CallInKernel call = given;
  forEachTile<kVectors, kPixels>(
      call, [&](auto& sum, const float* input) __attribute__((always_inline)) {
        const std::ptrdiff_t pixel = kPixelStride != 0 ? kPixelStride : call.inputPixel;
        const float* weights = call.weights;
        Vector more[kVectors][kPixels];
        clearSums(more);
        const std::ptrdiff_t* value = call.values;
        const std::ptrdiff_t* const end = value + call.valueCount;
        const auto step = [&](auto& to) __attribute__((always_inline)) {
          const float* at = input + *value++;
          asm("" : "+r"(at));  // one address, not one for each pixel
          multiplyValue<kVectors, kPixels, 0, kPixels>(to, PixelValues<kPixelStride>(at, pixel), weights);
          weights += kVectors * TACC_LANES;
        };
        if constexpr (hasTwoSums(kVectors, kPixels)) {
          while (end - value > 1) {
            step(sum);
            step(more);
          }
        }
        while (value != end) step(sum);
        joinSums(sum, more);
      });
}

/// kPixelStride 0: as the call says.
template <int kVectors, int kPixels, int kPixelStride>
void tile(const TileCall& given) {
  CallInKernel call = given;
  const float* ahead = *call.weightsAhead;
  forEachTile<kVectors, kPixels>(
      call, [&](auto& sum, const float* input) __attribute__((always_inline)) {
        Vector more[kVectors][kPixels];
        clearSums(more);
        const TapRun* const end = call.runs + call.runCount;
        for (const TapRun* run = call.runs; run != end; ++run) {
          switch (run->mask) {
            case BorderMask::none:
              if (ahead < call.weightsEnd) {
                if (run->fetchesNext) {
                  multiplyRun<kPixelStride, 0, kPixels, Ahead::both>(sum, more, call, input, *run, ahead);
                } else {
                  multiplyRun<kPixelStride, 0, kPixels, Ahead::weights>(sum, more, call, input, *run, ahead);
                }
              } else if (run->fetchesNext) {
                multiplyRun<kPixelStride, 0, kPixels, Ahead::input>(sum, more, call, input, *run, ahead);
              } else {
                multiplyRun<kPixelStride, 0, kPixels, Ahead::nothing>(sum, more, call, input, *run, ahead);
              }
              break;
            default:
              multiplyMasked<kPixelStride>(sum, more, call, input, *run, ahead);
              break;
          }
        }
        joinSums(sum, more);
      });
  *call.weightsAhead = ahead;
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
