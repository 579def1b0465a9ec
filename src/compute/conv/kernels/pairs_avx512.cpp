// Tiles of AVX-512 BF16: a float of input or weights is a pair of bfloat16, and a step adds the products of both.
// Forward and backward to the data these are of two channels, as they lie in memory; in gradients of weights of two
// pixels, which are joined before.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512_pairs
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_BLOCK_PIXEL 8
#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv::avx512_pairs {

inline constexpr int blockPixel = TACC_BLOCK_PIXEL;
inline constexpr int pixelsOfStep = 2;

[[gnu::always_inline]] inline Vector addProduct(Vector sum, Vector w, Vector x) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
}

/// The compiler would broadcast first, which takes a third longer.
[[gnu::always_inline]] inline Vector addProductWith(Vector sum, Vector w, const float& x) {
  asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(x));
  return sum;
}

using Words [[gnu::vector_size(TACC_LANES * 4)]] = unsigned;
using Halves [[gnu::vector_size(TACC_LANES * 2), gnu::aligned(2), gnu::may_alias]] = unsigned short;

/// With a zero in place of each second number.
[[gnu::always_inline]] inline Vector firstOfPairs(Vector pairs) {
  return reinterpret_cast<Vector>(reinterpret_cast<Words>(pairs) & 0xFFFF);
}

/// Results rounded to bfloat16, with an addend of it.
template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void writePairs(const TileCall& call, Vector (&sum)[kVectors][kPixels], std::ptrdiff_t at,
                                              std::ptrdiff_t pixel) {
  float* const output = call.output + at;
  if (call.addend != nullptr) {
    const float* const addend = call.addend + at;
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const float* const from = addend + v * call.outputBlock + p * pixel;
        const Words words = __builtin_convertvector(*reinterpret_cast<const Halves*>(from), Words) << 16;
        sum[v][p] += reinterpret_cast<Vector>(words);
      }
    }
  }
  activate<kVectors * kPixels>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i / kPixels][i % kPixels]; });
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      *reinterpret_cast<Halves*>(output + v * call.outputBlock + p * pixel) =
          reinterpret_cast<Halves>(_mm512_cvtneps_pbh(sum[v][p]));
    }
  }
}

}  // namespace tacc::conv::avx512_pairs

#include <utility>

#include "compute/conv/kernels/gradient-inl.hpp"
#include "compute/conv/kernels/tile-inl.hpp"

namespace tacc::conv {
namespace avx512_pairs {

template <int kBlocks, int... kIndex>
constexpr void fillTiles(KernelSet& set, std::integer_sequence<int, kIndex...>) {
  set.pixelLimit[kBlocks] = sizeof...(kIndex);
  ((set.tile[kBlocks][kIndex + 1] = tile<kBlocks, kIndex + 1, blockPixel>,
    set.everySecond[kBlocks][kIndex + 1] = set.strided[kBlocks][kIndex + 1] = tile<kBlocks, kIndex + 1, 0>),
   ...);
}

template <int kBlocks, int... kIndex>
constexpr void fillGradients(KernelSet& set, std::integer_sequence<int, kIndex...>) {
  set.rowLimit[kBlocks] = sizeof...(kIndex);
  ((set.gradient[kBlocks][kIndex + 1] = gradient<kBlocks, kIndex + 1>), ...);
}

[[gnu::always_inline]] inline Words wide(const std::uint16_t* from) {
  return __builtin_convertvector(*reinterpret_cast<const Halves*>(from), Words);
}

void joinPairs(const JoinPairsCall& call) {
  const std::uint16_t* first = call.first;
  const std::uint16_t* second = call.second;
  float* to = call.output;
  const std::size_t numbers = call.numbers;
  for (int pair = 0; pair < call.pairs; ++pair, first += call.step, to += numbers) {
    std::size_t i = 0;
    if (second == nullptr) {
      for (; i < numbers; ++i) to[i] = __builtin_bit_cast(float, std::uint32_t{first[i]});
      continue;
    }
    for (; i + TACC_LANES <= numbers; i += TACC_LANES)
      store(to + i, reinterpret_cast<Vector>(wide(first + i) | wide(second + i) << 16));
    for (; i < numbers; ++i) to[i] = __builtin_bit_cast(float, std::uint32_t{second[i]} << 16 | first[i]);
    second += call.step;
  }
}

constexpr KernelSet makePairs() {
  KernelSet set{};
  set.isa = set.vectors = "avx512";
  set.fmaLanes = TACC_LANES;
  set.registers = TACC_REGISTERS;
  set.blockPixel = blockPixel;
  fillTiles<1>(set, std::make_integer_sequence<int, 14>());
  fillTiles<2>(set, std::make_integer_sequence<int, 14>());
  fillTiles<3>(set, std::make_integer_sequence<int, 9>());
  fillTiles<4>(set, std::make_integer_sequence<int, 6>());
  set.pixelsOfStep = pixelsOfStep;
  fillGradients<1>(set, std::make_integer_sequence<int, 16>());
  fillGradients<2>(set, std::make_integer_sequence<int, 12>());
  fillGradients<3>(set, std::make_integer_sequence<int, 8>());
  fillGradients<4>(set, std::make_integer_sequence<int, 6>());
  set.joinPairs = joinPairs;
  return set;
}

}  // namespace avx512_pairs

const KernelSet& avx512PairKernels() {
  static constexpr KernelSet kernels = avx512_pairs::makePairs();
  return kernels;
}

}  // namespace tacc::conv
