// The kernels of 1x1 convolutions in NCHW: vectors of pixels, as they lie in memory, and tiles that stay in registers.
// A product broadcasts the weights; a gradient of weights sums products of pixels in every lane, and the lanes at last.
// Included by one file per instruction set, as tile-inl.hpp.
#include <utility>

#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/lane_sums-inl.hpp"
#include "compute/conv/kernels/plain_kernels.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Vectors of a block, and rows for that many vectors: what registers hold beside the input and a weight.
constexpr int vectorsOfPlainBlock = plainBlock / TACC_LANES;
constexpr int plainRows(int blocks) {
  const int vectors = blocks * vectorsOfPlainBlock;
  const int rows = (TACC_REGISTERS - vectors - 1) / vectors;
  return rows < mostPlainRows ? rows : mostPlainRows;
}

template <int kBlocks, int kRows>
void plainProduct(const PlainProductCall& call) {
  constexpr int kVectors = kBlocks * vectorsOfPlainBlock;
  constexpr int kLine = 64 / int{sizeof(float)};  // of the cache
  Vector sum[kRows * kVectors];
#pragma GCC unroll 14
  for (int k = 0; k < kRows; ++k) {
    const Vector start = call.bias != nullptr ? broadcast(call.bias[k]) : Vector{};
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[k * kVectors + v] = start;
  }
  const float* input = call.input;
  const float* weights = call.weights;
  const std::ptrdiff_t inputLine = call.inputLine, nearAhead = call.nearAhead, farAhead = call.farAhead;
  const auto addValue = [&](const float* from, const float* weight) __attribute__((always_inline)) {
    Vector x[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) x[v] = load(from + v * TACC_LANES);
#pragma GCC unroll 3
    for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(from + nearAhead + b * kLine);
#pragma GCC unroll 14
    for (int k = 0; k < kRows; ++k) {
      const Vector w = broadcast(weight[k]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[k * kVectors + v] += w * x[v];
    }
  };
  int left = call.values;
  if (farAhead != 0) {
    for (; left > 0; --left) {
#pragma GCC unroll 3
      for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(input + farAhead + b * kLine, 0, 2);
      addValue(input, weights);
      input += inputLine;
      weights += kRows;
    }
  }
  // Of short vectors a value is 12 multiply-adds and 8 loads, beside which moving on is felt.
  if constexpr (TACC_LANES == 8) {
    for (; left >= 2; left -= 2) {
      addValue(input, weights);
      asm volatile("" : : : "memory");  // or else both are loaded at once, and there are no registers for it
      addValue(input + inputLine, weights + kRows);
      input += 2 * inputLine;
      weights += 2 * kRows;
    }
  }
  for (; left > 0; --left) {
    addValue(input, weights);
    input += inputLine;
    weights += kRows;
  }
  if (call.addend != nullptr) {
#pragma GCC unroll 14
    for (int k = 0; k < kRows; ++k) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sum[k * kVectors + v] += load(call.addend + k * call.outputLine + v * TACC_LANES);
    }
  }
  activate<kRows * kVectors>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i]; });
  const auto put = [&](const auto& putVector) __attribute__((always_inline)) {
#pragma GCC unroll 14
    for (int k = 0; k < kRows; ++k) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        putVector(call.output + k * call.outputLine + v * TACC_LANES, sum[k * kVectors + v]);
      }
    }
  };
  if (call.isNonTemporal) {
    put([](float* to, Vector value) { stream(to, value); });
  } else {
    put([](float* to, Vector value) { store(to, value); });
  }
}

template <int kOuts, int kIns>
void plainGradient(const PlainGradientCall& call) {
  constexpr int kSums = kOuts * kIns;
  constexpr int kWhole = (kSums + TACC_LANES - 1) / TACC_LANES * TACC_LANES;
  Vector sum[kWhole] = {};
  const float* gradient[kOuts];
  const float* input[kIns];
#pragma GCC unroll 6
  for (int k = 0; k < kOuts; ++k) gradient[k] = call.gradient + k * call.gradientLine;
#pragma GCC unroll 6
  for (int c = 0; c < kIns; ++c) input[c] = call.input + c * call.inputLine;
  const auto add = [&](std::ptrdiff_t x, const auto& loadPixels) __attribute__((always_inline)) {
    Vector g[kOuts];
#pragma GCC unroll 6
    for (int k = 0; k < kOuts; ++k) g[k] = loadPixels(gradient[k] + x);
#pragma GCC unroll 6
    for (int c = 0; c < kIns; ++c) {
      const Vector i = loadPixels(input[c] + x);
#pragma GCC unroll 6
      for (int k = 0; k < kOuts; ++k) sum[k * kIns + c] += g[k] * i;
    }
  };
  std::ptrdiff_t x = 0;
  for (; x + TACC_LANES <= call.pixels; x += TACC_LANES) {
    add(
        x, [](const float* from) __attribute__((always_inline)) { return load(from); });
  }
  if (x < call.pixels) {  // what comes behind is of another channel
    const PartOfVector part(static_cast<int>(call.pixels - x));
    add(
        x, [&](const float* from) __attribute__((always_inline)) { return part.load(from); });
  }
  float totals[kWhole];
#pragma GCC unroll 16
  for (int first = 0; first < kWhole; first += TACC_LANES) {
    addLanes<TACC_LANES>(sum + first);
    store(totals + first, sum[first]);
  }
#pragma GCC unroll 6
  for (int k = 0; k < kOuts; ++k) {
#pragma GCC unroll 6
    for (int c = 0; c < kIns; ++c) call.output[k * call.outputLine + c] += totals[k * kIns + c];
  }
}

/// A gradient's tile: sums beside the vectors of one side and one of the other.
constexpr int plainOuts = TACC_REGISTERS >= 32 ? 4 : 3, plainIns = TACC_REGISTERS >= 32 ? 6 : 4;
static_assert(plainOuts <= mostPlainOuts && plainIns <= mostPlainIns);

template <int kBlocks, int... kRow>
constexpr void addProducts(PlainKernels& kernels, std::integer_sequence<int, kRow...>) {
  kernels.rows[kBlocks] = static_cast<int>(sizeof...(kRow));
  ((kernels.product[kBlocks][kRow + 1] = plainProduct<kBlocks, kRow + 1>), ...);
}
template <int kOuts, int... kIn>
constexpr void addGradients(PlainKernels& kernels, std::integer_sequence<int, kIn...>) {
  ((kernels.gradient[kOuts][kIn + 1] = plainGradient<kOuts, kIn + 1>), ...);
}

constexpr PlainKernels makePlainKernels() {
  PlainKernels kernels{};
  addProducts<1>(kernels, std::make_integer_sequence<int, plainRows(1)>());
  if constexpr (vectorsOfPlainBlock == 1) {
    addProducts<2>(kernels, std::make_integer_sequence<int, plainRows(2)>());
    addProducts<3>(kernels, std::make_integer_sequence<int, plainRows(3)>());
  }
  kernels.outs = plainOuts;
  kernels.ins = plainIns;
  [&]<int... kOut>(std::integer_sequence<int, kOut...>) {
    (addGradients<kOut + 1>(kernels, std::make_integer_sequence<int, plainIns>()), ...);
  }
  (std::make_integer_sequence<int, plainOuts>());
  return kernels;
}

}  // namespace TACC_CONV_ISA

const PlainKernels& TACC_PLAIN_KERNELS() {
  static constexpr PlainKernels kernels = TACC_CONV_ISA::makePlainKernels();
  return kernels;
}

}  // namespace tacc::conv
