// Batch normalisation. Included by one file per instruction set, as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

inline void moments(const float* input, std::ptrdiff_t pixels, float* mean, float* squares) {
  const float share = 1.0F / static_cast<float>(pixels);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const float* const from = input + lane;
    const auto value = [&](std::ptrdiff_t p) __attribute__((always_inline)) { return load(from + p * blockLength); };
    const Vector middle = sumOver(pixels, value) * share;
    store(mean + lane, middle);
    store(squares + lane, sumOver(
                              pixels, [&](std::ptrdiff_t p) __attribute__((always_inline)) {
                                const Vector distance = value(p) - middle;
                                return distance * distance;
                              }));
  }
}

inline void gradientSums(const float* input, const float* outputGradient, std::ptrdiff_t pixels, const float* mean,
                         float* sum, float* product) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const float* const x = input + lane;
    const float* const g = outputGradient + lane;
    const Vector middle = load(mean + lane);
    store(sum + lane,
          sumOver(
              pixels, [&](std::ptrdiff_t p) __attribute__((always_inline)) { return load(g + p * blockLength); }));
    store(product + lane, sumOver(
                              pixels, [&](std::ptrdiff_t p) __attribute__((always_inline)) {
                                return load(g + p * blockLength) * (load(x + p * blockLength) - middle);
                              }));
  }
}

inline void normalize(const NormalizeCall& call) {
  const bool isNonTemporal = call.isNonTemporal && isAligned(call.output);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const Vector mean = load(call.mean + lane);
    const Vector factor = load(call.factor + lane);
    const Vector shift = load(call.shift + lane);
    for (std::ptrdiff_t at = lane; at < call.pixels * blockLength; at += blockLength) {
      Vector y = (load(call.input + at) - mean) * factor + shift;
      if (call.residual != nullptr) y += load(call.residual + at);
      if (call.relu) y = maximum(y, Vector{});
      put(call.output + at, y, isNonTemporal);
    }
  }
  if (isNonTemporal) endNonTemporal();
}

inline void normalizeGradient(const NormalizeGradientCall& call) {
  const bool isNonTemporal = call.isNonTemporal && isAligned(call.inputGradient);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const Vector mean = load(call.mean + lane);
    const Vector factor = load(call.factor + lane);
    const Vector offset = load(call.offset + lane);
    const Vector slope = load(call.slope + lane);
    for (std::ptrdiff_t at = lane; at < call.pixels * blockLength; at += blockLength) {
      const Vector x = load(call.input + at) - mean;
      put(call.inputGradient + at, (load(call.outputGradient + at) - offset - x * slope) * factor, isNonTemporal);
    }
  }
  if (isNonTemporal) endNonTemporal();
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
