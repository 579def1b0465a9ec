// ReLU's gradient, the bias's, and the step of an optimizer: what is limited by memory. Included by one file per
// instruction set, as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

inline void reluBackward(const float* output, const float* outputGradient, float* inputGradient, std::size_t count,
                         bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(inputGradient);
  std::size_t i = 0;
  for (; i + TACC_LANES <= count; i += TACC_LANES) {
    const Vector gradient = load(outputGradient + i);
    put(inputGradient + i, load(output + i) > Vector{} ? gradient : Vector{}, isNonTemporal);
  }
  if (isNonTemporal) endNonTemporal();
  for (; i < count; ++i) inputGradient[i] = output[i] > 0 ? outputGradient[i] : 0.0F;
}

inline void addPixels(const float* from, std::ptrdiff_t pixels, std::ptrdiff_t apart, float* sum) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Vector places[pixelPlaces] = {};
    for (std::ptrdiff_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 8
      for (int i = 0; i < pixelPlaces; ++i) places[i] += load(from + i * apart + p * blockLength + lane);
    }
    Vector total = load(sum + lane);
#pragma GCC unroll 4
    for (int i = 0; i < pixelPlaces; i += 2) total += places[i] + places[i + 1];
    store(sum + lane, total);
  }
}

inline void sgdMomentum(float* weights, float* velocity, const float* gradient, std::size_t count, float rate,
                        float momentum, float decay) {
  for (std::size_t i = 0; i < count; ++i) {
    velocity[i] = momentum * velocity[i] + rate * (gradient[i] + decay * weights[i]);
    weights[i] -= velocity[i];
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
