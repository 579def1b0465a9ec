// The layers beside convolutions, of activations in taccLayoutNchw16c. Each is in the source of its name; what is small
// is in training.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/conv/task_executor.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::layers {

// Batch normalisation: statistics of each channel over a batch. A block of channels is a task, and a task adds up
// chunks in order: the bits do not depend on the number of workers. Sums are float32 within a chunk and float64 beyond.

/// Checks a description. Throws Error (taccInvalidArgument).
void check(const taccBatchNormDesc_t& desc);

void batchNormTrain(const taccBatchNormDesc_t& desc, const taccBatchNormBuffers_t& buffers, const LayerKernels& kernels,
                    const conv::TaskExecutor& executor);
void batchNormInfer(const taccBatchNormDesc_t& desc, const taccBatchNormBuffers_t& buffers, const LayerKernels& kernels,
                    const conv::TaskExecutor& executor);
void batchNormBackward(const taccBatchNormDesc_t& desc, const taccBatchNormGradients_t& buffers,
                       const LayerKernels& kernels, const conv::TaskExecutor& executor);

// Pooling.

/// A checked description with its output's size.
struct Pooling {
  taccPoolDesc_t desc;
  int blocks;  // of channels, of all images
  int outHeight, outWidth;
};

/// Throws Error (taccInvalidArgument).
Pooling understand(const taccPoolDesc_t& desc);

void poolForward(const Pooling& pooling, const float* input, float* output, const LayerKernels& kernels,
                 const conv::TaskExecutor& executor);
void poolBackward(const Pooling& pooling, const float* input, const float* output, const float* outputGradient,
                  float* inputGradient, const LayerKernels& kernels, const conv::TaskExecutor& executor);

// Local response normalisation across channels.

/// Checks a description. Throws Error (taccInvalidArgument).
void check(const taccLrnDesc_t& desc);

void lrnForward(const taccLrnDesc_t& desc, const float* input, float* output, const LayerKernels& kernels,
                const conv::TaskExecutor& executor);
void lrnBackward(const taccLrnDesc_t& desc, const float* input, const float* outputGradient, float* inputGradient,
                 const LayerKernels& kernels, const conv::TaskExecutor& executor);

// The small steps of training: dropout, activation, bias and loss.

/// Numbers become zero by a chance that follows from the seed, the step and their place. `rate` is from 0 to below 1.
void dropout(const float* input, float* output, std::size_t count, float rate, std::uint64_t seed, std::uint64_t step,
             const LayerKernels& kernels, const conv::TaskExecutor& executor);
void reluBackward(const float* output, const float* outputGradient, float* inputGradient, std::size_t count,
                  const LayerKernels& kernels);
/// Sum over images and pixels for each of `channels` channels; tensors in taccLayoutNchw16c. Images are added in order.
void biasGradient(const float* outputGradient, float* gradient, int batch, int channels, std::ptrdiff_t pixels,
                  bool accumulate, const LayerKernels& kernels);
/// Returns the mean loss. `gradient` may be null.
double softmaxLoss(const float* scores, const int* labels, float* gradient, int rows, int classes);

}  // namespace tacc::layers
