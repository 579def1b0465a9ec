// Batch normalisation of activations in taccLayoutNchw16c: statistics of each channel over a batch.
#pragma once

#include "compute/conv/task_executor.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::layers {

/// Checks a description. Throws Error (taccInvalidArgument).
void check(const taccBatchNormDesc_t& desc);

// A block of channels is a task, and a task adds up chunks in order: the bits do not depend on the number of workers.
// Sums are float32 within a chunk and float64 beyond.

void batchNormTrain(const taccBatchNormDesc_t& desc, const taccBatchNormBuffers_t& buffers, const LayerKernels& kernels,
                    const conv::TaskExecutor& executor);
void batchNormInfer(const taccBatchNormDesc_t& desc, const taccBatchNormBuffers_t& buffers, const LayerKernels& kernels,
                    const conv::TaskExecutor& executor);
void batchNormBackward(const taccBatchNormDesc_t& desc, const taccBatchNormGradients_t& buffers,
                       const LayerKernels& kernels, const conv::TaskExecutor& executor);

}  // namespace tacc::layers
