// The tile kernel: blocks x pixels accumulators in registers, one broadcast per pixel and input value. Included by one
// file per instruction set, which defines TACC_LANES and TACC_CONV_ISA first; everything in here belongs to that file.
#pragma once

#include "compute/conv/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Weights are fetched into the first cache this many rows before they are used: they come from the second one.
constexpr int weightRowsAhead = 8;

/// The products of one input value of the pixels [kFrom, kTo). Every accumulator stays in its register: the loops are
/// unrolled completely.
template <int kVectors, int kPixels, int kFrom, int kTo>
[[gnu::always_inline]] inline void multiplyValue(Vector (&sum)[kVectors][kPixels], const float* input,
                                                 std::ptrdiff_t pixel, const float* weights) {
#pragma GCC unroll 16
  for (int v = 0; v < kVectors * TACC_LANES; v += 16) {
    __builtin_prefetch(weights + weightRowsAhead * kVectors * TACC_LANES + v);
  }
  if constexpr (kTo - kFrom < kVectors) {  // whatever are fewer stay in registers
    Vector x[kPixels];
#pragma GCC unroll 16
    for (int p = kFrom; p < kTo; ++p) x[p] = broadcast(input[p * pixel]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Vector w = load(weights + v * TACC_LANES);
#pragma GCC unroll 16
      for (int p = kFrom; p < kTo; ++p) sum[v][p] += w * x[p];
    }
    return;
  }
  Vector w[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * TACC_LANES);
#pragma GCC unroll 16
  for (int p = kFrom; p < kTo; ++p) {
    const Vector x = broadcast(input[p * pixel]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[v][p] += w[v] * x;
  }
}

/// One run for the pixels [kFrom, kTo).
template <int kVectors, int kPixels, int kFrom, int kTo>
[[gnu::always_inline]] inline void multiplyRun(Vector (&sum)[kVectors][kPixels], const float* input,
                                               std::ptrdiff_t pixel, const float* weights, int count,
                                               std::ptrdiff_t ahead) {
  // What the next tile reads: each block of channels is in another page, where no hardware looks ahead.
#pragma GCC unroll 16
  for (int p = kFrom; p < kTo; ++p) __builtin_prefetch(input + (kPixels + p) * pixel, 0, 2);
  for (int i = 0; i < count; ++i) {
    multiplyValue<kVectors, kPixels, kFrom, kTo>(sum, input, pixel, weights);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors * TACC_LANES; v += 16) __builtin_prefetch(weights + ahead + v, 0, 2);
    ++input;
    weights += kVectors * TACC_LANES;
  }
}

template <int kBlocks, int kPixels, int kVectors>
[[gnu::always_inline]] inline void beginTile(const TileCall& call, Vector (&sum)[kVectors][kPixels]) {
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const Vector start = call.bias != nullptr ? load(call.bias + v * TACC_LANES) : Vector{};
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) sum[v][p] = start;
  }
}

template <int kBlocks, int kPixels, int kVectors>
[[gnu::always_inline]] inline void endTile(const TileCall& call, Vector (&sum)[kVectors][kPixels]) {
  constexpr int perBlock = blockLength / TACC_LANES;
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const std::ptrdiff_t at = (v / perBlock) * call.outputBlock + (v % perBlock) * TACC_LANES;
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      if (call.addend != nullptr) sum[v][p] += load(call.addend + at + p * call.outputPixel);
      if (call.relu) sum[v][p] = maximum(sum[v][p], Vector{});
      store(call.output + at + p * call.outputPixel, sum[v][p]);
    }
  }
}

template <int kBlocks, int kPixels>
void scatteredTile(const TileCall& call) {
  constexpr int kVectors = kBlocks * blockLength / TACC_LANES;
  Vector sum[kVectors][kPixels];
  beginTile<kBlocks>(call, sum);
  const std::ptrdiff_t pixel = call.inputPixel;
  const float* weights = call.weights;
  const std::ptrdiff_t* const end = call.values + call.valueCount;
  for (const std::ptrdiff_t* value = call.values; value != end; ++value, weights += kVectors * TACC_LANES) {
    multiplyValue<kVectors, kPixels, 0, kPixels>(sum, call.input + *value, pixel, weights);
  }
  endTile<kBlocks>(call, sum);
}

/// kPixelStride 0: as the call says.
template <int kBlocks, int kPixels, int kPixelStride>
void tile(const TileCall& call) {
  constexpr int kVectors = kBlocks * blockLength / TACC_LANES;
  Vector sum[kVectors][kPixels];
  beginTile<kBlocks>(call, sum);
  const std::ptrdiff_t pixel = kPixelStride != 0 ? kPixelStride : call.inputPixel;
  const TapRun* const end = call.runs + call.runCount;
  for (const TapRun* run = call.runs; run != end; ++run) {
    const float* const input = call.input + run->input;
    const float* const weights = call.weights + run->weights * kBlocks;
    const int count = run->count;
    const std::ptrdiff_t ahead = call.weightsAhead;
    switch (run->rim) {
      case Rim::none:
        multiplyRun<kVectors, kPixels, 0, kPixels>(sum, input, pixel, weights, count, ahead);
        break;
      case Rim::first:
        multiplyRun<kVectors, kPixels, 1, kPixels>(sum, input, pixel, weights, count, ahead);
        break;
      case Rim::firstTwo:
        multiplyRun<kVectors, kPixels, 2, kPixels>(sum, input, pixel, weights, count, ahead);
        break;
      case Rim::last:
        multiplyRun<kVectors, kPixels, 0, kPixels - 1>(sum, input, pixel, weights, count, ahead);
        break;
      case Rim::lastTwo:
        multiplyRun<kVectors, kPixels, 0, kPixels - 2>(sum, input, pixel, weights, count, ahead);
        break;
    }
  }
  endTile<kBlocks>(call, sum);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
