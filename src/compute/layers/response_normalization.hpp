// Local response normalisation across channels, of activations in taccLayoutNchw16c.
#pragma once

#include "compute/conv/task_executor.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::layers {

/// Checks a description. Throws Error (taccInvalidArgument).
void check(const taccLrnDesc_t& desc);

void lrnForward(const taccLrnDesc_t& desc, const float* input, float* output, const LayerKernels& kernels,
                const conv::TaskExecutor& executor);
void lrnBackward(const taccLrnDesc_t& desc, const float* input, const float* outputGradient, float* inputGradient,
                 const LayerKernels& kernels, const conv::TaskExecutor& executor);

}  // namespace tacc::layers
