// The channel-wise kernel: no sum over channels, so it is a matter of loads, not of multiply-adds. Included by one file
// per instruction set, as tile-inl.hpp.
#include "compute/conv/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

template <int kPixels>
[[gnu::always_inline]] inline void depthwisePixels(const DepthwiseCall& call, int from) {
  constexpr int kVectors = blockLength / TACC_LANES;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int lane = v * TACC_LANES;
    Vector sum[kPixels];
    const Vector start = call.bias != nullptr ? load(call.bias + lane) : Vector{};
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) sum[p] = start;
    const float* const input = call.input + from * call.inputPixel + lane;
    for (int t = 0; t < call.tapCount; ++t) {
      const Vector w = load(call.weights[t] + lane);
      const float* const x = input + call.taps[t];
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) sum[p] += w * load(x + p * call.inputPixel);
    }
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const std::ptrdiff_t at = (from + p) * call.outputPixel + lane;
      if (call.addend != nullptr) sum[p] += load(call.addend + at);
      if (call.relu) sum[p] = maximum(sum[p], Vector{});
      store(call.output + at, sum[p]);
    }
  }
}

inline void depthwise(const DepthwiseCall& call) {
  int p = 0;
  for (; p + 8 <= call.pixels; p += 8) depthwisePixels<8>(call, p);
  for (; p + 4 <= call.pixels; p += 4) depthwisePixels<4>(call, p);
  for (; p < call.pixels; ++p) depthwisePixels<1>(call, p);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
