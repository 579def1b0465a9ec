// The channel-wise kernels for tensors of bfloat16, with AVX-512 BF16: of the usual widths and strides, for pixels any
// distance apart.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512_bf16
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_BF16_NUMBERS
#include "compute/conv/kernels/depthwise-inl.hpp"
#include "compute/conv/kernels/depthwise_gradient-inl.hpp"

namespace tacc::conv {
namespace avx512_bf16 {

constexpr int anyPixel = 0;

template <int kWidth>
constexpr void fill(KernelSet& set) {
  set.depthwiseApart[kWidth][1] = depthwise<kWidth, 1, anyPixel>;
  set.depthwiseApart[kWidth][2] = depthwise<kWidth, 2, anyPixel>;
  set.depthwiseSpreadApart[kWidth][0] = depthwiseSpread<kWidth, 0, anyPixel>;
  set.depthwiseSpreadApart[kWidth][1] = depthwiseSpread<kWidth, 1, anyPixel>;
  set.depthwiseGradientApart[kWidth][1] = depthwiseGradient<kWidth, 1, anyPixel>;
  set.depthwiseGradientApart[kWidth][2] = depthwiseGradient<kWidth, 2, anyPixel>;
}

constexpr KernelSet makeDepthwise() {
  KernelSet set{};
  set.isa = set.vectors = "avx512";
  set.fmaLanes = TACC_LANES;
  set.registers = TACC_REGISTERS;
  fill<3>(set);
  fill<5>(set);
  fill<7>(set);
  return set;
}

}  // namespace avx512_bf16

const KernelSet& avx512Bf16Depthwise() {
  static constexpr KernelSet kernels = avx512_bf16::makeDepthwise();
  return kernels;
}

}  // namespace tacc::conv
