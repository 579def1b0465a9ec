// The small steps of training: activation, bias, loss and update.
#pragma once

#include <cstddef>

namespace tacc::layers {

void reluBackward(const float* output, const float* outputGradient, float* inputGradient, std::size_t count);
/// Sum over images and pixels for each of `channels` channels; tensors in taccLayoutNchw16c. Images are added in order.
void biasGradient(const float* outputGradient, float* gradient, int batch, int channels, std::ptrdiff_t pixels,
                  bool accumulate);
/// Returns the mean loss. `gradient` may be null.
double softmaxLoss(const float* scores, const int* labels, float* gradient, int rows, int classes);
void sgdMomentum(float* weights, float* velocity, const float* gradient, std::size_t count, float rate, float momentum,
                 float decay);

}  // namespace tacc::layers
