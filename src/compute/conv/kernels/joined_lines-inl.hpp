// The kernels of joined lines: sums of all columns of several lines stay in registers while the pixels of an image's
// part go by, so that each vector of the output's gradient is read once for all of them. Included by one file per
// instruction set, as tile-inl.hpp.
#include <utility>

#include "compute/conv/kernels/joined_lines_kernels.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// The gradient is fetched so many pixels before it is used: each block of channels is in another page, and what comes
/// from memory takes as long as some dozens of pixels are multiplied.
constexpr int joinedPixelsAhead = 96;

template <int kBlocks, int kLines, int kColumns>
void joinedLines(const JoinedLinesCall& call) {
  constexpr int kVectors = kBlocks * vectorsOfBlock;
  Vector sum[kVectors][kLines][kColumns];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) sum[v][l][c] = Vector{};
    }
  }
  const std::ptrdiff_t step = call.inputPixel, gradientStep = call.gradientPixel, block = call.gradientBlock;
  const std::ptrdiff_t ahead = joinedPixelsAhead * gradientStep;
  for (int image = 0; image < call.images; ++image) {
    for (int line = 0; line < call.outLines; ++line) {
      const float* const input = call.input + image * call.inputImage + line * call.inputLine;
      const float* at[kLines];
#pragma GCC unroll 16
      for (int l = 0; l < kLines; ++l) at[l] = input + call.lines[l];
      const float* from = call.gradient + image * call.gradientImage + line * call.gradientLine;
      std::ptrdiff_t x = 0;
      for (int left = call.pixels; left > 0; --left, x += step, from += gradientStep) {
        Vector g[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          const float* const vector = from + v / vectorsOfBlock * block + v % vectorsOfBlock * TACC_LANES;
          if (v % vectorsOfBlock == 0) __builtin_prefetch(vector + ahead);
          g[v] = load(vector);
        }
#pragma GCC unroll 16
        for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
          for (int c = 0; c < kColumns; ++c) {
            const float& value = at[l][x + c];
            if constexpr (kVectors == 1) {
              sum[0][l][c] = addProductWith(sum[0][l][c], g[0], value);
              continue;
            }
            const Vector factor = broadcast(value);
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) sum[v][l][c] = addProduct(sum[v][l][c], g[v], factor);
          }
        }
      }
    }
  }
  // Read once: the compiler cannot know that no result is stored over the call.
  const std::ptrdiff_t row = call.outputRow, outputBlock = call.outputBlock;
  const bool accumulates = call.accumulate;
#pragma GCC unroll 16
  for (int l = 0; l < kLines; ++l) {
    float* const place = call.output + call.places[l];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      float* const to = place + v / vectorsOfBlock * outputBlock + v % vectorsOfBlock * TACC_LANES;
      if (accumulates) {
#pragma GCC unroll 16
        for (int c = 0; c < kColumns; ++c) sum[v][l][c] += load(to + c * row);
      }
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) store(to + c * row, sum[v][l][c]);
    }
  }
}

/// Sums that stay in registers beside what is read.
constexpr int mostJoinedSums = TACC_REGISTERS - 4;

template <int kBlocks, int kLines, int... kBefore>
constexpr void fillJoinedColumns(JoinedLinesKernels& kernels, std::integer_sequence<int, kBefore...>) {
  const auto fill = [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    if constexpr (kBlocks * vectorsOfBlock * kLines * kColumns <= mostJoinedSums) {
      kernels.sum[kBlocks][kLines][kColumns] = joinedLines<kBlocks, kLines, kColumns>;
    }
  };
  (fill(std::integral_constant<int, kBefore + 1>{}), ...);
}

template <int kBlocks, int... kBefore>
constexpr void fillJoinedLines(JoinedLinesKernels& kernels, std::integer_sequence<int, kBefore...>) {
  (fillJoinedColumns<kBlocks, kBefore + 2>(kernels, std::make_integer_sequence<int, mostJoinedColumns>{}), ...);
}

}  // namespace TACC_CONV_ISA

const JoinedLinesKernels& TACC_JOINED_LINES() {
  static constexpr JoinedLinesKernels kernels = [] {
    using namespace TACC_CONV_ISA;
    JoinedLinesKernels all{};
    constexpr std::make_integer_sequence<int, mostJoinedLines - 1> linesBefore{};
    fillJoinedLines<1>(all, linesBefore);
    fillJoinedLines<2>(all, linesBefore);
    fillJoinedLines<3>(all, linesBefore);
    fillJoinedLines<4>(all, linesBefore);
    return all;
  }();
  return kernels;
}

}  // namespace tacc::conv
