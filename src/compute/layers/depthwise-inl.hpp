// Gradients of channel-wise convolutions. Included by one file per instruction set, as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

inline void sumProducts(const float* gradient, const float* input, std::ptrdiff_t inputPixel, std::ptrdiff_t pixels,
                        float* sum) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const float* const g = gradient + lane;
    const float* const x = input + lane;
    const Vector products = sumOver(
        pixels, [&](std::ptrdiff_t p)
                    __attribute__((always_inline)) { return load(g + p * blockLength) * load(x + p * inputPixel); });
    store(sum + lane, load(sum + lane) + products);
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
