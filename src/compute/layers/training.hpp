// The small steps of training: activation, bias and loss.
#pragma once

#include <cstddef>

#include "compute/layers/kernels.hpp"

namespace tacc::layers {

void reluBackward(const float* output, const float* outputGradient, float* inputGradient, std::size_t count,
                  const LayerKernels& kernels);
/// Sum over images and pixels for each of `channels` channels; tensors in taccLayoutNchw16c. Images are added in order.
void biasGradient(const float* outputGradient, float* gradient, int batch, int channels, std::ptrdiff_t pixels,
                  bool accumulate, const LayerKernels& kernels);
/// Returns the mean loss. `gradient` may be null.
double softmaxLoss(const float* scores, const int* labels, float* gradient, int rows, int classes);

}  // namespace tacc::layers
