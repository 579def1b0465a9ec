// The gradients of ReLU, of the bias and of channel-wise convolutions, and the step of an optimizer. Included by one
// file per instruction set, as table-inl.hpp.
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

inline void sumProducts(const float* gradient, const float* input, std::ptrdiff_t inputPixel, std::ptrdiff_t pixels,
                        float* sum) {
  constexpr int kVectors = blockLength / TACC_LANES;
  constexpr int kChains = kVectors > 2 ? 2 : 4;  // of each vector: sums that do not wait for themselves
  Vector sums[kChains][kVectors] = {};
  const float* g = gradient;
  const float* x = input;
  const auto addPixel = [&](Vector(&to)[kVectors]) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) to[v] += load(g + v * TACC_LANES) * load(x + v * TACC_LANES);
    g += blockLength;
    x += inputPixel;
  };
  std::ptrdiff_t left = pixels;
  for (; left >= kChains; left -= kChains) {
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain) addPixel(sums[chain]);
  }
  for (; left > 0; --left) addPixel(sums[0]);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    Vector all = load(sum + v * TACC_LANES);
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain) all += sums[chain][v];
    store(sum + v * TACC_LANES, all);
  }
}

inline void addProducts(const float* gradient, const float* weights, float* input, std::ptrdiff_t inputPixel,
                        std::ptrdiff_t pixels) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const Vector w = load(weights + lane);
    for (std::ptrdiff_t p = 0; p < pixels; ++p) {
      float* const to = input + p * inputPixel + lane;
      store(to, load(to) + w * load(gradient + p * blockLength + lane));
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
