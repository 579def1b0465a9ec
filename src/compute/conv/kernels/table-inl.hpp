// Fills the table of kernels of one instruction set. No standard function may be used here: its code would be compiled
// for this instruction set, and the linker might give it to the rest of the program.
//
// The including file defines, besides TACC_LANES and TACC_CONV_ISA, how many registers there are (TACC_REGISTERS), how
// many pixels and rows fit into them for 1, 2, 3 and 4 blocks (TACC_PIXELS, TACC_ROWS), and the letter of a vector
// register in inline assembly.
#include <utility>

#include "compute/conv/kernels/depthwise_kernels.hpp"
#include "compute/conv/kernels/gradient-inl.hpp"
#include "compute/conv/kernels/permuted-inl.hpp"
#include "compute/conv/kernels/permuted_spread-inl.hpp"
#include "compute/conv/kernels/tile-inl.hpp"
#include "compute/conv/kernels/winograd-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

constexpr int pixelLimits[maxBlocks + 1] = {0, TACC_PIXELS};
constexpr int rowLimits[maxBlocks + 1] = {0, TACC_ROWS};

template <int kBlocks>
constexpr void fillBlocks(KernelSet& set) {
  constexpr int kVectors = kBlocks * vectorsOfBlock;
  set.pixelLimit[kBlocks] = pixelLimits[kBlocks];
  set.rowLimit[kBlocks] = rowLimits[kBlocks];
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((set.tile[kBlocks][kIndex + 1] = tile<kVectors, kIndex + 1, blockLength>,
      set.everySecond[kBlocks][kIndex + 1] = tile<kVectors, kIndex + 1, 2 * blockLength>,
      set.strided[kBlocks][kIndex + 1] = tile<kVectors, kIndex + 1, 0>,
      set.scattered[0][kBlocks][kIndex + 1] = scatteredTile<kVectors, kIndex + 1, 0>,
      set.scattered[1][kBlocks][kIndex + 1] = scatteredTile<kVectors, kIndex + 1, 1>,
      set.scattered[2][kBlocks][kIndex + 1] = scatteredTile<kVectors, kIndex + 1, 2>,
      set.scattered[4][kBlocks][kIndex + 1] = scatteredTile<kVectors, kIndex + 1, 4>),
     ...);
  }
  (std::make_integer_sequence<int, pixelLimits[kBlocks]>());
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((set.gradient[kBlocks][kIndex + 1] = gradient<kVectors, kIndex + 1>), ...);
  }
  (std::make_integer_sequence<int, rowLimits[kBlocks]>());
}

/// Where a vector is half a block: tiles that end with half a one.
template <int kVectors, int... kIndex>
constexpr void fillHalfTiles(KernelSet& set, std::integer_sequence<int, kIndex...>) {
  constexpr int kBlocks = blocksOf(kVectors);
  set.halfPixelLimit[kBlocks] = sizeof...(kIndex);
  ((set.tileHalf[kBlocks][kIndex + 1] = tile<kVectors, kIndex + 1, blockLength>,
    set.stridedHalf[kBlocks][kIndex + 1] = tile<kVectors, kIndex + 1, 0>),
   ...);
}

/// Gradients of such.
template <int kVectors, int... kIndex>
constexpr void fillHalfGradients(KernelSet& set, std::integer_sequence<int, kIndex...>) {
  constexpr int kBlocks = blocksOf(kVectors);
  set.halfRowLimit[kBlocks] = sizeof...(kIndex);
  ((set.gradientHalf[kBlocks][kIndex + 1] = gradient<kVectors, kIndex + 1>), ...);
}

/// Most pixels of a tile of one block all of whose weights are in registers: a permuted kernel has all of them there.
constexpr int pixelsOfHeldWeights() {
  constexpr int kVectors = blockLength / TACC_LANES;
  int pixels = pixelLimits[1];
  while (heldWeights(TACC_REGISTERS, kVectors, pixels) < kVectors) --pixels;
  return pixels;
}

constexpr void fillPermuted(KernelSet& set) {
  constexpr int kPixels = pixelsOfHeldWeights();
  set.permutedLanes = permutedLanes;
  set.permutedPixelLimit = kPixels;
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((set.permuted[kIndex + 1] = permutedTile<kIndex + 1, blockLength>,
      set.permutedEverySecond[kIndex + 1] = permutedTile<kIndex + 1, 2 * blockLength>,
      set.permutedStrided[kIndex + 1] = permutedTile<kIndex + 1, 0>),
     ...);
  }
  (std::make_integer_sequence<int, kPixels>());
  set.permutedSpread = permutedSpread;
  set.spreadLimit = spreadLimit;
  set.permutedRowLimit = permutedRowLimit;
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((set.permutedGradient[kIndex + 1] = permutedGradient<kIndex + 1>), ...);
  }
  (std::make_integer_sequence<int, permutedRowLimit>());
  set.permutedThreeLimit = permutedThreeLimit;
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((set.permutedGradientThree[1][kIndex + 1] = permutedGradientThree<kIndex + 1, 1>,
      set.permutedGradientThree[2][kIndex + 1] = permutedGradientThree<kIndex + 1, 2>),
     ...);
  }
  (std::make_integer_sequence<int, permutedThreeLimit>());
  set.uniformThreeLimit = uniformThreeLimit;
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((set.uniformGradientThree[1][kIndex + 1] = permutedGradientThree<kIndex + 1, 1, true>,
      set.uniformGradientThree[2][kIndex + 1] = permutedGradientThree<kIndex + 1, 2, true>),
     ...);
  }
  (std::make_integer_sequence<int, uniformThreeLimit>());
}

template <int kWidth>
constexpr void fillDepthwise(KernelSet& set) {
  set.depthwise[kWidth][1] = depthwise<kWidth, 1>;
  set.depthwise[kWidth][2] = depthwise<kWidth, 2>;
  set.depthwise[kWidth][3] = depthwise<kWidth, 3>;
  set.depthwise[kWidth][4] = depthwise<kWidth, 4>;
  set.depthwiseGradient[kWidth][1] = depthwiseGradient<kWidth, 1>;
  set.depthwiseGradient[kWidth][2] = depthwiseGradient<kWidth, 2>;
  set.depthwiseGradient[kWidth][3] = depthwiseGradient<kWidth, 3>;
  set.depthwiseGradient[kWidth][4] = depthwiseGradient<kWidth, 4>;
}

/// Those for odd widths alone.
template <int kWidth>
constexpr void fillOddDepthwise(KernelSet& set) {
  set.depthwiseDilated[kWidth][2] = depthwiseDilated<kWidth, 2>;
  set.depthwiseDilated[kWidth][3] = depthwiseDilated<kWidth, 3>;
  set.depthwiseSpread[kWidth][0] = depthwiseSpread<kWidth, 0>;
  set.depthwiseSpread[kWidth][1] = depthwiseSpread<kWidth, 1>;
}

/// For pixels that are any distance apart.
template <int kWidth>
constexpr void fillDepthwiseApart(KernelSet& set) {
  set.depthwiseApart[kWidth][1] = depthwise<kWidth, 1, 0>;
  set.depthwiseApart[kWidth][2] = depthwise<kWidth, 2, 0>;
  set.depthwiseSpreadApart[kWidth][0] = depthwiseSpread<kWidth, 0, 0>;
  set.depthwiseSpreadApart[kWidth][1] = depthwiseSpread<kWidth, 1, 0>;
  set.depthwiseGradientApart[kWidth][1] = depthwiseGradient<kWidth, 1, 0>;
  set.depthwiseGradientApart[kWidth][2] = depthwiseGradient<kWidth, 2, 0>;
}

/// As many independent chains as the tile kernels have, so that neither latency nor memory holds them up.
inline double multiplyAdds(int steps) {
  constexpr int kChains = 12;
  Vector sum[kChains] = {};
  const Vector factor = broadcast(0.5F);
  const Vector add = broadcast(1.0F);
  for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) {
      sum[k] = sum[k] * factor + add;
      asm volatile("" : "+" TACC_VECTOR_REGISTER(sum[k]));  // each product is really made
    }
  }
  return 2.0 * kChains * TACC_LANES * steps;
}

constexpr KernelSet makeKernels(std::string_view isa) {
  KernelSet set{};
  set.isa = set.vectors = isa;
  set.fmaLanes = TACC_LANES;
  set.registers = TACC_REGISTERS;
  set.blockPixel = blockPixel;
  set.pixelsOfStep = pixelsOfStep;
  fillBlocks<1>(set);
  fillBlocks<2>(set);
  fillBlocks<3>(set);
  fillBlocks<4>(set);
  if constexpr (vectorsOfBlock == 2) {
    fillHalfTiles<1>(set, std::make_integer_sequence<int, 8>());
    fillHalfTiles<3>(set, std::make_integer_sequence<int, 4>());
    fillHalfGradients<1>(set, std::make_integer_sequence<int, 8>());
    fillHalfGradients<3>(set, std::make_integer_sequence<int, 4>());
  }
  fillPermuted(set);
  fillDepthwise<2>(set);
  fillDepthwise<3>(set);
  fillDepthwise<4>(set);
  fillDepthwise<5>(set);
  fillDepthwise<7>(set);
  fillOddDepthwise<3>(set);
  fillOddDepthwise<5>(set);
  fillOddDepthwise<7>(set);
  fillDepthwiseApart<3>(set);
  fillDepthwiseApart<5>(set);
  fillDepthwiseApart<7>(set);
  set.depthwiseAny = depthwiseAny;
  set.winogradInput[2] = winogradInput<2>;
  set.winogradInput[4] = winogradInput<4>;
  set.winogradInput[5] = winogradInput<5>;
  set.winogradInput[6] = winogradInput<6>;
  set.winogradOutput[2] = winogradOutput<2>;
  set.winogradOutput[4] = winogradOutput<4>;
  set.winogradOutput[5] = winogradOutput<5>;
  set.winogradOutput[6] = winogradOutput<6>;
  set.activate = activateBlocks;
  set.multiplyAdds = multiplyAdds;
  return set;
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
