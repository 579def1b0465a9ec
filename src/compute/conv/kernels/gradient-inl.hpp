// The gradient kernel: a block of weights' gradients stays in registers while all pixels of an image's part go by.
// Included by one file per instruction set, as tile-inl.hpp.
#pragma once

#include <type_traits>

#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Both operands are fetched into the L1 cache this many steps before they are used, unless the call wants it sooner:
/// they come from the second one, and each block of channels is in another page, where no hardware looks ahead.
constexpr int stepsAhead = 8;

/// Where vector v of a tile is, from block to block. Of a block and a half, the second one is at `second`.
template <int kVectors>
[[gnu::always_inline]] constexpr std::ptrdiff_t placeOf(int v, std::ptrdiff_t block, std::ptrdiff_t second) {
  if constexpr (kVectors % vectorsOfBlock != 0) return v == 0 ? 0 : v == 1 ? second : block;
  return (v / vectorsOfBlock) * block + (v % vectorsOfBlock) * TACC_LANES;
}

[[gnu::always_inline]] inline std::ptrdiff_t placeOfSecond(const GradientCall& call, std::ptrdiff_t block) {
  std::ptrdiff_t second = call.beginsWithin ? block - TACC_LANES : TACC_LANES;
  asm("" : "+r"(second));  // found once, not for every pixel
  return second;
}

/// How far ahead of where it reads a tile fetches both operands, in floats.
struct FetchedAhead {
  std::ptrdiff_t input, gradient;
};

/// Of short vectors a pixel is 12 multiply-adds and 7 loads, beside which fetching 3 lines of the cache is an eighth of
/// what a core starts. Pixels that follow each other in both operands, many of them, hardware brings from the L2 cache
/// in time. Tiles behind the first one, all of which read no more lines than the L1 cache has room for, find them
/// there; where pixels fall on few places of that cache, those fetched would drive out what is read before them.
constexpr bool hasTilesOfNear(int vectors, int rows) { return TACC_LANES == 8 && vectors * rows >= 8; }
constexpr std::ptrdiff_t nearLines = 384;

[[gnu::always_inline]] inline bool doPixelsFollow(const GradientCall& call) {
  constexpr int many = 128;
  return call.inputPixel == blockLength && call.gradientPixel == blockLength &&
         (call.images == 1 || call.pixels >= many);
}

/// Lines of the cache that a tile reads.
[[gnu::always_inline]] inline std::ptrdiff_t linesOfTile(const GradientCall& call, int blocks) {
  return std::ptrdiff_t{call.images} * call.lines * call.pixels * (1 + blocks);
}

/// Rows lie side by side.
template <int kVectors, int kRows, bool kFetches>
[[gnu::always_inline]] inline void gradientTile(const GradientCall& call, FetchedAhead ahead, const float* tileInput,
                                                float* output) {
  constexpr int kBlocks = blocksOf(kVectors);
  constexpr int kSets = gradientSets(kVectors * kRows);
  Vector sums[kSets][kVectors][kRows];
#pragma GCC unroll 4
  for (int set = 0; set < kSets; ++set) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int c = 0; c < kRows; ++c) sums[set][v][c] = Vector{};
    }
  }
  const std::ptrdiff_t block = call.gradientBlock;
  const std::ptrdiff_t second = kVectors % vectorsOfBlock != 0 ? placeOfSecond(call, block) : 0;
  const std::ptrdiff_t step = call.inputPixel;
  const std::ptrdiff_t pixelOfGradient = call.gradientPixel;
  // What the sums are added to is often in no near cache: it was used for other pixels, with all else of the result.
  if (call.accumulate) {
#pragma GCC unroll 16
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 16
      for (int c = 0; c < kRows; ++c) __builtin_prefetch(output + b * call.outputBlock + c * call.outputRow, 1);
    }
  }
  for (int image = 0; image < call.images; ++image) {
    for (int line = 0; line < call.lines; ++line) {
      const float* input = tileInput + image * call.inputImage + line * call.inputLine;
      const float* from = call.gradient + image * call.gradientImage + line * call.gradientLine;
      const auto addStep = [&]<bool kIsWhole>(Vector(&sum)[kVectors][kRows], std::bool_constant<kIsWhole>)
          __attribute__((always_inline)) {
        if constexpr (kFetches) {
          __builtin_prefetch(input + ahead.input);
#pragma GCC unroll 16
          for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(from + b * block + ahead.gradient);
        }
        Vector g[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          g[v] = load(from + placeOf<kVectors>(v, block, second));
          if constexpr (!kIsWhole) g[v] = firstOfPairs(g[v]);
        }
#pragma GCC unroll 16
        for (int c = 0; c < kRows; ++c) {
          const float& value = input[c];
          if constexpr (kVectors == 1 && kIsWhole) {
            sum[0][c] = addProductWith(sum[0][c], g[0], value);
            continue;
          }
          Vector x = broadcast(value);
          if constexpr (!kIsWhole) x = firstOfPairs(x);
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) sum[v][c] = addProduct(sum[v][c], g[v], x);
        }
        input += pixelsOfStep * step;
        from += pixelsOfStep * pixelOfGradient;
      };
      int left = call.pixels / pixelsOfStep;
      for (; left >= kSets; left -= kSets) {
#pragma GCC unroll 4
        for (int set = 0; set < kSets; ++set) addStep(sums[set], std::true_type{});
      }
      for (; kSets > 1 && left > 0; --left) addStep(sums[0], std::true_type{});
      if constexpr (pixelsOfStep > 1) {
        // Of the last pair the second pixel is no part of the line, or of the image, whatever is there.
        if (call.pixels % pixelsOfStep != 0) addStep(sums[0], std::false_type{});
      }
    }
  }
  auto& sum = sums[0];
#pragma GCC unroll 4
  for (int set = 1; set < kSets; ++set) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int c = 0; c < kRows; ++c) sum[v][c] += sums[set][v][c];
    }
  }
  // Read once: the compiler cannot know that no result is stored over the call.
  const std::ptrdiff_t row = call.outputRow;
  const std::ptrdiff_t outputBlock = call.outputBlock;
  const std::ptrdiff_t outputSecond = kVectors % vectorsOfBlock != 0 ? placeOfSecond(call, outputBlock) : 0;
  if (call.accumulate) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const float* const sofar = output + placeOf<kVectors>(v, outputBlock, outputSecond);
#pragma GCC unroll 16
      for (int c = 0; c < kRows; ++c) sum[v][c] += load(sofar + c * row);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    float* const to = output + placeOf<kVectors>(v, outputBlock, outputSecond);
    if (call.isNonTemporal) {
#pragma GCC unroll 16
      for (int c = 0; c < kRows; ++c) stream(to + c * row, sum[v][c]);
    } else {
#pragma GCC unroll 16
      for (int c = 0; c < kRows; ++c) store(to + c * row, sum[v][c]);
    }
  }
  if (kVectors % vectorsOfBlock != 0 && call.endsWithin && !call.accumulate) {
    float* const rest = output + (kBlocks - 1) * outputBlock + TACC_LANES;
#pragma GCC unroll 16
    for (int c = 0; c < kRows; ++c) store(rest + c * row, Vector{});
  }
}

template <int kVectors, int kRows>
void gradient(const GradientCall& call) {
  float* output = call.output;
  const std::ptrdiff_t outputTile = kRows * call.outputRow;
  const FetchedAhead near = {stepsAhead * pixelsOfStep * call.inputPixel,
                             stepsAhead * pixelsOfStep * call.gradientPixel};
  const bool isNear = hasTilesOfNear(kVectors, kRows) && linesOfTile(call, blocksOf(kVectors)) <= nearLines;
  const bool areNext = hasTilesOfNear(kVectors, kRows) && doPixelsFollow(call);
  // The first tile that reads a line fetches what is read after this call, if that is wanted.
  std::ptrdiff_t gradientAhead = call.gradientAhead != 0 ? call.gradientAhead : near.gradient;
  bool fetchesGradient = call.gradientAhead != 0;
  for (int block = 0, blocks = call.inputBlocks; block < blocks; ++block) {
    const float* input = call.input + block * call.inputBlock;
    std::ptrdiff_t inputAhead = call.inputAhead != 0 ? call.inputAhead : near.input;
    for (int part = 0, parts = call.parts; part < parts; ++part, input += kRows, output += outputTile) {
      if constexpr (hasTilesOfNear(kVectors, kRows)) {
        const bool isWanted = part == 0 && (fetchesGradient || call.inputAhead != 0);
        if (areNext ? !isWanted : part > 0 && isNear) {
          gradientTile<kVectors, kRows, false>(call, near, input, output);
          continue;
        }
      }
      gradientTile<kVectors, kRows, true>(call, {inputAhead, gradientAhead}, input, output);
      inputAhead = near.input;
      gradientAhead = near.gradient;
      fetchesGradient = false;
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
