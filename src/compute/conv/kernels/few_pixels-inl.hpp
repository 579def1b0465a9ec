// Gradients of weights of few pixels: their gradients stay in registers while the rows go by, so that a row is a few
// multiply-adds and a store, in the order of memory, and no sums begin and end with every few rows. Included by one
// file per instruction set, as tile-inl.hpp.
#include <utility>

#include "compute/conv/kernels/few_pixels_kernels.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Vectors of a block that rows have together: as many as leave registers for their sums and a value of the input.
constexpr int fewPixelsVectors(int pixels) {
  int vectors = vectorsOfBlock;
  while (vectors > 1 && vectors * (pixels + 1) >= TACC_REGISTERS) vectors /= 2;
  return vectors;
}

/// Sums that pixels are added to in turn: of a single vector many would wait for each other.
constexpr int fewPixelsSums(int vectors, int pixels) { return vectors == 1 && pixels >= 6 ? 2 : 1; }

/// Of kVectors vectors of the block, from one on. Those behind them become zeros where kClears. kStreams: all of a
/// block is stored non-temporally.
template <int kVectors, int kPixels, bool kAdds, bool kClears, bool kStreams>
[[gnu::always_inline]] inline void fewPixelsRows(const FewPixelsCall& call, int vector) {
  constexpr int kSums = fewPixelsSums(kVectors, kPixels);
  Vector g[kVectors][kPixels];
  const float* at[kPixels];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) g[v][p] = load(call.gradients[p] + (vector + v) * TACC_LANES);
    at[p] = call.inputs[p];
  }
  const std::ptrdiff_t inputBlock = call.inputBlock, outputBlock = call.outputBlock;
  float* output = call.output + vector * TACC_LANES;
  const auto put = [](float* to, Vector v) __attribute__((always_inline)) {
    if constexpr (kStreams) {
      stream(to, v);
    } else {
      store(to, v);
    }
  };
  for (int left = call.rows; left > 0; left -= blockLength, output += outputBlock) {
    const std::ptrdiff_t rows = left < blockLength ? left : blockLength;
    float* to = output;
    for (std::ptrdiff_t c = 0; c < rows; ++c, to += blockLength) {
      Vector sum[kSums][kVectors];
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const Vector factor = broadcast(at[p][c]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const Vector before = p >= kSums ? sum[p % kSums][v] : kAdds && p == 0 ? load(to + v * TACC_LANES) : Vector{};
          sum[p % kSums][v] = addProduct(before, g[v][p], factor);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        put(to + v * TACC_LANES, kSums == 2 ? sum[0][v] + sum[kSums - 1][v] : sum[0][v]);
      }
      if constexpr (kClears) {
#pragma GCC unroll 4
        for (int v = kVectors; v < vectorsOfBlock; ++v) put(to + v * TACC_LANES, Vector{});
      }
    }
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) at[p] += inputBlock;
  }
}

template <int kPixels, bool kAdds, bool kStreams>
[[gnu::always_inline]] inline void fewPixelsBlock(const FewPixelsCall& call) {
  constexpr int kVectors = fewPixelsVectors(kPixels);
  if (vectorsOfBlock > 1 && call.channels <= TACC_LANES) {
    fewPixelsRows<1, kPixels, kAdds, !kAdds, kStreams>(call, 0);
    return;
  }
  // Where vectors are narrower than half a block some of these may have no channels, whose gradients are zeros. Lines
  // of the cache that are written in parts are not streamed.
  constexpr bool areWhole = kVectors == vectorsOfBlock;
  for (int v = 0; v < vectorsOfBlock; v += kVectors)
    fewPixelsRows<kVectors, kPixels, kAdds, false, kStreams && areWhole>(call, v);
}

template <int kPixels>
void fewPixels(const FewPixelsCall& call) {
  if (call.accumulate) {
    fewPixelsBlock<kPixels, true, false>(call);
  } else if (call.isNonTemporal) {
    fewPixelsBlock<kPixels, false, true>(call);
    endNonTemporal();
  } else {
    fewPixelsBlock<kPixels, false, false>(call);
  }
}

}  // namespace TACC_CONV_ISA

const FewPixelsKernels& TACC_FEW_PIXELS() {
  static constexpr FewPixelsKernels kernels = [] {
    FewPixelsKernels all{};
    // Vectors of a whole block have not been measured.
    if constexpr (TACC_LANES < blockLength) {
      [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) {
        ((all.sum[kBefore + 1] = TACC_CONV_ISA::fewPixels<kBefore + 1>), ...);
      }
      (std::make_integer_sequence<int, mostFewPixels>());
    }
    return all;
  }();
  return kernels;
}

}  // namespace tacc::conv
